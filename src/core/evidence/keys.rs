//! Names of figures and kinds of errors: the words of design.md 5, and those beside them.

/// What a figure is, for showing and for choosing between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Bytes.
    Bytes,
    /// A whole number.
    Count,
    /// A ratio or a number with a fraction.
    Real,
    /// A name.
    Text,
    /// On or off.
    Flag,
}

/// Which of several figures of one name stands for the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// That of the first error; where none has it, the last printed.
    Last,
    /// The first printed.
    First,
    /// The smallest over ranks: a pool is as large as the poorest rank allows.
    Least,
    /// The greatest over ranks: the fullest rank decides.
    Most,
    /// The sum over devices of the last printed for each.
    Sum,
}

/// One name.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name, as in the JSON.
    pub id: &'static str,
    /// What it is.
    pub kind: KeyKind,
    /// Which of several stands for the text.
    pub pick: Pick,
}

const fn key(id: &'static str, kind: KeyKind, pick: Pick) -> Key {
    Key { id, kind, pick }
}

use KeyKind::{Bytes, Count, Flag, Real, Text};
use Pick::{First, Last, Least, Most, Sum};

/// Every name, in the order shown.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("tried_to_allocate", Bytes, Last),
    key("total_capacity", Bytes, Last),
    key("free", Bytes, Last),
    key("this_process", Bytes, Last),
    key("allocated_by_pytorch", Bytes, Last),
    key("reserved_unallocated", Bytes, Last),
    key("reserved_total", Bytes, Last),
    key("private_pools", Bytes, Last),
    key("other_processes", Bytes, Last),
    key("allowed", Bytes, Last),
    key("other_allocations", Bytes, Last),
    key("weights", Bytes, Most),
    key("kv_available", Bytes, Least),
    key("kv_tokens", Count, Least),
    key("max_concurrency", Real, Least),
    key("activation_peak", Bytes, Most),
    key("non_torch", Bytes, Most),
    key("cuda_graphs", Bytes, Most),
    key("cuda_graphs_estimate", Bytes, Most),
    key("blocks", Count, Least),
    key("cpu_blocks", Count, Least),
    key("kv_needed", Bytes, Last),
    key("kv_swap", Bytes, Last),
    key("budget", Bytes, Last),
    key("weights_and_non_torch", Bytes, Most),
    key("block_bytes", Bytes, Last),
    key("torch_peak", Bytes, Most),
    key("initial_free", Bytes, Last),
    key("freed", Bytes, Last),
    key("still_in_use", Bytes, Last),
    key("free_after_load", Bytes, Least),
    key("free_after_pool", Bytes, Least),
    key("free_after_graphs", Bytes, Least),
    key("recurrent_state", Bytes, Most),
    key("weights_host", Bytes, Sum),
    key("kv_host", Bytes, Sum),
    key("compute_host", Bytes, Sum),
    key("output_buffer", Bytes, Last),
    key("kv_total", Bytes, Last),
    key("required_full", Bytes, Last),
    key("required_partial", Bytes, Last),
    key("projector", Bytes, Last),
    key("runtime_buffers", Bytes, Most),
    key("decoder_buffers", Bytes, Most),
    key("peak_allocated", Bytes, Most),
    key("peak_reserved", Bytes, Most),
    key("non_releasable", Bytes, Most),
    key("requested", Bytes, Most),
    key("largest_free_block", Bytes, Last),
    key("inactive", Bytes, Last),
    key("active", Bytes, Last),
    key("fragmented", Flag, Last),
    key("oom_events", Count, Most),
    key("alloc_retries", Count, Most),
    key("segments", Count, Last),
    key("blocks_live", Count, Last),
    key("host_limit", Bytes, Last),
    key("host_used", Bytes, Last),
    key("host_needed", Bytes, Last),
    key("anon_rss", Bytes, Last),
    key("shmem_rss", Bytes, Last),
    key("total_vm", Bytes, Last),
    key("exit_code", Count, Last),
    key("xid", Count, Last),
    key("nccl_version", Text, First),
    key("process", Text, Last),
    key("constraint", Text, Last),
    key("tokens_wanted", Count, Last),
    key("tokens_available", Count, Last),
    key("tokens_evictable", Count, Last),
    key("tokens_available_swa", Count, Last),
    key("tokens_needed", Count, Last),
    key("estimated_max_model_len", Count, Last),
    key("retracted", Count, Last),
    key("preemptions", Count, Most),
    key("token_usage", Real, Most),
    key("layers_offloaded", Count, Last),
    key("layers_total", Count, Last),
    key("engine", Text, First),
    key("engine_version", Text, First),
    key("engine_core", Text, First),
    key("torch_version", Text, First),
    key("gpu", Text, First),
    key("model", Text, First),
    key("dtype", Text, Last),
    key("quantization", Text, Last),
    key("kv_cache_dtype", Text, Last),
    key("max_model_len", Count, Last),
    key("max_num_seqs", Count, Last),
    key("max_num_batched_tokens", Count, Last),
    key("block_size", Count, Last),
    key("ubatch", Count, Last),
    key("gpu_memory_utilization", Real, Last),
    key("mem_fraction_static", Real, Last),
    key("free_gpu_memory_fraction", Real, Last),
    key("tp", Count, Last),
    key("pp", Count, Last),
    key("dp", Count, Last),
    key("enforce_eager", Flag, Last),
    key("kv_cache_memory", Bytes, Last),
    key("kv_cache_memory_full", Bytes, Last),
    key("flash_attention", Flag, Last),
    key("device", Count, Last),
    key("micro_batch", Count, Last),
    key("zero_stage", Count, Last),
    key("iteration", Count, Last),
];

/// The row of a name.
pub fn key_of(id: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.id == id)
}

/// What an error means for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Memory ran out.
    Memory,
    /// The same failure told again by what caught it, and more precisely: takes the place of the kinds it wraps.
    Wrapper,
    /// A notice: work goes on.
    Notice,
    /// No question of memory, though often taken for one.
    LookAlike,
}

/// One kind of error.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Id, as in the JSON.
    pub id: &'static str,
    /// What it means.
    pub weight: Weight,
}

const fn kind(id: &'static str, weight: Weight) -> Kind {
    Kind { id, weight }
}

use Weight::{LookAlike, Memory, Notice, Wrapper};

/// Every kind.
#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    kind("torch_oom", Memory),
    kind("torch_oom_legacy", Memory),
    kind("thc_oom", Memory),
    kind("backend_oom", Memory),
    kind("torch_size_bug", Memory),
    kind("nvml_assert", Memory),
    kind("cuda_error_oom", Memory),
    kind("cublas_alloc_failed", Memory),
    kind("cublas_not_initialized", Memory),
    kind("cudnn_alloc_failed", Memory),
    kind("nccl_oom", Memory),
    kind("vllm_free_on_startup", Memory),
    kind("vllm_no_cache_blocks", Memory),
    kind("vllm_kv_needed", Memory),
    kind("vllm_profiling_assert", Memory),
    kind("vllm_sampler_warmup", Wrapper),
    kind("vllm_cumem_oom", Memory),
    kind("vllm_preemption", Notice),
    kind("sglang_not_enough_memory", Memory),
    kind("sglang_graph_capture", Wrapper),
    kind("sglang_prefill_oom", Memory),
    kind("sglang_decode_oom", Memory),
    kind("sglang_retract", Notice),
    kind("tgi_warmup", Wrapper),
    kind("trtllm_cuda_oom", Memory),
    kind("trtllm_executor_oom", Wrapper),
    kind("ggml_backend_buffer", Memory),
    kind("ggml_gallocr", Memory),
    kind("ggml_cuda_oom", Memory),
    kind("ollama_no_fit", Memory),
    kind("xla_resource_exhausted", Memory),
    kind("tensorflow_oom", Memory),
    kind("lmdeploy_oom", Memory),
    kind("hami_oom", Memory),
    kind("host_oom", Memory),
    kind("host_alloc_failed", Memory),
    kind("ray_oom", Memory),
    kind("shm_full", Memory),
    kind("bitsandbytes_oom", Memory),
    kind("allocator_pressure", Notice),
    kind("illegal_memory_access", LookAlike),
    kind("device_assert", LookAlike),
    kind("misaligned_address", LookAlike),
    kind("launch_failure", LookAlike),
    kind("no_kernel_image", LookAlike),
    kind("driver_too_old", LookAlike),
    kind("triton_shared_memory", LookAlike),
    kind("nccl_error", LookAlike),
    kind("xid13", LookAlike),
    kind("xid31", LookAlike),
    kind("xid43", LookAlike),
    kind("xid45", LookAlike),
    kind("xid48", LookAlike),
    kind("xid63", LookAlike),
    kind("xid64", LookAlike),
    kind("xid74", LookAlike),
    kind("xid79", LookAlike),
    kind("xid94", LookAlike),
    kind("xid95", LookAlike),
    kind("xid_other", LookAlike),
    kind("hidden_cause", LookAlike),
];

/// The row of a kind.
pub fn kind_of(id: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.id == id)
}
