//! The whole answer for one job: ledger plus limits, in the shape of the documented JSON result.

use crate::engines::training::{self, TrainInputs};
use crate::engines::{Engine, Inputs, ServeSettings, engine};
use crate::hardware::Device;
use crate::memory::{
    DeviceBudget, KvSummary, Ledger, Phase, Range, RankShare, Residency, Term, TermId, Verdict,
};
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
    /// Every rank, where there is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankShare>,
    /// What the process keeps in host memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<Term>,
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
    let mut ledger = engine.ledger(inputs)?;
    let mut limits = None;
    if let Some(used) = inputs.measured.device_used_bytes {
        limits = unexplained_limits(engine, inputs, &ledger, used);
        super::closing::close(&mut ledger, used);
    }
    let Ledger { terms, phases, device, kv, peak, peak_bytes, verdict, refusal, warnings, ranks, host } =
        ledger;
    let Range { low, high } = peak;
    // The limits let the length follow the load; the engine as given would start for the model's own.
    let shorter = (refusal.is_some() && inputs.serve.max_model_len.is_none())
        .then(|| Message::new("plan.limits_for_shorter"))
        .filter(|_| engine.options().iter().any(|o| o.field == "max_model_len"));
    // What the config left open concerns every figure below.
    let of_file = crate::memory::weights::file_notes(inputs.model, inputs.weights);
    let notes = inputs.model.notes.iter().cloned().chain(of_file);
    let warnings = notes
        .chain(warnings)
        .chain(unused(inputs, engine))
        .chain(draft_unread(inputs))
        .chain(shorter)
        .collect();
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
        limits: limits.unwrap_or_else(|| super::limits(engine, inputs)),
        verdict,
        refusal,
        warnings,
        ranks,
        host,
    })
}

/// Limits under what the device showed beyond the ledger. Where memory is taken as the load grows, what is
/// unexplained is missing for it; a pool is taken beforehand, and what lies outside it does not make it smaller.
fn unexplained_limits(
    engine: &dyn Engine,
    inputs: &Inputs<'_>,
    ledger: &Ledger,
    used: u64,
) -> Option<Limits> {
    let more = used.checked_sub(ledger.peak_bytes).filter(|n| *n > 0)?;
    if ledger.terms.iter().any(|t| t.residency == Residency::ReservedPool) {
        return None;
    }
    let others = inputs.device.other_processes_bytes.saturating_add(more);
    let device = Device { other_processes_bytes: others, ..inputs.device.clone() };
    Some(super::limits(engine, &Inputs { device: &device, ..*inputs }))
}

/// The whole answer for one training job.
///
/// Errors: what is not modelled, with the field.
pub fn estimate_training(inputs: &TrainInputs<'_>) -> Result<Estimate, Problem> {
    let Ledger { terms, phases, device, kv, peak, peak_bytes, verdict, refusal, warnings, ranks, host } =
        training::ledger(inputs)?;
    let Range { low, high } = peak;
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
        limits: super::training_limits(inputs),
        ranks,
        host,
        verdict,
        refusal,
        warnings: inputs.model.notes.iter().cloned().chain(warnings).collect(),
    })
}

/// A draft model that the engine's accounting does not read.
fn draft_unread(inputs: &Inputs<'_>) -> Option<Message> {
    let reads =
        ["vllm", "sglang", "transformers", "llama_cpp", "ollama"].contains(&inputs.serve.engine.as_str());
    (inputs.draft.is_some() && !reads).then(|| Message::new("plan.draft_not_modelled"))
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
        ("cpu_offload_bytes", given.cpu_offload_bytes != default.cpu_offload_bytes),
        ("swap_space_bytes", given.swap_space_bytes != default.swap_space_bytes),
        ("kv_cache_memory_bytes", given.kv_cache_memory_bytes != default.kv_cache_memory_bytes),
        ("num_gpu_blocks_override", given.num_gpu_blocks_override != default.num_gpu_blocks_override),
        (
            "max_cudagraph_capture_size",
            given.max_cudagraph_capture_size != default.max_cudagraph_capture_size,
        ),
        ("max_loras", given.max_loras != default.max_loras),
        ("max_lora_rank", given.max_lora_rank != default.max_lora_rank),
        ("sleep_level", given.sleep_level != default.sleep_level),
        ("images_per_prompt", given.images_per_prompt != default.images_per_prompt),
        ("max_logprobs", given.max_logprobs != default.max_logprobs),
        ("prompt_logprobs", given.prompt_logprobs != default.prompt_logprobs),
        ("free_gpu_memory_fraction", given.free_gpu_memory_fraction != default.free_gpu_memory_fraction),
        ("max_total_tokens", given.max_total_tokens != default.max_total_tokens),
        ("swa_full_tokens_ratio", given.swa_full_tokens_ratio != default.swa_full_tokens_ratio),
        ("mamba_full_memory_ratio", given.mamba_full_memory_ratio != default.mamba_full_memory_ratio),
        ("dp_attention", given.dp_attention != default.dp_attention),
        ("kv_cache_dtype_v", given.kv_cache_dtype_v != default.kv_cache_dtype_v),
        ("swa_full", given.swa_full != default.swa_full),
        ("kv_unified", given.kv_unified != default.kv_unified),
        ("tensor_split", given.tensor_split != default.tensor_split),
        ("split_mode", given.split_mode != default.split_mode),
        ("no_mmap", given.no_mmap != default.no_mmap),
        ("no_kv_offload", given.no_kv_offload != default.no_kv_offload),
        ("n_cpu_moe", given.n_cpu_moe != default.n_cpu_moe),
        ("num_beams", given.num_beams != default.num_beams),
        ("num_return_sequences", given.num_return_sequences != default.num_return_sequences),
        ("do_sample", given.do_sample != default.do_sample),
        ("device_map", given.device_map != default.device_map),
    ];
    let takes = |field: &str| engine.options().iter().any(|o| o.field == field);
    let names: Vec<_> = changed.iter().filter(|(f, set)| *set && !takes(f)).map(|(f, _)| *f).collect();
    (!names.is_empty()).then(|| {
        Message::new("plan.settings_of_another_engine")
            .with("fields", names.join(", "))
            .with("engine", engine.name())
    })
}
