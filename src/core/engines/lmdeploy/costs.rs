//! What is free once the weights are there, the share of it that becomes blocks, and what the rest must hold.

use super::version::Version;
use crate::engines::pooled::{End, Span, product, widest_layer};
use crate::engines::{Detail, Inputs};
use crate::memory::context::{
    Observed, communication, context_overhead, library_workspace, non_torch_growth,
};
use crate::memory::kv_cache::{heads_per_rank, kv_dtype};
use crate::memory::weights::{Layout, weights, weights_figures};
use crate::memory::{Parallel, Term};
use crate::model::{AttentionKind, KvDType};
use crate::units::{Bytes, Message, Problem};

/// Everything that decides the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) version: Version,
    /// r: `cache_max_entry_count`.
    pub(super) share: f64,
    pub(super) block: u64,
    /// Bytes of a token in all layers of this rank.
    pub(super) token_bytes: u64,
    pub(super) session: u64,
    pub(super) explicit_session: bool,
    pub(super) sequences: u64,
    /// Tokens of one prefill step.
    pub(super) step: u64,
    pub(super) total: u64,
    pub(super) context: Span,
    pub(super) communication: Span,
    pub(super) growth: Span,
    pub(super) others: u64,
    pub(super) weights: Span,
    /// Buffers that are allocated for the largest batch after the pool.
    pub(super) buffers: u64,
    pub(super) activations: Span,
    pub(super) printed: Option<u64>,
}

fn not_modelled(what: &'static str) -> Problem {
    Problem::new("model", Message::new("lmdeploy.not_modelled").with("what", what))
}

impl Costs {
    /// Costs of a job, and the row of the weights.
    ///
    /// Errors: settings or models that TurboMind does not take, or whose rule is not known.
    pub(super) fn new(inputs: &Inputs<'_>, detail: Detail) -> Result<(Costs, Term), Problem> {
        let (serve, model, measured) = (inputs.serve, inputs.model, inputs.measured);
        let version = Version::parse(serve.engine_version.as_deref());
        let share = serve.free_gpu_memory_fraction.unwrap_or(version.share());
        // Written so that NaN is refused.
        if !(share > 0.0 && share < 1.0) {
            return Err(Problem::not_accepted("job.serve.free_gpu_memory_fraction", share, "0 < r < 1"));
        }
        let session = match serve.max_model_len {
            Some(0) => return Err(Problem::not_accepted("job.serve.max_model_len", 0, "1, 2, …")),
            Some(n) => n,
            None if model.max_position_embeddings > 0 => model.max_position_embeddings,
            None => {
                return Err(Problem::new("job.serve.max_model_len", Message::new("lmdeploy.length_unknown")));
            }
        };
        if inputs.parallel.pipeline > 1 {
            return Err(Problem::not_accepted("parallel.pipeline", inputs.parallel.pipeline, "1"));
        }
        let block = serve.block_size.unwrap_or(version.block());
        if !(1..=1 << 20).contains(&block) {
            return Err(Problem::not_accepted("job.serve.block_size", block, "1 … 1048576; 64, 128"));
        }
        for (field, value) in [
            ("job.serve.max_num_seqs", serve.max_num_seqs),
            ("job.serve.max_num_batched_tokens", serve.max_num_batched_tokens),
        ] {
            if value == Some(0) {
                return Err(Problem::not_accepted(field, 0, "1, 2, …"));
            }
        }
        let arch = inputs.device.gpu.map(|g| g.arch);
        let parallel = Parallel { data: 1, ..inputs.parallel };
        let of_weights = match detail {
            Detail::Whole => weights,
            Detail::Figures => weights_figures,
        };
        let term =
            of_weights(model, inputs.weights, parallel, Layout::serving(arch), measured.weights_bytes)?;
        let sequences =
            serve.max_num_seqs.unwrap_or_else(|| version.sequences(inputs.device.gpu.map_or("", |g| g.name)));
        let step = serve.max_num_batched_tokens.unwrap_or(8192);
        let before = measured.non_torch_bytes;
        let element = inputs.weights.dtype.bytes();
        let activations = measured.activation_peak_bytes.map_or_else(
            || {
                let point = product(&[step, widest_layer(model, inputs.parallel.tensor), element]);
                Span { point, low: point / 2, high: point.saturating_add(point / 2) }
            },
            Span::exactly,
        );
        let costs = Costs {
            version,
            share,
            block,
            token_bytes: token_bytes(inputs, version)?,
            session,
            explicit_session: serve.max_model_len.is_some(),
            sequences,
            step,
            total: inputs.device.total_bytes,
            context: before.map_or_else(|| context_overhead(arch).into(), Span::exactly),
            communication: if before.is_some() {
                Span::default()
            } else {
                communication(inputs.parallel.tensor).into()
            },
            growth: if before.is_some() { Span::default() } else { growth(arch) },
            others: if before.is_some() { 0 } else { inputs.device.other_processes_bytes },
            weights: Span { point: term.bytes, low: term.low, high: term.high },
            buffers: buffers(inputs, sequences, session, step),
            activations,
            printed: measured.kv_available_bytes,
        };
        Ok((costs, term))
    }

    /// Free once the weights are there.
    pub(super) fn free(&self, end: End) -> i128 {
        let taken = [self.context, self.communication, self.growth, self.weights]
            .iter()
            .fold(self.others, |sum, s| sum.saturating_add(end.of(*s)));
        i128::from(self.total) - i128::from(taken)
    }

    /// Bytes for blocks.
    pub(super) fn pool(&self, end: End) -> u64 {
        if let Some(printed) = self.printed {
            return printed;
        }
        let base = if self.version.share_of_free() { self.free(end) } else { i128::from(self.total) };
        u64::try_from(base.max(0)).map_or(0, |base| (base as f64 * self.share) as u64)
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.token_bytes.saturating_mul(self.block).max(1)
    }

    /// Blocks of the pool.
    pub(super) fn blocks(&self, end: End) -> u64 {
        self.pool(end) / self.block_bytes()
    }
}

/// Growth outside of tensors: kernels, cuBLAS handles.
fn growth(arch: Option<u32>) -> Span {
    let (a, b): (Observed, Observed) = (non_torch_growth(arch, 1), library_workspace(arch));
    Span { point: a.point + b.point, low: a.low + b.low, high: a.high + b.high }
}

/// Bytes of a token over all layers of a rank (`block::Layout`): per head, keys and values, and where they are
/// quantised two 16-bit parameters for each.
fn token_bytes(inputs: &Inputs<'_>, version: Version) -> Result<u64, Problem> {
    let kv = kv(inputs)?;
    let (model, tensor) = (inputs.model, inputs.parallel.tensor);
    if !model.encoder_layers.is_empty() || model.layers.iter().any(|l| l.cross_attention) {
        return Err(not_modelled("encoder-decoder models"));
    }
    let quantised = kv.id.starts_with("int");
    let scales = if quantised && version.scales_per_token() { 4 } else { 0 };
    let row = |width: u64| -> Result<u64, Problem> {
        let bytes = Bytes::product(&[width.div_ceil(kv.elements), kv.bytes])?;
        Ok(bytes.add(Bytes(scales))?.0)
    };
    let mut sum = Bytes::ZERO;
    for layer in &model.layers {
        let bytes = match layer.attention.kind {
            AttentionKind::Recurrent(_) => return Err(not_modelled("recurrent layers")),
            AttentionKind::None => 0,
            // A window is masked, not forgotten.
            AttentionKind::Full { kv_heads, head_dim, .. }
            | AttentionKind::Sliding { kv_heads, head_dim, .. }
            | AttentionKind::Chunked { kv_heads, head_dim, .. } => {
                Bytes::product(&[2, heads_per_rank(kv_heads, tensor), row(head_dim)?])?.0
            }
            AttentionKind::Mla { kv_lora_rank, qk_rope_head_dim, .. } if version.caches_latents() => {
                row(kv_lora_rank.saturating_add(qk_rope_head_dim))?
            }
            AttentionKind::Mla { heads, qk_nope_head_dim, qk_rope_head_dim, .. } => {
                let width = qk_nope_head_dim.saturating_add(qk_rope_head_dim);
                Bytes::product(&[2, heads_per_rank(heads, tensor), row(width)?])?.0
            }
        };
        sum = sum.add(Bytes(bytes))?;
    }
    if sum.0 == 0 {
        return Err(not_modelled("models without a token cache"));
    }
    Ok(sum.0)
}

/// `quant_policy`: 0, 8 or 4.
fn kv(inputs: &Inputs<'_>) -> Result<KvDType, Problem> {
    let text = inputs.serve.kv_cache_dtype.trim().to_ascii_lowercase();
    let kv = kv_dtype(&text, inputs.weights.dtype)?;
    let auto = matches!(text.as_str(), "auto" | "");
    if auto || matches!(kv.id, "int8" | "int4" | "fp16" | "float16" | "half" | "bf16" | "bfloat16") {
        return Ok(kv);
    }
    let accepted = "auto, fp16, bf16, int8 (quant_policy 8), int4 (quant_policy 4)";
    Err(Problem::not_accepted("job.serve.kv_cache_dtype", kv.id, accepted))
}

/// Buffers of `LlamaBatch::AllocateBuffer` for the largest batch: hidden states in and out of a prefill step, logits
/// twice in fp32, token ids of whole sessions six times, pointers to blocks.
fn buffers(inputs: &Inputs<'_>, sequences: u64, session: u64, step: u64) -> u64 {
    let (model, element) = (inputs.model, inputs.weights.dtype.bytes());
    let states = product(&[2, step.saturating_add(sequences), model.hidden_size, element]);
    let logits = product(&[2, sequences, model.vocab_size, 4]);
    let ids = product(&[6, sequences, session, 4]);
    states.saturating_add(logits).saturating_add(ids)
}
