//! The whole answer for one job: ledger plus limits, in the shape of the documented JSON result.

use crate::engines::{Engine, Inputs, ServeSettings, engine};
use crate::memory::{DeviceBudget, KvSummary, Ledger, Phase, Range, Term, TermId, Verdict};
use crate::units::{Message, Problem};
use serde::Serialize;

/// The result document (design.md 5).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Version of this document.
    pub schema: u32,
    /// Rows.
    pub terms: Vec<Term>,
    /// Phases in time order.
    pub phases: Vec<Phase>,
    /// Point estimate of the highest phase.
    pub peak_bytes: u64,
    /// Low end of its range.
    pub peak_low: u64,
    /// High end of its range.
    pub peak_high: u64,
    /// Device total and budget.
    pub device: DeviceBudget,
    /// Exact parameter count.
    pub parameters: u64,
    /// KV figures.
    pub kv: Option<KvSummary>,
    /// Largest settings that fit.
    pub limits: Limits,
    /// Answer.
    pub verdict: Verdict,
    /// The engine's refusal to start, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Message>,
    /// Assumptions, replaced terms, waste.
    pub warnings: Vec<Message>,
}

/// What fits at most, everything else as given.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limits {
    /// Largest `max_model_len` that starts.
    pub max_model_len: Option<u64>,
    /// Most sequences of the given length at once.
    pub max_sequences: Option<u64>,
    /// Most new tokens after the given prompt.
    pub max_new_tokens: Option<u64>,
    /// Largest micro-batch (training).
    pub max_micro_batch: Option<u64>,
    /// The term that stops each of the above, by field name.
    pub stopped_by: Vec<(&'static str, TermId)>,
}

/// The whole answer for one job.
///
/// Errors: what the engine does not accept, with the field.
pub fn estimate(inputs: &Inputs<'_>) -> Result<Estimate, Problem> {
    let engine = engine(&inputs.serve.engine)?;
    let Ledger { terms, phases, device, kv, peak, peak_bytes, verdict, refusal, warnings } =
        engine.ledger(inputs)?;
    let Range { low, high } = peak;
    // What the config left open concerns every figure below.
    let warnings = inputs.model.notes.iter().cloned().chain(warnings).chain(unused(inputs, engine)).collect();
    Ok(Estimate {
        schema: 1,
        terms,
        phases,
        peak_bytes,
        peak_low: low,
        peak_high: high,
        device,
        parameters: inputs.model.parameters,
        kv,
        limits: super::limits(engine, inputs),
        verdict,
        refusal,
        warnings,
    })
}

/// The settings given that belong to other engines.
fn unused(inputs: &Inputs<'_>, engine: &dyn Engine) -> Option<Message> {
    let (given, default) = (inputs.serve, ServeSettings::default());
    let changed = [
        ("block_size", given.block_size != default.block_size),
        ("gpu_memory_utilization", given.gpu_memory_utilization != default.gpu_memory_utilization),
        ("mem_fraction_static", given.mem_fraction_static != default.mem_fraction_static),
        ("max_num_seqs", given.max_num_seqs != default.max_num_seqs),
        ("max_num_batched_tokens", given.max_num_batched_tokens != default.max_num_batched_tokens),
        ("enforce_eager", given.enforce_eager != default.enforce_eager),
        ("num_speculative_tokens", given.num_speculative_tokens != default.num_speculative_tokens),
        ("prefix_caching", given.prefix_caching != default.prefix_caching),
        ("ubatch", given.ubatch != default.ubatch),
        ("gpu_layers", given.gpu_layers != default.gpu_layers),
        ("attention", given.attention != default.attention),
        ("logits", given.logits != default.logits),
        ("cache", given.cache != default.cache),
        ("padding_mask", given.padding_mask != default.padding_mask),
    ];
    let takes = |field: &str| engine.options().iter().any(|o| o.field == field);
    let names: Vec<_> = changed.iter().filter(|(f, set)| *set && !takes(f)).map(|(f, _)| *f).collect();
    (!names.is_empty()).then(|| {
        Message::new("plan.settings_of_another_engine")
            .with("fields", names.join(", "))
            .with("engine", engine.name())
    })
}
