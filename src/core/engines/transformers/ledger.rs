//! From tapes to the ledger: peak of each phase, terms alive at the highest, range and verdict.

use super::class::Class;
use super::layout::{Layout, Lengths, Step};
use super::program::forward;
use super::tape::{Block, Dims, Stage, Tape};
use crate::engines::{CacheImpl, Inputs, ServeSettings};
use crate::memory::context::{Observed, context_overhead, library_workspace};
use crate::memory::weights::{self, effective_quantization};
use crate::memory::{
    DeviceBudget, KvSummary, Ledger, Parallel, Part, Phase, PhaseId, Provenance, Range, Residency, Term,
    TermId, Verdict, WeightsSpec, Working,
};
use crate::model::{AttentionKind, DType, Model, Quantization, TensorClass};
use crate::units::{Bytes, Message, Overflow, Problem};
use std::borrow::Cow;

/// Share by which transients of a class without a checked trace may be off, in percent.
const UNTRACED_PERCENT: u64 = 30;

/// A job with its model cut to what one device runs.
pub(super) struct Job<'a> {
    pub(super) serve: &'a ServeSettings,
    pub(super) dtype: DType,
    class: Class,
    /// Layers split over this many devices, one after the other.
    pub(super) stages: u64,
    pub(super) warnings: Vec<Message>,
    element: u64,
    dequantised: u64,
    rounding: u64,
    /// Bytes per prompt token that a recurrent layer's scan may hold beyond what is counted.
    scan: u64,
}

/// The peak of one pass.
struct Peak {
    tape: Tape,
    stage: Stage,
    dims: Dims,
    bytes: u64,
}

impl<'a> Job<'a> {
    /// Checks what this engine accepts.
    pub(super) fn new(inputs: &Inputs<'a>) -> Result<Job<'a>, Problem> {
        let Inputs { model, serve, weights: spec, parallel, device, .. } = *inputs;
        if !model.encoder_layers.is_empty() {
            let message =
                Message::new("transformers.encoder_decoder").with("model_type", model.model_type.as_str());
            return Err(Problem::new("model", message));
        }
        let dtype = spec.dtype;
        if !matches!(serve.kv_cache_dtype.as_str(), "auto") && serve.kv_cache_dtype != dtype.id() {
            let accepted = format!("auto, {}", dtype.id());
            let given = serve.kv_cache_dtype.as_str();
            return Err(Problem::not_accepted("job.serve.kv_cache_dtype", given, accepted));
        }
        let mut warnings = Vec::new();
        let class = Class::of(model);
        if class.attention(serve) != serve.attention {
            warnings.push(Message::new("transformers.no_sdpa").with("model_type", model.model_type.as_str()));
        }
        if parallel.tensor > 1 {
            warnings.push(Message::new("transformers.tensor_parallel").with("t", parallel.tensor));
        }
        let stages = if parallel.pipeline > 1 {
            parallel.pipeline
        } else if parallel.tensor > 1 {
            1
        } else {
            device.count.max(1)
        };
        let stages = stages.min(model.layers.len().max(1) as u64);
        if stages > 1 {
            warnings.push(Message::new("transformers.device_map").with("devices", stages));
        }
        if model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Recurrent(_))) {
            warnings.push(Message::new("transformers.recurrent"));
        } else if !class.traced {
            let message = Message::new("transformers.untraced").with("model_type", model.model_type.as_str());
            warnings.push(message.with("percent", UNTRACED_PERCENT));
        }
        if model.vision.is_some() {
            warnings.push(Message::new("transformers.vision"));
        }
        let restored = restored_on_load(model, spec);
        if let Some(scheme) = restored {
            warnings.push(
                Message::new("transformers.restored").with("scheme", scheme.id()).with("dtype", dtype.id()),
            );
        }
        let quantised = restored.is_none() && effective_quantization(model, spec).quantization.is_some();
        let dequantised = if quantised { largest_matrix(model, dtype) } else { 0 };
        if quantised {
            warnings.push(Message::new("transformers.dequantised").with("bytes", Bytes(dequantised)));
        }
        let rounding = if quantised { 0 } else { rounding(model, dtype) / stages };
        Ok(Job {
            serve,
            dtype,
            class,
            stages,
            warnings,
            element: dtype.bytes(),
            dequantised,
            rounding,
            scan: scan(model),
        })
    }

    /// The model as one device runs it: the layers of one stage.
    pub(super) fn model(&self, model: &'a Model) -> Cow<'a, Model> {
        if self.stages <= 1 {
            return Cow::Borrowed(model);
        }
        let mut part = model.clone();
        let kept = (model.layers.len() as u64).div_ceil(self.stages);
        part.layers.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        Cow::Owned(part)
    }

    pub(super) fn layout<'m>(&self, model: &'m Model) -> Layout<'m> {
        let mut layout = Layout::new(model, self.class, self.serve, self.element);
        layout.dequantised = self.dequantised;
        layout.rounding = self.rounding;
        layout
    }

    /// Bytes that the scans of recurrent layers may hold beyond what is counted.
    pub(super) fn scan(&self, sequences: u64, prompt: u64) -> u64 {
        self.scan.saturating_mul(sequences).saturating_mul(prompt)
    }

    /// By how much the transients may exceed their estimate, in percent.
    pub(super) fn spread(&self) -> u64 {
        let loose = |w: &Message| matches!(w.id, "transformers.untraced" | "transformers.recurrent");
        if self.warnings.iter().any(loose) { UNTRACED_PERCENT } else { 0 }
    }

    /// The weights of the fullest device.
    pub(super) fn weights(&self, inputs: &Inputs<'_>) -> Result<Term, Problem> {
        let parallel = Parallel { pipeline: self.stages, ..inputs.parallel };
        let layout = weights::Layout::Transformers;
        let plain;
        let model = if restored_on_load(inputs.model, inputs.weights).is_some() {
            plain = Model { quantization: None, ..inputs.model.clone() };
            &plain
        } else {
            inputs.model
        };
        weights::weights(model, inputs.weights, parallel, layout, inputs.measured.weights_bytes)
    }
}

/// A static cache without a given length is taken as long as needed, rounded up to this many tokens: an
/// unaligned length would make masked kernels copy their mask for every head.
const STATIC_STEP: u64 = 128;

/// Tokens a static cache is allocated for.
pub(super) fn longest(max_model_len: Option<u64>, needed: u64) -> u64 {
    let rounded = needed.checked_next_multiple_of(STATIC_STEP).unwrap_or(needed);
    max_model_len.map_or(rounded, |len| len.max(needed))
}

/// The passes of a job in time order: prefill, the first decode step, the last one.
pub(super) fn steps(lengths: &Lengths, prompt: u64, new: u64) -> [Option<(PhaseId, Step, u64)>; 3] {
    let prefill = Some((PhaseId::Prefill, Step::Prefill, prompt));
    if new == 0 {
        return [prefill, None, None];
    }
    if lengths.cache == CacheImpl::None {
        // Without a cache every step runs the whole sequence again.
        return [prefill, Some((PhaseId::Decode, Step::Prefill, prompt.saturating_add(new))), None];
    }
    let first = Some((PhaseId::Decode, Step::Decode { past: prompt, first: true }, prompt));
    let past = prompt.saturating_add(new - 1);
    let last = (new > 1).then_some((PhaseId::Decode, Step::Decode { past, first: false }, prompt));
    [prefill, first, last]
}

/// Bytes of the largest matrix that a quantised layer restores, in the model's dtype.
fn largest_matrix(model: &Model, dtype: DType) -> u64 {
    let restored = |class| {
        !matches!(
            class,
            TensorClass::Embedding | TensorClass::LmHead | TensorClass::Norm | TensorClass::PositionEmbedding
        )
    };
    let matrices = model.tensors.iter().filter(|t| restored(t.class)).map(|t| {
        let (_, rows, columns) = t.matrix();
        rows.saturating_mul(columns).saturating_mul(dtype.bytes())
    });
    matrices.max().unwrap_or(0)
}

/// Bytes per prompt token of a recurrent scan in plain PyTorch, which runs where no kernels are installed:
/// three fp32 tensors of the whole state for Mamba 1, six fp32 tensors of a 256-token chunk per head for the
/// chunked scans. Bounds over traces of Jamba, Granite 4 and Qwen3-Next.
fn scan(model: &Model) -> u64 {
    let layers = model.layers.iter().map(|l| match l.attention.kind {
        AttentionKind::Recurrent(s) if s.mechanism == "mamba1" => {
            12u64.saturating_mul(s.state_heads).saturating_mul(s.state_per_head)
        }
        AttentionKind::Recurrent(s) => (24 * 256u64).saturating_mul(s.state_heads),
        _ => 0,
    });
    layers.max().unwrap_or(0)
}

/// The scheme a checkpoint declares but transformers by itself undoes while loading: fp8 and mxfp4 run only
/// with separately installed kernels on recent devices, and are restored to the dtype otherwise. Naming the
/// scheme in the Scenario keeps it.
fn restored_on_load<'m>(model: &'m Model, spec: &WeightsSpec) -> Option<&'m Quantization> {
    let declared = model.quantization.as_ref()?;
    let undone = matches!(declared, Quantization::Fp8 | Quantization::Mxfp4);
    (spec.quantization.is_none() && undone).then_some(declared)
}

/// What the allocator adds to unquantised weights by handing out multiples of 512 bytes.
fn rounding(model: &Model, dtype: DType) -> u64 {
    let added = model.tensors.iter().map(|t| {
        let bytes = t.elements().saturating_mul(t.dtype.unwrap_or(dtype).bytes());
        (bytes.next_multiple_of(512) - bytes).saturating_mul(t.count)
    });
    added.sum()
}

fn peak(job: &Job<'_>, layout: &mut Layout<'_>, step: Step, prompt: u64) -> Result<Peak, Problem> {
    layout.masked = layout.lengths.masks(step, prompt);
    let needed = prompt.saturating_add(job.serve.new_tokens);
    let longest = longest(job.serve.max_model_len, needed);
    let dims = layout.lengths.dims(step, job.serve.sequences, prompt, longest);
    let tape = forward(layout, step, job.dtype, Tape::peak_at(dims));
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
        workspace.phases = vec![PhaseId::Prefill, PhaseId::Decode];
        Outside { context, workspace, others: inputs.device.other_processes_bytes }
    }
}

/// Sum of figures, or the overflow problem.
fn total(figures: &[u64]) -> Result<u64, Overflow> {
    Bytes::sum(figures.iter().map(|&b| Bytes(b))).map(|b| b.0)
}

pub(super) fn ledger(inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
    let job = Job::new(inputs)?;
    let model = job.model(inputs.model);
    let weights = job.weights(inputs)?;
    let outside = Outside::new(inputs);
    let mut layout = job.layout(&model);
    let lengths = layout.lengths;
    let mut phases = vec![Phase {
        id: PhaseId::Load,
        allocated_bytes: weights.bytes,
        peak_bytes: total(&[weights.bytes, outside.context.bytes, outside.others])?,
    }];
    let mut highest: Option<(Peak, PhaseId)> = None;
    for (id, step, prompt) in
        steps(&lengths, job.serve.prompt_tokens, job.serve.new_tokens).into_iter().flatten()
    {
        let found = peak(&job, &mut layout, step, prompt)?;
        let allocated = total(&[weights.bytes, found.bytes])?;
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
    let kv = summary(&job, &layout);
    let mut terms = vec![weights];
    let mut tensors = alive(&found, phase, inputs, &job);
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
    })
}

/// One term per kind of tensor alive at the peak, each with its tensors as parts.
fn alive(found: &Peak, phase: PhaseId, inputs: &Inputs<'_>, job: &Job<'_>) -> Vec<Term> {
    let kinds = [
        TermId::KvCache,
        TermId::RecurrentState,
        TermId::Activations,
        TermId::AttentionScores,
        TermId::Logits,
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
            phases: if resident { vec![PhaseId::Prefill, PhaseId::Decode] } else { vec![phase] },
            provenance: if exact { Provenance::Exact } else { Provenance::Bounded },
            source: "transformers 5.24 modelling code",
            working: working(found, phase, inputs, &blocks, bytes),
        });
    }
    terms
}

fn working(found: &Peak, phase: PhaseId, inputs: &Inputs<'_>, blocks: &[&Block], bytes: u64) -> Working {
    let stage = &found.stage;
    let mut working = Working::new("Σ tensors alive at the peak, each ⌈bytes / 512⌉ · 512", bytes)
        .with("phase", phase.id(), "")
        .with("stage", stage.part, "");
    if let Some(layer) = stage.layer {
        working = working.with("layer", u64::from(layer), "");
    }
    working = working
        .with("operator", stage.op, "")
        .with("B", inputs.serve.sequences, "sequences")
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

fn other_processes(bytes: u64) -> Term {
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
    let longest = longest(serve.max_model_len, serve.prompt_tokens.saturating_add(serve.new_tokens));
    for (bytes, step) in after.iter_mut().zip([Step::Prefill, decode]) {
        layout.masked = layout.lengths.masks(step, serve.prompt_tokens);
        let dims = layout.lengths.dims(step, serve.sequences, serve.prompt_tokens, longest);
        let held = |b: &Block| matches!(b.term, TermId::KvCache | TermId::RecurrentState);
        *bytes = forward(&layout, step, dtype, Tape::symbolic()).last_sum(held).bytes(&dims);
    }
    if after.contains(&u64::MAX) {
        return Err(Overflow.into());
    }
    Ok(CacheBytes { after_prefill: after[0], after_decode: after[1] })
}
