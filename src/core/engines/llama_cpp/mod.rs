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

use super::{Detail, Engine, EngineOption, Inputs, Surface, option};
use crate::memory::{Ledger, WeightsSpec};
use crate::model::Model;
use crate::units::Problem;

/// The ledger of settings that another engine hands on.
///
/// Errors: as the ledger.
pub(super) fn ledger_of(inputs: &Inputs<'_>, detail: Detail) -> Result<Ledger, Problem> {
    ledger::ledger(inputs, detail)
}

/// The surface of settings that another engine hands on.
///
/// Errors: as the ledger.
pub(super) fn surface_of(inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
    surface::surface(inputs)
}

/// Bytes of each layer of the file, and of the output (norm, and head or tied embedding).
///
/// Errors: a quantisation that GGUF does not have.
pub(super) fn layer_bytes(model: &Model, spec: &WeightsSpec) -> Result<(Vec<u64>, u64), Problem> {
    let place = place::place(model.layers.len(), 0, &[1.0], true);
    let layout = parts::Layout::new(model, spec, place)?;
    let mut layers = vec![0_u64; model.layers.len()];
    for piece in &layout.pieces {
        if let Some(sum) = piece.layer.and_then(|layer| layers.get_mut(layer)) {
            *sum = sum.saturating_add(piece.bytes);
        }
    }
    let output = layout.bytes(None, parts::Part::Output);
    Ok((layers, output.saturating_add(layout.bytes(None, parts::Part::FinalNorm))))
}

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
