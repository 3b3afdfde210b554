//! llama.cpp: what its buffers take from devices and host, by build.
//!
//! Everything is allocated at start: weights by the layers' places, the cache for the whole context, and one buffer
//! for the results of a batch, laid out by ggml's allocator. Files: `version` (which rules), `settings` (defaults),
//! `place` and `parts` (which tensor lies where), `cells` (sizes of the cache), `graph` (the compute buffers),
//! `account` (all of it), `rows` and `ledger` (the answer), `surface` (the answer at many points).

mod account;
mod cells;
mod graph;
mod ledger;
mod parts;
mod place;
mod rows;
mod settings;
mod surface;
mod version;

use super::{Detail, Engine, EngineOption, Inputs, Surface};
use crate::memory::Ledger;
use crate::units::Problem;

/// llama.cpp's server.
pub(super) struct LlamaCpp;

/// Options that matter, with their defaults in the newest build.
const OPTIONS: &[EngineOption] = &[
    option("max_model_len", "--ctx-size", "the model's own, reduced to what fits (4096 before b7407)"),
    option("gpu_layers", "--n-gpu-layers", "all"),
    option("max_num_seqs", "--parallel", "4 over one buffer (1 before b6924)"),
    option("max_num_batched_tokens", "--batch-size", "2048"),
    option("ubatch", "--ubatch-size", "512"),
    option("attention", "--flash-attn", "auto (off before b6325)"),
    option("kv_cache_dtype", "--cache-type-k", "f16"),
    option("kv_cache_dtype_v", "--cache-type-v", "as K"),
    option("swa_full", "--swa-full", "off"),
    option("kv_unified", "--kv-unified", "on unless --parallel is given"),
    option("no_kv_offload", "--no-kv-offload", "off"),
    option("n_cpu_moe", "--n-cpu-moe", "0"),
    option("split_mode", "--split-mode", "layer"),
    option("tensor_split", "--tensor-split", "equal"),
    option("no_mmap", "--no-mmap", "off"),
    option("engine_version", "--version", "b10500"),
];

const fn option(field: &'static str, flag: &'static str, default: &'static str) -> EngineOption {
    EngineOption { field, flag, default }
}

impl Engine for LlamaCpp {
    fn id(&self) -> &'static str {
        "llama_cpp"
    }
    fn name(&self) -> &'static str {
        "llama.cpp"
    }
    fn options(&self) -> &'static [EngineOption] {
        OPTIONS
    }
    fn ledger(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        ledger::ledger(inputs, Detail::Whole)
    }
    fn figures(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        ledger::ledger(inputs, Detail::Figures)
    }
    fn surface(&self, inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
        surface::surface(inputs)
    }
}
