//! Weights: bytes of every tensor on the fullest rank, by scheme.

mod adapter;
mod bitsandbytes;
mod declared;
mod file;
mod four_bit_float;
mod gguf;
mod group_int4;
mod rank;
mod row_scaled;
mod serving;
mod split;
mod stored;

pub use adapter::{AdapterSlots, adapter_slots};
pub use declared::{Effective, effective_quantization};
pub use file::file_notes;

pub(crate) use gguf::{FileTensor, file_tensors};

use super::{Parallel, PhaseId, Provenance, Residency, Term, TermId, WeightsSpec, Working};
use crate::model::{Model, Quantization};
use crate::units::Problem;
use rank::{Rank, fullest};
use stored::Scheme;

/// Who lays the tensors out in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Serving engines (vLLM, SGLang): vocabulary padded to 64 rows; rotary tables, expanded latent projections
    /// and the allocator's rounding of large tensors counted, as their logs do.
    Serving,
    /// The same on devices before Hopper, whose kernels for MXFP4 pad more.
    ServingMarlin,
    /// transformers: every tensor as the class declares it.
    Transformers,
}

impl Layout {
    /// The layout of a serving engine on a device of architecture `arch` (compute capability times ten).
    ///
    /// Formula: none; a choice.
    /// Accuracy: decides the padding of MXFP4 only, up to 9 % of the experts' bytes.
    /// Source: `get_mxfp4_backend` in vLLM's mxfp4.py.
    ///
    /// Example:
    /// ```
    /// use oom_ledger_core::memory::weights::Layout;
    /// assert_eq!(Layout::serving(Some(80)), Layout::ServingMarlin);
    /// assert_eq!(Layout::serving(Some(90)), Layout::Serving);
    /// ```
    pub fn serving(arch: Option<u32>) -> Layout {
        if arch.is_some_and(|a| (60..90).contains(&a)) { Layout::ServingMarlin } else { Layout::Serving }
    }
}

/// Names of the GGUF file types that `gguf:…` accepts.
///
/// ```
/// assert!(oom_ledger_core::memory::weights::gguf_types().any(|t| t == "Q4_K_M"));
/// ```
///
/// Formula: none; a list.
/// Accuracy: exact.
/// Source: file types of llama.cpp's quantize tool, <https://github.com/ggml-org/llama.cpp/blob/master/tools/quantize>.
/// Example: above.
pub fn gguf_types() -> impl Iterator<Item = &'static str> {
    gguf::FILES.iter().map(|(name, _)| *name)
}

/// The scheme that the spec, or else the checkpoint, asks for.
fn scheme<'a>(model: &'a Model, spec: &'a WeightsSpec, layout: Layout) -> Result<Scheme<'a>, Problem> {
    let quantization = effective_quantization(model, spec).quantization;
    let gguf = match quantization {
        Some(Quantization::Gguf(kind)) => Some(gguf::Recipe::new(kind, model)?),
        _ => None,
    };
    let experts = model.tensors.iter().any(|g| g.expert);
    let file = file::File::new(model, spec);
    Ok(Scheme { dtype: spec.dtype, quantization, gguf, file, layout, experts })
}

/// Bytes of the weights of the fullest rank; the number alone, for searches and plots.
///
/// Formula, Accuracy, Source: those of [`weights`].
///
/// Example:
/// ```
/// use oom_ledger_core::memory::{Parallel, WeightsSpec, weights::{Layout, weights_bytes}};
/// use oom_ledger_core::model::Model;
/// let config = serde_json::json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
///     "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
///     "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256});
/// let model = Model::from_config("llama-3.1-8b", &config).unwrap();
/// let bytes = weights_bytes(&model, &WeightsSpec::default(), Parallel::default(), Layout::Transformers);
/// assert_eq!(bytes.unwrap(), 2 * 8_030_261_248);
/// ```
///
/// Errors: as [`weights`].
pub fn weights_bytes(
    model: &Model,
    spec: &WeightsSpec,
    parallel: Parallel,
    layout: Layout,
) -> Result<u64, Problem> {
    Ok(fullest(model, &scheme(model, spec, layout)?, parallel)?.0.bytes)
}

/// [`weights`] without symbols and lines of its working: equal in every figure, and several times as fast.
///
/// Errors: as [`weights`].
pub(crate) fn weights_figures(
    model: &Model,
    spec: &WeightsSpec,
    parallel: Parallel,
    layout: Layout,
    measured: Option<u64>,
) -> Result<Term, Problem> {
    let scheme = scheme(model, spec, layout)?;
    let rank = fullest(model, &scheme, parallel)?.0;
    let formula = if scheme.file.is_some() { FORMULA_FILE } else { FORMULA };
    Ok(term(rank, measured, Working::new(formula, measured.unwrap_or(rank.bytes))))
}

/// Bytes of the weights on a rank of every pipeline stage, in order.
///
/// Formula, Accuracy, Source: those of [`weights`], for each stage.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::{Parallel, WeightsSpec, weights::{Layout, weights_by_stage, weights_bytes}};
/// use oom_ledger_core::model::preset;
/// let model = preset("llama-3.1-8b").unwrap().model().unwrap();
/// let parallel = Parallel { pipeline: 2, ..Parallel::default() };
/// let spec = WeightsSpec::default();
/// let stages = weights_by_stage(&model, &spec, parallel, Layout::Serving).unwrap();
/// let fullest = weights_bytes(&model, &spec, parallel, Layout::Serving).unwrap();
/// assert_eq!(stages.iter().max(), Some(&fullest));
/// ```
///
/// Errors: as [`weights`].
pub fn weights_by_stage(
    model: &Model,
    spec: &WeightsSpec,
    parallel: Parallel,
    layout: Layout,
) -> Result<Vec<u64>, Problem> {
    rank::by_stage(model, &scheme(model, spec, layout)?, parallel)
}

const FORMULA: &str = "Σ count · bytes(shape / t, scheme)";
/// The same from a checkpoint's own header.
const FORMULA_FILE: &str = "Σ bytes(file) · elements(shape / t) / elements(shape)";

/// The row of a rank, or of what was measured instead.
fn term(rank: Rank, measured: Option<u64>, working: Working) -> Term {
    let Rank { bytes, low, high, .. } = rank;
    let term = Term {
        id: TermId::Weights,
        bytes,
        low,
        high,
        residency: Residency::Resident,
        phases: PhaseId::ALL.to_vec(),
        provenance: if low == high { Provenance::Exact } else { Provenance::Bounded },
        source: "",
        working,
    };
    match measured {
        Some(bytes) => Term {
            bytes,
            low: bytes,
            high: bytes,
            provenance: Provenance::Measured,
            source: "measured.weights_bytes",
            ..term
        },
        None => term,
    }
}

/// The weights of the fullest rank, in bytes, with every tensor group as a line of the working.
///
/// Formula: Σ over tensor groups of count · bytes(shape on this rank, scheme).
/// With `weights.file`: Σ over its tensors of their bytes in the file, times the share of the elements that the
/// rank holds of the same tensor.
/// Symbols: t tensor, p pipeline, x expert parallel degree; e bytes per unquantised element.
/// Includes: scales and zero points; in serving layouts also rotary tables, expanded latent projections and the
/// allocator's rounding of large tensors, as engine logs do. Excludes: memory used while loading, adapter slots.
/// Accuracy: exact for tensors whose shape decides. Against 22 start-up logs on CUDA devices (bf16, fp8, int8, MXFP4;
/// the serving rules were learned from the same logs): median error 0.01 %, worst 0.13 %. GGUF: 99 of 100 published
/// files within 1 KiB of one end or the point, file header aside. AWQ, GPTQ, bitsandbytes and NVFP4 follow from
/// their layouts; no clean log was at hand.
/// Source: shapes of the Hugging Face classes; scheme layouts as in the files of `memory/weights`.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::{Parallel, WeightsSpec, weights::{Layout, weights}};
/// use oom_ledger_core::model::Model;
/// let config = serde_json::json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
///     "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
///     "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256});
/// let model = Model::from_config("llama-3.1-8b", &config).unwrap();
/// let two = Parallel { tensor: 2, ..Parallel::default() };
/// let term = weights(&model, &WeightsSpec::default(), two, Layout::Transformers, None).unwrap();
/// assert_eq!(term.working.parts.iter().map(|p| p.bytes).sum::<u64>(), term.bytes);
/// ```
///
/// Errors: a degree that does not divide the heads (`parallel.tensor`) or exceeds the layers
/// (`parallel.pipeline`); an unknown GGUF type (`weights.quantization`).
pub fn weights(
    model: &Model,
    spec: &WeightsSpec,
    parallel: Parallel,
    layout: Layout,
    measured: Option<u64>,
) -> Result<Term, Problem> {
    let scheme = scheme(model, spec, layout)?;
    let (rank, holding) = fullest(model, &scheme, parallel)?;
    let name = match (&spec.file, &scheme.file) {
        (Some(file), Some(_)) => {
            file.kind.as_ref().map_or_else(|| file.format.id().to_owned(), |kind| format!("gguf:{kind}"))
        }
        _ => scheme.quantization.map_or_else(|| spec.dtype.id().to_owned(), Quantization::id),
    };
    let formula = if scheme.file.is_some() { FORMULA_FILE } else { FORMULA };
    let mut working = Working::new(formula, measured.unwrap_or(rank.bytes))
        .with("N", model.parameters, "parameters")
        .with("scheme", name, "")
        .with("e", spec.dtype.bytes(), "B/element")
        .with("t", parallel.tensor, "ranks")
        .with("p", parallel.pipeline, "stages")
        .with("x", parallel.expert, "ranks");
    if parallel.pipeline > 1 {
        working = working.with("stage", rank.stage, "");
    }
    if measured.is_some() {
        working = working.with("modelled", rank.bytes, "B");
    }
    working.parts = holding.parts();
    Ok(term(rank, measured, working))
}
