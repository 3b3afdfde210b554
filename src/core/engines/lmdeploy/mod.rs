//! LMDeploy's TurboMind: weights are loaded, a share of what is then free becomes blocks, the rest holds buffers and
//! the forward pass. It captures no CUDA graphs. Its PyTorch engine is not modelled.

mod costs;
mod ledger;
mod version;

use super::pooled::Pooled;
use super::{EngineOption, option};

/// Options that matter, with their defaults in the newest version.
const OPTIONS: &[EngineOption] = &[
    option("free_gpu_memory_fraction", "--cache-max-entry-count", "0.8 (0.5 of the total before 0.2.2)"),
    option("max_model_len", "--session-len", "the model's own"),
    option("kv_cache_dtype", "--quant-policy", "auto (0); int8 (8), int4 (4)"),
    option("block_size", "--cache-block-seq-len", "64 (128 before 0.3)"),
    option("max_num_seqs", "--max-batch-size", "1024 on H100, 384 on A100, else 128"),
    option("max_num_batched_tokens", "--max-prefill-token-num", "8192"),
    option("engine_version", "lmdeploy version", version::NEWEST_TEXT),
];

/// LMDeploy.
pub(super) const ENGINE: Pooled =
    Pooled { id: "lmdeploy", name: "LMDeploy", options: OPTIONS, plan: ledger::plan };
