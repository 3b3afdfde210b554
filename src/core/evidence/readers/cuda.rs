//! Bare errors of the CUDA runtime, its libraries and the kernel driver: memory asked for outside the caching
//! allocator, and the look-alikes that are no question of memory.
//!
//! Sources: `c10/cuda/CUDAException.cpp`, `aten/src/ATen/cuda/Exceptions.h` (PyTorch); the CUDA runtime's table of
//! error names; docs.nvidia.com/deploy/xid-errors; `triton/runtime/errors.py`.

use crate::evidence::fact::Figure;
use crate::evidence::found::Found;
use crate::evidence::number::Unit::Count;
use crate::evidence::rule::Rule;
use crate::evidence::window::Window;

/// Who else prints the same first words.
const OTHERS: &[&str] =
    &["current device:", "cumem_allocator", "tllmBuffers", "turbomind", "TensorRT-LLM", "ggml"];

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("CUDA error: out of memory").kind("cuda_error_oom").unless(OTHERS).reach(160),
    Rule::new("HIP error: out of memory").kind("cuda_error_oom").unless(OTHERS).reach(160),
    Rule::new("CUDA_ERROR_OUT_OF_MEMORY")
        .back(16)
        .kind("cuda_error_oom")
        .unless(&["from device:", "not a failure"])
        .reach(80),
    Rule::new("cudaErrorMemoryAllocation").kind("cuda_error_oom").unless(OTHERS).reach(120),
    Rule::new("hipErrorOutOfMemory").kind("cuda_error_oom").reach(120),
    Rule::new("CUBLAS_STATUS_ALLOC_FAILED").kind("cublas_alloc_failed").reach(80),
    Rule::new("CUBLAS_STATUS_NOT_INITIALIZED").kind("cublas_not_initialized").reach(80),
    Rule::new("cublas runtime error : resource allocation failed").kind("cublas_alloc_failed").reach(80),
    Rule::new("Create cublas handle failed").kind("cublas_alloc_failed").reach(80),
    Rule::new("CUDNN_STATUS_ALLOC_FAILED").kind("cudnn_alloc_failed").reach(80),
    Rule::new("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED").kind("cudnn_alloc_failed").reach(80),
    Rule::new("CURAND_STATUS_ALLOCATION_FAILED").kind("cudnn_alloc_failed").reach(80),
    Rule::new("CUSPARSE_STATUS_ALLOC_FAILED").kind("cublas_alloc_failed").reach(80),
    Rule::new("an illegal memory access was encountered").kind("illegal_memory_access").reach(60),
    Rule::new("device-side assert triggered").kind("device_assert").reach(60),
    Rule::new("CUDA error: misaligned address").kind("misaligned_address").reach(60),
    Rule::new("unspecified launch failure").kind("launch_failure").reach(60),
    Rule::new("no kernel image is available for execution").kind("no_kernel_image").reach(60),
    Rule::new("driver version is insufficient for CUDA runtime").kind("driver_too_old").reach(60),
    Rule::new("out of resource: shared memory").kind("triton_shared_memory").reach(120),
    Rule::new("NVRM: Xid (").reach(120).one_line().more(xid),
];

/// Codes of the kernel driver; none of them is a question of memory size.
fn xid(window: &Window, found: &mut Found) {
    let Some((_, at)) = window.find("):", 0, window.len()) else { return };
    let Some((Figure::Count(code), _)) = window.figure(at, Count) else { return };
    let kind = match code {
        13 => "xid13",
        31 => "xid31",
        43 => "xid43",
        45 => "xid45",
        48 => "xid48",
        63 => "xid63",
        64 => "xid64",
        74 => "xid74",
        79 => "xid79",
        94 => "xid94",
        95 => "xid95",
        _ => "xid_other",
    };
    found.error(kind, window);
    found.fact(window, at, "xid", Figure::Count(code));
}
