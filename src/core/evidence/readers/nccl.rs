//! What NCCL says where a buffer of its own finds no memory, and its errors that are none of memory.
//!
//! Sources: `src/include/alloc.h` (`ncclCudaMallocDebug`, `ncclCuMemAlloc`), `src/include/checks.h`; github.com/NVIDIA/nccl;
//! `torch/csrc/distributed/c10d/NCCLUtils.cpp`.

use crate::evidence::number::Unit::{Bytes, Word};
use crate::evidence::rule::{Rule, Take};

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("NCCL WARN Cuda failure").needs(&["out of memory"]).kind("nccl_oom").reach(60),
    Rule::new("NCCL WARN Failed to CUDA calloc").kind("nccl_oom").reach(60).takes(&[Take::after(
        "tried_to_allocate",
        "calloc",
        Bytes,
    )]),
    Rule::new("NCCL WARN Failed to CUDA malloc").kind("nccl_oom").reach(60).takes(&[Take::after(
        "tried_to_allocate",
        "malloc",
        Bytes,
    )]),
    Rule::new("NCCL WARN Failed to CUDA host alloc").kind("nccl_oom").reach(60).takes(&[Take::after(
        "host_needed",
        "alloc",
        Bytes,
    )]),
    Rule::new("NCCL error in:").needs(&["out of memory"]).kind("nccl_oom").takes(VERSION),
    Rule::new("NCCL error in:").unless(&["out of memory"]).kind("nccl_error").takes(VERSION),
    Rule::new("ncclUnhandledCudaError: Call to CUDA function failed")
        .needs(&["out of memory"])
        .kind("nccl_oom")
        .reach(160),
    Rule::new("NCCL operation").needs(&["unhandled cuda error"]).kind("nccl_error").reach(120),
    Rule::new("NCCL Error 1: unhandled cuda error").kind("nccl_error").reach(100),
];

const VERSION: &[Take] = &[Take::after("nccl_version", "NCCL version", Word)];
