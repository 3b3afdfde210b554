//! From tapes to the ledger: peak of each phase, terms alive at the highest, range and verdict.

use super::class::Class;
use super::device_map::Share;
use super::host::offloaded;
use super::job::{Job, assistant};
use super::layout::{Asked, Layout, Step};
use super::program::forward;
use super::quantized::group_bytes;
use super::select::select;
use super::steps::{Pass, longest, passes};
use super::tape::{Block, Dims, Stage, Tape};
use crate::engines::{CacheImpl, Detail, Inputs, ServeSettings};
use crate::memory::context::{Observed, context_overhead, library_workspace};
use crate::memory::{
    DeviceBudget, KvSummary, Ledger, Part, Phase, PhaseId, Provenance, Range, Residency, Term, TermId,
    Verdict, Working,
};
use crate::model::{DType, Model};
use crate::units::{Bytes, Message, Overflow, Problem};
use std::borrow::Cow;

/// The peak of one pass.
struct Peak {
    tape: Tape,
    stage: Stage,
    dims: Dims,
    bytes: u64,
}

fn peak(job: &Job<'_>, layout: &mut Layout<'_>, pass: &Pass) -> Result<Peak, Problem> {
    let ServeSettings { sequences, prompt_tokens, new_tokens, max_model_len, .. } = *job.serve;
    layout.masked = layout.lengths.masks(pass.step, pass.prompt);
    let asked = Asked::at(pass, sequences, prompt_tokens, new_tokens, max_model_len);
    let dims = layout.lengths.dims(pass.step, asked);
    let write = if pass.phase == PhaseId::Sampling { select } else { forward };
    let tape = write(layout, pass.step, job.dtype, Tape::peak_at(dims));
    let (stage, bytes) = tape.peak().ok_or(Overflow)?;
    if bytes == u64::MAX {
        return Err(Overflow.into());
    }
    Ok(Peak { tape, stage, dims, bytes })
}

/// Bytes outside the framework's allocator, and what may be replaced by a measurement.
struct Outside {
    context: Term,
    workspace: Term,
    others: u64,
}

impl Outside {
    fn new(inputs: &Inputs<'_>) -> Outside {
        let arch = inputs.device.gpu.map(|g| g.arch);
        let mut context = context_overhead(arch).term(TermId::ContextOverhead);
        let mut workspace = library_workspace(arch).term(TermId::Workspace);
        workspace.residency = Residency::Resident;
        if let Some(measured) = inputs.measured.non_torch_bytes {
            let Observed { point, .. } = context_overhead(arch);
            context.bytes = measured;
            (context.low, context.high) = (measured, measured);
            context.provenance = Provenance::Measured;
            context.working = Working::new("measured", measured).with("modelled", point, "B");
        }
        // The workspace is there from the first matrix product on.
        workspace.phases = vec![PhaseId::Prefill, PhaseId::Decode, PhaseId::Sampling];
        Outside { context, workspace, others: inputs.device.other_processes_bytes }
    }
}

/// Sum of figures, or the overflow problem.
pub(in crate::engines) fn total(figures: &[u64]) -> Result<u64, Overflow> {
    Bytes::sum(figures.iter().map(|&b| Bytes(b))).map(|b| b.0)
}

pub(super) fn ledger(inputs: &Inputs<'_>, share: &Share, detail: Detail) -> Result<Ledger, Problem> {
    let job = Job::new(inputs, share)?;
    let model = job.model(inputs.model);
    let weights = job.weights(inputs, detail)?;
    let outside = Outside::new(inputs);
    let draft = assistant(inputs, share)?;
    let drafted = draft.as_ref().map_or(0, |t| t.bytes);
    let stored = total(&[weights.bytes, drafted])?;
    let mut layout = job.layout(&model);
    let lengths = layout.lengths;
    let mut phases = vec![Phase {
        id: PhaseId::Load,
        allocated_bytes: stored,
        peak_bytes: total(&[stored, outside.context.bytes, outside.others])?,
    }];
    let mut highest: Option<(Peak, PhaseId)> = None;
    for pass in passes(&lengths, job.serve.prompt_tokens, job.serve.new_tokens) {
        if pass.phase == PhaseId::Sampling && !layout.entry {
            continue;
        }
        let (id, found) = (pass.phase, peak(&job, &mut layout, &pass)?);
        let allocated = total(&[stored, found.bytes])?;
        let whole = total(&[allocated, outside.context.bytes, outside.workspace.bytes, outside.others])?;
        match phases.iter_mut().find(|p| p.id == id) {
            Some(phase) => {
                phase.allocated_bytes = phase.allocated_bytes.max(allocated);
                phase.peak_bytes = phase.peak_bytes.max(whole);
            }
            None => phases.push(Phase { id, peak_bytes: whole, allocated_bytes: allocated }),
        }
        if highest.as_ref().is_none_or(|(h, _)| found.bytes > h.bytes) {
            highest = Some((found, id));
        }
    }
    let (found, phase) = highest.ok_or(Overflow)?;
    let (kv, host) = (summary(&job, &layout), offloaded(&job, &layout));
    let mut terms = vec![weights];
    terms.extend(draft);
    let mut tensors = alive(&found, phase, inputs, &job, detail);
    if let Some(term) = tensors.iter_mut().find(|t| t.id == TermId::Activations) {
        term.high = term.high.saturating_add(job.scan(job.serve.sequences, job.serve.prompt_tokens));
    }
    terms.extend(tensors);
    terms.extend([outside.workspace, outside.context]);
    if outside.others > 0 {
        terms.push(other_processes(outside.others));
    }
    let mut warnings = job.warnings;
    if let Some(measured) = inputs.measured.activation_peak_bytes {
        let modelled = replace_transients(&mut terms, measured);
        let shift = |b: u64| b.saturating_sub(modelled).saturating_add(measured);
        for p in phases.iter_mut().filter(|p| p.id == phase) {
            (p.peak_bytes, p.allocated_bytes) = (shift(p.peak_bytes), shift(p.allocated_bytes));
        }
        // The measurement is the peak of the whole run: no other phase was above it.
        if let Some(top) = phases.iter().find(|p| p.id == phase).cloned() {
            for p in &mut phases {
                p.peak_bytes = p.peak_bytes.min(top.peak_bytes);
                p.allocated_bytes = p.allocated_bytes.min(top.allocated_bytes);
            }
        }
        warnings.push(Message::new("transformers.measured_activations").with("modelled", Bytes(modelled)));
    }
    let peak_bytes = crate::memory::sum(&terms)?.0;
    let range = Range {
        low: total(&terms.iter().map(|t| t.low).collect::<Vec<_>>())?,
        high: total(&terms.iter().map(|t| t.high).collect::<Vec<_>>())?,
    };
    let device_total = inputs.device.total_bytes;
    let verdict = if range.high <= device_total {
        Verdict::Fits
    } else if peak_bytes <= device_total {
        Verdict::Tight
    } else {
        Verdict::DoesNotFit
    };
    warnings.push(Message::new("transformers.reserved"));
    Ok(Ledger {
        terms,
        phases,
        device: DeviceBudget {
            total_bytes: device_total,
            budget_bytes: device_total.saturating_sub(outside.others),
        },
        kv: Some(kv),
        peak: range,
        peak_bytes,
        verdict,
        refusal: None,
        warnings,
        ranks: Vec::new(),
        host,
    })
}

/// One term per kind of tensor alive at the peak, each with its tensors as parts.
fn alive(found: &Peak, phase: PhaseId, inputs: &Inputs<'_>, job: &Job<'_>, detail: Detail) -> Vec<Term> {
    let kinds = [
        TermId::KvCache,
        TermId::RecurrentState,
        TermId::Activations,
        TermId::AttentionScores,
        TermId::Logits,
        TermId::Sampling,
    ];
    let mut terms = Vec::new();
    for id in kinds {
        let blocks: Vec<&Block> = found.tape.blocks_of(&found.stage).filter(|b| b.term == id).collect();
        let bytes: u64 = blocks.iter().map(|b| b.bytes(&found.dims)).sum();
        if bytes == 0 {
            continue;
        }
        let resident = matches!(id, TermId::KvCache | TermId::RecurrentState);
        let loose = blocks.iter().find(|b| b.op == "dequantised weight").map_or(0, |b| b.bytes(&found.dims));
        let band = if resident { 0 } else { bytes / 100 * job.spread() };
        // A split over devices is taken whole (tensor parallel) or even (layers): bounds, not the real split.
        let split = inputs.parallel.tensor.max(1);
        let exact = band == 0 && loose == 0 && split == 1 && job.stages == 1;
        terms.push(Term {
            id,
            bytes,
            low: bytes.saturating_sub(band).saturating_sub(loose) / split,
            high: bytes.saturating_add(band),
            residency: if resident { Residency::Resident } else { Residency::Transient },
            phases: if resident {
                vec![PhaseId::Prefill, PhaseId::Decode, PhaseId::Sampling]
            } else {
                vec![phase]
            },
            provenance: if exact { Provenance::Exact } else { Provenance::Bounded },
            source: "transformers 5.24 modelling code",
            working: match detail {
                Detail::Whole => working(found, phase, inputs, &blocks, bytes),
                Detail::Figures => Working::new(FORMULA, bytes),
            },
        });
    }
    terms
}

const FORMULA: &str = "Σ tensors alive at the peak, each ⌈bytes / 512⌉ · 512";

fn working(found: &Peak, phase: PhaseId, inputs: &Inputs<'_>, blocks: &[&Block], bytes: u64) -> Working {
    let stage = &found.stage;
    let mut working =
        Working::new(FORMULA, bytes).with("phase", phase.id(), "").with("stage", stage.part, "");
    if let Some(layer) = stage.layer {
        working = working.with("layer", u64::from(layer), "");
    }
    working = working
        .with("operator", stage.op, "")
        .with("B", inputs.serve.sequences, "sequences")
        .with("rows", inputs.serve.num_beams.max(inputs.serve.num_return_sequences).unwrap_or(1), "")
        .with("prompt_tokens", inputs.serve.prompt_tokens, "tokens")
        .with("new_tokens", inputs.serve.new_tokens, "tokens")
        .with("e", inputs.weights.dtype.bytes(), "B/element");
    for block in blocks {
        let size = block.size.bytes(&found.dims);
        match working.parts.iter_mut().find(|p| p.label == block.op) {
            Some(part) => part.bytes += size.saturating_mul(block.times),
            None => working.parts.push(Part {
                label: Cow::Borrowed(block.op),
                detail: format!("{} × {size} B", block.times),
                bytes: size.saturating_mul(block.times),
            }),
        }
    }
    working.parts.retain(|p| p.bytes > 0);
    working
}

/// Puts a measured activation peak in place of every transient; returns what was modelled.
fn replace_transients(terms: &mut Vec<Term>, measured: u64) -> u64 {
    let transient = |t: &Term| t.residency == Residency::Transient;
    let modelled = terms.iter().filter(|t| transient(t)).map(|t| t.bytes).sum();
    let phases = terms.iter().find(|t| transient(t)).map(|t| t.phases.clone()).unwrap_or_default();
    terms.retain(|t| !transient(t));
    terms.push(Term {
        id: TermId::Activations,
        bytes: measured,
        low: measured,
        high: measured,
        residency: Residency::Transient,
        phases,
        provenance: Provenance::Measured,
        source: "",
        working: Working::new("measured", measured).with("modelled", modelled, "B"),
    });
    modelled
}

/// What other processes hold, in every phase.
pub(in crate::engines) fn other_processes(bytes: u64) -> Term {
    Term {
        id: TermId::OtherProcesses,
        bytes,
        low: bytes,
        high: bytes,
        residency: Residency::Resident,
        phases: PhaseId::ALL.to_vec(),
        provenance: Provenance::Measured,
        source: "",
        working: Working::new("other_processes_bytes", bytes),
    }
}

/// The cache object in figures: there is no pool, so only bytes per token apply.
fn summary(job: &Job<'_>, layout: &Layout<'_>) -> KvSummary {
    let tokens = job.serve.prompt_tokens.saturating_add(job.serve.new_tokens);
    let mut per_token = 0u64;
    for layer in &layout.model.layers {
        let Some(stored) = layout.stored(&layer.attention.kind) else { continue };
        let full = layout.lengths.windows[usize::from(stored.slot)].is_some_and(|w| tokens >= w);
        if !full {
            per_token += stored.key.saturating_add(stored.value).saturating_mul(layout.kv_element);
        }
    }
    let cached = job.serve.cache != CacheImpl::None;
    let per_token = per_token.saturating_mul(layout.lengths.rows);
    let per_token = match job.serve.cache {
        CacheImpl::Quantized => {
            let group = group_bytes(layout.lengths.bits, layout.kv_element);
            per_token / layout.kv_element / 64 * group
        }
        _ => per_token,
    };
    KvSummary { bytes_per_token: if cached { per_token as f64 } else { 0.0 }, ..KvSummary::default() }
}

/// Bytes that the cache objects of transformers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBytes {
    /// After the prompt has been read.
    pub after_prefill: u64,
    /// After one decode step more.
    pub after_decode: u64,
}

/// Storage of the cache objects after prefill and after the first decode step, in bytes: KV and recurrent
/// state, each tensor rounded up to 512 bytes. A sliding layer keeps a view of the whole prompt until the
/// first decode step.
///
/// Errors: a figure beyond 64 bits.
pub fn cache_bytes(model: &Model, serve: &ServeSettings, dtype: DType) -> Result<CacheBytes, Problem> {
    let mut layout = Layout::new(model, Class::of(model), serve, dtype.bytes());
    let mut after = [0; 2];
    let decode = Step::Decode { past: serve.prompt_tokens, first: true };
    let whole = serve.prompt_tokens.saturating_add(serve.new_tokens);
    let asked = Asked {
        sequences: serve.sequences,
        prompt: serve.prompt_tokens,
        new: serve.new_tokens,
        whole,
        longest: longest(serve.max_model_len, serve.prompt_tokens, serve.new_tokens),
        later: false,
    };
    for (bytes, step) in after.iter_mut().zip([Step::Prefill, decode]) {
        layout.masked = layout.lengths.masks(step, serve.prompt_tokens);
        let dims = layout.lengths.dims(step, asked);
        let held = |b: &Block| matches!(b.term, TermId::KvCache | TermId::RecurrentState);
        *bytes = forward(&layout, step, dtype, Tape::symbolic()).last_sum(held).bytes(&dims);
    }
    if after.contains(&u64::MAX) {
        return Err(Overflow.into());
    }
    Ok(CacheBytes { after_prefill: after[0], after_decode: after[1] })
}
