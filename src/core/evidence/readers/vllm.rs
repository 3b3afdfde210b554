//! What vLLM prints: refusals, start-up figures, notices. Its `GB` is 2^30 bytes.
//!
//! Sources: `vllm/worker/worker.py` and `vllm/executor/*` (V0, 0.2 to 0.10), `vllm/v1/worker/gpu_worker.py`
//! (`determine_available_memory`, `compile_or_warm_up_model`), `vllm/v1/worker/gpu_model_runner.py` (`load_model`,
//! `capture_model`), `vllm/v1/core/kv_cache_utils.py` (`_report_kv_cache_config`, `check_enough_kv_cache_memory`),
//! `csrc/cumem_allocator.cpp`, 0.8 to 0.29; github.com/vllm-project/vllm.

use crate::evidence::number::Unit::{Binary, Bytes, Count, Real, Word};
use crate::evidence::rule::{Rule, Take};

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("vllm")
}

/// `(free/total GiB)`: the first figure has no unit of its own.
const FREE_OF_TOTAL: &[Take] = &[
    Take::after("free", "Free memory on device (", crate::evidence::number::Unit::Gib),
    Take::after("total_capacity", "/", Binary),
    Take::after("gpu_memory_utilization", "GPU memory utilization (", Real),
    Take::after("gpu_memory_utilization", "GPU memory utilization is (", Real),
    Take::before("budget", "). Decrease GPU memory", Binary),
    Take::before("budget", "). Actual usage", Binary),
    Take::before("budget", "). Reduce", Binary),
    Take::before("weights", "for weight", Binary),
    Take::before("weights_and_non_torch", "for consumed memory", Binary),
    Take::before("activation_peak", "for peak activation", Binary),
    Take::before("non_torch", "for non-torch memory", Binary),
    Take::before("cuda_graphs", "for CUDAGraph memory", Binary),
    Take::after("kv_cache_memory", "--kv-cache-memory=", Bytes),
    Take::after("kv_cache_memory_full", "to fit into requested memory, or --kv-cache-memory=", Bytes),
    Take::after("kv_available", "Current kv cache memory in use is", Binary),
];

/// Refusals and errors.
pub(crate) const ERRORS: &[Rule] = &[
    rule("Free memory on device")
        .needs(&["is less than desired GPU memory utilization"])
        .kind("vllm_free_on_startup")
        .takes(FREE_OF_TOTAL),
    rule("No available memory for the cache blocks").kind("vllm_no_cache_blocks"),
    rule("is larger than the maximum number of tokens that can be stored in KV cache (")
        .kind("vllm_kv_needed")
        .takes(&[Take::after("kv_tokens", "stored in KV cache (", Count)]),
    rule("The model's max seq len (").takes(&[Take::after("max_model_len", "max seq len (", Count)]),
    rule("To serve at least one request with the model").kind("vllm_kv_needed").takes(&[
        Take::after("max_model_len", "max seq len (", Count),
        Take::before("kv_needed", "KV cache is needed", Binary),
        Take::after("kv_available", "available KV cache memory (", Binary),
        Take::after("estimated_max_model_len", "estimated maximum model length is", Count),
    ]),
    rule("Error in memory profiling. Initial free memory").kind("vllm_profiling_assert").takes(&[
        Take::after("initial_free", "Initial free memory", Binary),
        Take::after("initial_free", "Initial free memory", Bytes),
        Take::after("free", "current free memory", Binary),
        Take::after("free", "current free memory", Bytes),
    ]),
    rule("CUDA out of memory occurred when warming up sampler with")
        .kind("vllm_sampler_warmup")
        .takes(&[Take::after("max_num_seqs", "warming up sampler with", Count)]),
    rule("CUDA out of memory occurred when warming up pooler with")
        .kind("vllm_sampler_warmup")
        .takes(&[Take::after("max_num_seqs", "warming up pooler with", Count)]),
    rule("CUDA Error: out of memory at").needs(&["cumem_allocator"]).kind("vllm_cumem_oom").reach(200),
    rule("is preempted by PreemptionMode.").kind("vllm_preemption").takes(&[
        Take::after("preemptions", "total_num_cumulative_preemption=", Count),
        Take::after("preemptions", "total_cumulative_preemption_cnt=", Count),
    ]),
    Rule::new("Engine core initialization failed. See root cause above").kind("hidden_cause").engine("vllm"),
    Rule::new("EngineCore encountered an issue. See stack trace").kind("hidden_cause").engine("vllm"),
];

/// Figures printed at start.
pub(crate) const START: &[Rule] = &[
    rule("Free memory on device (").needs(&["Actual usage is"]).reach(900).takes(FREE_OF_TOTAL),
    rule("Loading model weights took").one_line().takes(&[Take::after("weights", "weights took", Binary)]),
    rule("Model loading took").one_line().takes(&[Take::after("weights", "loading took", Binary)]),
    rule("Model weights take").one_line().takes(&[Take::after("weights", "weights take", Binary)]),
    rule("Available KV cache memory:").reach(40).takes(&[Take::after("kv_available", "", Binary)]),
    rule("GPU KV cache size:").reach(40).takes(&[Take::after("kv_tokens", "", Count)]),
    rule("Maximum concurrency for").reach(80).takes(&[
        Take::after("max_model_len", "", Count),
        Take::after("max_concurrency", "per request:", Real),
    ]),
    rule("# GPU blocks:").reach(60).takes(BLOCKS),
    rule("# CUDA blocks:").reach(60).takes(BLOCKS),
    rule("# cuda blocks:").reach(60).takes(BLOCKS),
    rule("# rocm blocks:").reach(60).takes(BLOCKS),
    rule("Graph capturing finished in").reach(60).takes(&[Take::after("cuda_graphs", "took", Binary)]),
    rule("CUDA graph pool memory:").reach(120).takes(&[
        Take::after("cuda_graphs", "", Binary),
        Take::before("cuda_graphs_estimate", "(estimated)", Binary),
    ]),
    rule("CUDA graph memory:").reach(40).takes(&[Take::after("cuda_graphs_estimate", "", Binary)]),
    rule("can use total_gpu_memory (").reach(160).takes(&[
        Take::after("total_capacity", "", Binary),
        Take::after("gpu_memory_utilization", "gpu_memory_utilization (", Real),
        Take::after("budget", ") =", Binary),
    ]),
    rule("model weights take").needs(&["the rest of the memory reserved for KV Cache"]).takes(&[
        Take::after("weights", "model weights take", Binary),
        Take::after("non_torch", "non_torch_memory takes", Binary),
        Take::after("activation_peak", "PyTorch activation peak memory takes", Binary),
        Take::after("kv_available", "reserved for KV Cache is", Binary),
    ]),
    rule("Memory profiling results:").reach(500).takes(&[
        Take::after("total_capacity", "total_gpu_memory=", Binary),
        Take::after("torch_peak", "peak_torch_memory=", Binary),
        Take::after("non_torch", "non_torch_memory=", Binary),
        Take::after("kv_available", "kv_cache_size=", Binary),
        Take::after("gpu_memory_utilization", "gpu_memory_utilization=", Real),
    ]),
    rule("The current --gpu-memory-utilization=").reach(60).takes(&[Take::after(
        "gpu_memory_utilization",
        "",
        Real,
    )]),
    rule("Setting attention block size to").reach(40).takes(&[Take::after("block_size", "", Count)]),
    rule("Chunked prefill is enabled with max_num_batched_tokens=").reach(40).takes(&[Take::after(
        "max_num_batched_tokens",
        "",
        Count,
    )]),
    rule("Using max model len").reach(30).takes(&[Take::after("max_model_len", "", Count)]),
    rule("vLLM API server version").reach(40).one_line().takes(&[Take::after("engine_version", "", Word)]),
    rule("Overriding num_gpu_blocks=").reach(80).takes(&[Take::after(
        "blocks",
        "num_gpu_blocks_override=",
        Count,
    )]),
    rule("It took").needs(&["seconds to fall asleep"]).reach(60),
    Rule::new("Sleep mode freed").engine("vllm").reach(80).takes(&[
        Take::after("freed", "", Binary),
        Take::before("still_in_use", "memory is still in use", Binary),
    ]),
];

const BLOCKS: &[Take] = &[Take::after("blocks", "", Count), Take::after("cpu_blocks", "CPU blocks:", Count)];
