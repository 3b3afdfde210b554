//! What TensorRT-LLM and its Triton back end print. GB in its budget lines is 2^30 bytes.
//!
//! Sources: `cpp/tensorrt_llm/runtime/tllmRuntime.cpp`, `cpp/tensorrt_llm/runtime/memoryCounters.cpp`
//! (`bytesToString`), `cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp`,
//! `tensorrt_llm/_torch/pyexecutor/_util.py` and `py_executor_creator.py`; github.com/NVIDIA/TensorRT-LLM.

use crate::evidence::number::Unit::{Binary, Bytes, Count, Gib, Real, Word};
use crate::evidence::rule::{Rule, Take};

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("tensorrt_llm")
}

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("CUDA runtime error in")
        .needs(&["out of memory"])
        .kind("trtllm_cuda_oom")
        .engine("tensorrt_llm")
        .reach(200),
    rule("Executor creation failed due to insufficient GPU memory")
        .kind("trtllm_executor_oom")
        .reach(700)
        .takes(&[
            Take::after("total_capacity", "Total GPU memory (GiB):", Gib),
            Take::after("free", "Free GPU memory before component creation attempt (GiB):", Gib),
            Take::after("process", "component could not be created:", Word),
        ]),
    rule("which might indicate insufficient GPU memory").kind("trtllm_executor_oom").reach(40),
    rule("Loaded engine size:").reach(20).takes(&[Take::after("weights", "", Binary)]),
    rule("[MemUsageChange] Allocated")
        .reach(60)
        .needs(&["for execution context memory"])
        .takes(&[Take::after("activation_peak", "Allocated", Binary)]),
    rule("Allocated").needs(&["GPU memory for runtime buffers"]).reach(60).one_line().takes(&[Take::after(
        "runtime_buffers",
        "",
        Binary,
    )]),
    rule("Allocated").needs(&["GPU memory for decoder"]).reach(60).one_line().takes(&[Take::after(
        "decoder_buffers",
        "",
        Binary,
    )]),
    rule("Allocated").needs(&["for max tokens in paged KV cache"]).reach(80).one_line().takes(&[
        Take::after("kv_available", "", Binary),
        Take::after("kv_tokens", "paged KV cache (", Count),
    ]),
    rule("Max tokens in paged KV cache:")
        .reach(80)
        .takes(&[Take::after("kv_tokens", "", Count), Take::after("kv_available", "Allocating", Bytes)]),
    rule("Memory usage when calculating max tokens in paged kv cache:").reach(160).takes(&[
        Take::after("total_capacity", "total:", Binary),
        Take::after("kv_available", "available:", Binary),
    ]),
    rule("Number of blocks in KV cache primary pool:").reach(20).takes(&[Take::after("blocks", "", Count)]),
    rule("Number of tokens per block:").reach(20).takes(&[Take::after("block_size", "", Count)]),
    rule("TensorRT-LLM version:").reach(40).one_line().takes(&[Take::after("engine_version", "", Word)]),
    rule("Total Weights Memory:").reach(30).takes(&[Take::after("weights", "", Bytes)]),
    rule("Total Activation Memory:").reach(30).takes(&[Take::after("activation_peak", "", Bytes)]),
    rule("free_gpu_memory_fraction set to").reach(20).takes(&[Take::after(
        "free_gpu_memory_fraction",
        "",
        Real,
    )]),
];
