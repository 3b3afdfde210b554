//! SGLang: what one of its scheduler processes takes from a device, by version.
//!
//! A share `f` of the memory that is free before loading holds weights and pools; graphs, attention buffers, the
//! table of token slots and the forward pass live in the rest and are measured by nobody before they are needed.
//! So a share too small refuses to start, and a share too large runs out of memory later. Files: `version`,
//! `settings`, `fraction` (the share where not given), `cells` (bytes of a token), `costs`, `pools`, `rows`,
//! `ledger`.

mod cells;
mod costs;
mod fraction;
mod ledger;
mod pools;
mod rows;
mod settings;
mod version;

use super::pooled::Pooled;
use super::{EngineOption, option};

/// Options that matter, with their defaults in the newest version.
const OPTIONS: &[EngineOption] = &[
    option("mem_fraction_static", "--mem-fraction-static", "from device, chunk, graphs and ranks"),
    option("max_model_len", "--context-length", "the model's own"),
    option("kv_cache_dtype", "--kv-cache-dtype", "auto"),
    option("block_size", "--page-size", "1 (64 on B200)"),
    option("max_num_seqs", "--max-running-requests", "2048 to 4096, by tokens of the pool"),
    option("max_num_batched_tokens", "--chunked-prefill-size", "2048 to 16384, by device"),
    option("max_total_tokens", "--max-total-tokens", "what fits"),
    option("max_cudagraph_capture_size", "--cuda-graph-max-bs", "8 to 512, by device and ranks"),
    option("enforce_eager", "--disable-cuda-graph", "off"),
    option("prefix_caching", "not --disable-radix-cache", "on"),
    option("swa_full_tokens_ratio", "--swa-full-tokens-ratio", "0.8"),
    option("mamba_full_memory_ratio", "--mamba-full-memory-ratio", "0.9"),
    option("dp_attention", "--enable-dp-attention", "off"),
    option("num_speculative_tokens", "--speculative-num-draft-tokens", "0"),
    option("engine_version", "sglang version", version::NEWEST_TEXT),
];

/// SGLang.
pub(super) const ENGINE: Pooled =
    Pooled { id: "sglang", name: "SGLang", options: OPTIONS, plan: ledger::plan };
