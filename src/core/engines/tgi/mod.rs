//! Text Generation Inference: a prefill of the largest batch is run, and what it leaves becomes blocks, less a room
//! for surprises whose size and base changed often. Only its Flash models are modelled; the others have no pool.

mod costs;
mod ledger;
mod prefill;
mod version;

use super::pooled::Pooled;
use super::{EngineOption, option};

/// Options that matter, with their defaults in the newest version.
const OPTIONS: &[EngineOption] = &[
    option("max_model_len", "--max-total-tokens", "the model's own, up to the pool (4096 before 3.0)"),
    option("gpu_memory_utilization", "--cuda-memory-fraction", "1.0"),
    option("kv_cache_dtype", "--kv-cache-dtype", "auto"),
    option("block_size", "ATTENTION", "1 (flashinfer), 256 (flashdecoding), 16 (paged)"),
    option("max_num_seqs", "--max-batch-size", "128 concurrent requests"),
    option("max_num_batched_tokens", "--max-batch-prefill-tokens", "from device and model (4096 before 3.0)"),
    option("max_total_tokens", "--max-batch-total-tokens", "what fits"),
    option("enforce_eager", "--cuda-graphs 0", "off"),
    option("engine_version", "TGI version", version::NEWEST_TEXT),
];

/// Text Generation Inference.
pub(super) const ENGINE: Pooled = Pooled { id: "tgi", name: "TGI", options: OPTIONS, plan: ledger::plan };
