//! TensorRT-LLM: what is free once weights and the buffers of the largest batch are there, times a share, becomes
//! blocks, rounded up. Its engines (before 1.0) keep those buffers; its PyTorch backend runs them once and looks.

mod costs;
mod ledger;
mod version;

use super::pooled::Pooled;
use super::{EngineOption, option};

/// Options that matter, with their defaults in the newest version.
const OPTIONS: &[EngineOption] = &[
    option("free_gpu_memory_fraction", "--kv_cache_free_gpu_memory_fraction", "0.9"),
    option("max_total_tokens", "kv_cache_config.max_tokens", "what fits"),
    option("max_model_len", "--max_seq_len", "the model's own"),
    option("kv_cache_dtype", "kv_cache_config.dtype", "auto"),
    option("block_size", "tokens_per_block", "32 (64 before 0.19)"),
    option("max_num_seqs", "--max_batch_size", "2048 (256 before 0.14)"),
    option("max_num_batched_tokens", "--max_num_tokens", "8192"),
    option("max_cudagraph_capture_size", "cuda_graph_config.max_batch_size", "128"),
    option("enforce_eager", "cuda_graph_config: null", "off"),
    option("engine_version", "TensorRT-LLM version", version::NEWEST_TEXT),
];

/// TensorRT-LLM.
pub(super) const ENGINE: Pooled =
    Pooled { id: "tensorrt_llm", name: "TensorRT-LLM", options: OPTIONS, plan: ledger::plan };
