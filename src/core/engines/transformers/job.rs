//! A job as this engine takes it: what it accepts, warns about and fixes before lengths are known.

use super::class::Class;
use super::device_map::Share;
use super::layout::Layout;
use crate::engines::{CacheImpl, Detail, Inputs, ServeSettings};
use crate::memory::weights::{self, effective_quantization};
use crate::memory::{Parallel, Term, TermId, WeightsSpec};
use crate::model::{AttentionKind, DType, Layer, Model, Quantization, TensorClass};
use crate::units::{Bytes, Message, Problem};
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
    /// Rows of each prompt.
    rows: u64,
    /// The embedding, and with it generation itself, is on this device.
    entry: bool,
    /// Final norm and vocabulary projection are on this device.
    head: bool,
    /// Bytes per token of the assistant's cache.
    assistant: u64,
    /// Bytes of the largest weight that is fetched from the host while its module runs.
    fetched: u64,
}

impl<'a> Job<'a> {
    /// Checks what this engine accepts.
    pub(super) fn new(inputs: &Inputs<'a>, share: &Share) -> Result<Job<'a>, Problem> {
        let Inputs { model, serve, weights: spec, parallel, device, .. } = *inputs;
        if !model.encoder_layers.is_empty() {
            let message =
                Message::new("transformers.encoder_decoder").with("model_type", model.model_type.as_str());
            return Err(Problem::new("model", message));
        }
        let dtype = spec.dtype;
        accept_cache(model, serve, dtype)?;
        accept_assistant(inputs)?;
        let mut warnings = Vec::new();
        accept_rows(serve)?;
        if inputs.measured.kv_available_bytes.is_some() {
            warnings.push(Message::new("transformers.no_pool"));
        }
        if serve.cache == CacheImpl::Quantized {
            warnings.push(Message::new("transformers.quantized"));
        }
        if serve.num_speculative_tokens > 0 {
            let id = if inputs.draft.is_some() { "transformers.assisted" } else { "transformers.lookup" };
            warnings.push(Message::new(id).with("candidates", serve.num_speculative_tokens));
        }
        if serve.do_sample {
            warnings.push(Message::new("transformers.drawn"));
        }
        let class = Class::of(model);
        if class.attention(serve) != serve.attention.unwrap_or_default() {
            warnings.push(Message::new("transformers.no_sdpa").with("model_type", model.model_type.as_str()));
        }
        if parallel.tensor > 1 {
            warnings.push(Message::new("transformers.tensor_parallel").with("t", parallel.tensor));
        }
        let stages = if share.placed {
            1
        } else if parallel.pipeline > 1 {
            parallel.pipeline
        } else if parallel.tensor > 1 {
            1
        } else {
            // Each replica of data parallelism has devices of its own.
            (device.count / parallel.data.max(1)).max(1)
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
            entry: share.embedding,
            head: share.head,
            assistant: inputs
                .draft
                .filter(|_| share.embedding && serve.num_speculative_tokens > 0)
                .map_or(0, |draft| cache_per_token(draft, serve, dtype)),
            fetched: share.fetched,
            rows: serve.num_beams.unwrap_or(1).max(serve.num_return_sequences.unwrap_or(1)),
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
        layout.assistant = self.assistant;
        (layout.entry, layout.head, layout.fetched) = (self.entry, self.head, self.fetched);
        layout
    }

    /// Bytes that the scans of recurrent layers may hold beyond what is counted.
    pub(super) fn scan(&self, sequences: u64, prompt: u64) -> u64 {
        self.scan.saturating_mul(self.rows).saturating_mul(sequences).saturating_mul(prompt)
    }

    /// By how much the transients may exceed their estimate, in percent.
    pub(super) fn spread(&self) -> u64 {
        let loose = |w: &Message| matches!(w.id, "transformers.untraced" | "transformers.recurrent");
        if self.warnings.iter().any(loose) { UNTRACED_PERCENT } else { 0 }
    }

    /// The weights of the fullest device.
    pub(super) fn weights(&self, inputs: &Inputs<'_>, detail: Detail) -> Result<Term, Problem> {
        let parallel = Parallel { pipeline: self.stages, ..inputs.parallel };
        let layout = weights::Layout::Transformers;
        let (plain, dense);
        let (model, spec) = if restored_on_load(inputs.model, inputs.weights).is_some() {
            plain = Model { quantization: None, ..inputs.model.clone() };
            // What is restored to the dtype is no longer as the file has it.
            dense = WeightsSpec { file: None, ..inputs.weights.clone() };
            (&plain, &dense)
        } else {
            (inputs.model, inputs.weights)
        };
        let weights = match detail {
            Detail::Whole => weights::weights,
            Detail::Figures => weights::weights_figures,
        };
        weights(model, spec, parallel, layout, inputs.measured.weights_bytes)
    }
}

/// The cache class and the type of its elements.
fn accept_cache(model: &Model, serve: &ServeSettings, dtype: DType) -> Result<(), Problem> {
    let given = serve.kv_cache_dtype.as_str();
    if serve.cache == CacheImpl::Quantized {
        let full =
            |l: &Layer| matches!(l.attention.kind, AttentionKind::Full { .. } | AttentionKind::Mla { .. });
        if !model.layers.iter().all(full) {
            let message = Message::new("transformers.quantized_layers");
            return Err(Problem::new(
                "job.serve.cache",
                message.with("model_type", model.model_type.as_str()),
            ));
        }
        return match given {
            "auto" | "int4" | "int2" => Ok(()),
            _ => Err(Problem::not_accepted("job.serve.kv_cache_dtype", given, "auto, int4, int2".to_owned())),
        };
    }
    if given == "auto" || given == dtype.id() {
        return Ok(());
    }
    Err(Problem::not_accepted("job.serve.kv_cache_dtype", given, format!("auto, {}", dtype.id())))
}

/// Speculation as `generate` accepts it: one sequence, no beams, a cache that can be cut back.
fn accept_assistant(inputs: &Inputs<'_>) -> Result<(), Problem> {
    let serve = inputs.serve;
    if serve.num_speculative_tokens == 0 {
        return Ok(());
    }
    let rows = serve.num_beams.unwrap_or(1).max(serve.num_return_sequences.unwrap_or(1));
    if serve.sequences.saturating_mul(rows) > 1 {
        return Err(Problem::not_accepted(
            "job.serve.sequences",
            serve.sequences.saturating_mul(rows),
            "1".to_owned(),
        ));
    }
    let recurrent = |l: &Layer| matches!(l.attention.kind, AttentionKind::Recurrent(_));
    let cut = matches!(serve.cache, CacheImpl::Dynamic | CacheImpl::Sliding | CacheImpl::Offloaded);
    if !cut || inputs.model.layers.iter().any(recurrent) {
        return Err(Problem::new(
            "job.serve.num_speculative_tokens",
            Message::new("transformers.not_cropped"),
        ));
    }
    Ok(())
}

/// Bytes that one token adds to a model's cache.
fn cache_per_token(model: &Model, serve: &ServeSettings, dtype: DType) -> u64 {
    let layout = Layout::new(model, Class::of(model), serve, dtype.bytes());
    let widths = layout.kept.iter().flatten().map(|s| s.key.saturating_add(s.value));
    widths.fold(0, u64::saturating_add).saturating_mul(dtype.bytes())
}

/// The assistant's weights, in the dtype of the model.
pub(super) fn assistant(inputs: &Inputs<'_>, share: &Share) -> Result<Option<Term>, Problem> {
    let speculates = inputs.serve.num_speculative_tokens > 0 && share.embedding;
    let Some(draft) = inputs.draft.filter(|_| speculates) else { return Ok(None) };
    let spec = WeightsSpec { dtype: inputs.weights.dtype, ..WeightsSpec::default() };
    let plain = Model { quantization: None, ..draft.clone() };
    let layout = weights::Layout::Transformers;
    let term = weights::weights_figures(&plain, &spec, Parallel::default(), layout, None)?;
    Ok(Some(Term { id: TermId::DraftModel, ..term }))
}

/// Beams and answers as `generate` accepts them: more answers than beams only where tokens are drawn.
fn accept_rows(serve: &ServeSettings) -> Result<(), Problem> {
    let (beams, answers) = (serve.num_beams.unwrap_or(1), serve.num_return_sequences.unwrap_or(1));
    let drawn = beams == 1 && serve.do_sample;
    if answers > beams && !drawn {
        let message = Message::new("transformers.answers").with("answers", answers).with("beams", beams);
        return Err(Problem::new("job.serve.num_return_sequences", message));
    }
    Ok(())
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
pub(super) fn restored_on_load<'m>(model: &'m Model, spec: &WeightsSpec) -> Option<&'m Quantization> {
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
