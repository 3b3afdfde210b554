//! What the warm-up takes and leaves.

use super::prefill::reckoned;
use super::version::Version;
use crate::engines::pooled::{End, Span, product, widest_layer};
use crate::engines::{Detail, Inputs};
use crate::memory::context::{communication, context_overhead, library_workspace, non_torch_growth};
use crate::memory::kv_cache::{heads_per_rank, kv_dtype};
use crate::memory::weights::{Layout, weights, weights_figures};
use crate::memory::{Parallel, Term};
use crate::model::{AttentionKind, KvDType};
use crate::units::{Bytes, Message, Problem};

/// Everything that decides the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) version: Version,
    /// f: `--cuda-memory-fraction`.
    pub(super) fraction: f64,
    pub(super) block: u64,
    pub(super) token_bytes: u64,
    /// Tokens of the warm-up's prefill batch.
    pub(super) prefill: u64,
    /// Longest request, where it does not follow the pool.
    pub(super) longest: Option<u64>,
    pub(super) explicit_longest: bool,
    pub(super) requests: u64,
    pub(super) total: u64,
    pub(super) context: Span,
    pub(super) communication: Span,
    pub(super) others: u64,
    pub(super) weights: Span,
    /// Of the warm-up.
    pub(super) activations: Span,
    /// Of a prefill that serves requests: they ask for no logits of the prompt.
    pub(super) forward: Span,
    pub(super) graphs: Span,
    pub(super) printed: Option<u64>,
    /// `--max-batch-total-tokens`, which versions before 0.9.4 allocate.
    pub(super) asked: Option<u64>,
}

fn not_modelled(what: &'static str) -> Problem {
    Problem::new("model", Message::new("tgi.not_modelled").with("what", what))
}

impl Costs {
    /// Costs of a job, and the row of the weights.
    ///
    /// Errors: settings or models that TGI does not take, or whose rule is not known.
    pub(super) fn new(inputs: &Inputs<'_>, detail: Detail) -> Result<(Costs, Term), Problem> {
        let (serve, model, measured) = (inputs.serve, inputs.model, inputs.measured);
        let version = Version::parse(serve.engine_version.as_deref());
        let fraction = serve.gpu_memory_utilization.unwrap_or(1.0);
        // Written so that NaN is refused.
        if !(fraction > 0.0 && fraction <= 1.0) {
            return Err(Problem::not_accepted("job.serve.gpu_memory_utilization", fraction, "0 < f ≤ 1"));
        }
        for (field, value) in [
            ("job.serve.max_model_len", serve.max_model_len),
            ("job.serve.max_num_seqs", serve.max_num_seqs),
            ("job.serve.max_num_batched_tokens", serve.max_num_batched_tokens),
            ("job.serve.max_total_tokens", serve.max_total_tokens),
            ("job.serve.block_size", serve.block_size),
        ] {
            if value == Some(0) {
                return Err(Problem::not_accepted(field, 0, "1, 2, …"));
            }
        }
        if inputs.parallel.pipeline > 1 {
            return Err(Problem::not_accepted("parallel.pipeline", inputs.parallel.pipeline, "1"));
        }
        let longest = serve.max_model_len.or_else(|| default_length(inputs, version));
        let prefill =
            serve.max_num_batched_tokens.unwrap_or_else(|| default_prefill(inputs, version, longest));
        let arch = inputs.device.gpu.map(|g| g.arch);
        let parallel = Parallel { data: 1, ..inputs.parallel };
        let of_weights = match detail {
            Detail::Whole => weights,
            Detail::Figures => weights_figures,
        };
        let term =
            of_weights(model, inputs.weights, parallel, Layout::serving(arch), measured.weights_bytes)?;
        let before = measured.non_torch_bytes;
        let printed = measured.activation_peak_bytes.map(Span::exactly);
        let costs = Costs {
            version,
            fraction,
            block: serve.block_size.unwrap_or_else(|| default_block(inputs, version)).min(1 << 20),
            token_bytes: token_bytes(inputs)?,
            prefill,
            longest,
            explicit_longest: serve.max_model_len.is_some(),
            requests: serve.max_num_seqs.unwrap_or(128),
            total: inputs.device.total_bytes,
            context: before.map_or_else(|| around(arch), Span::exactly),
            communication: if before.is_some() {
                Span::default()
            } else {
                communication(inputs.parallel.tensor).into()
            },
            others: if before.is_some() { 0 } else { inputs.device.other_processes_bytes },
            weights: Span { point: term.bytes, low: term.low, high: term.high },
            activations: printed.unwrap_or_else(|| warmup(inputs, version, prefill)),
            forward: printed.unwrap_or_else(|| forward(inputs, prefill)),
            graphs: graphs(inputs, version),
            printed: measured.kv_available_bytes,
            asked: serve.max_total_tokens,
        };
        if !version.infers_pool() && costs.asked.is_none() && costs.printed.is_none() {
            return Err(Problem::new("job.serve.max_total_tokens", Message::new("tgi.pool_not_given")));
        }
        Ok((costs, term))
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.token_bytes.saturating_mul(self.block).max(1)
    }

    /// Blocks of the warm-up batch.
    pub(super) fn batch_blocks(&self) -> u64 {
        self.prefill.div_ceil(self.block)
    }

    /// Free once the weights are there.
    pub(super) fn free(&self, end: End) -> i128 {
        let taken = [self.context, self.communication, self.weights]
            .iter()
            .fold(self.others, |sum, s| sum.saturating_add(end.of(*s)));
        i128::from(self.total) - i128::from(taken)
    }

    /// Left after the warm-up's prefill and its cache; negative where the warm-up fails.
    pub(super) fn after_warmup(&self, end: End) -> i128 {
        let batch = self.batch_blocks().saturating_mul(self.block_bytes());
        self.free(end) - i128::from(end.of(self.activations)) - i128::from(batch)
    }

    /// Blocks of the pool.
    pub(super) fn blocks(&self, end: End) -> u64 {
        if let Some(printed) = self.printed {
            return printed / self.block_bytes();
        }
        if !self.version.infers_pool() {
            // Ten more, for good measure.
            return self.asked.unwrap_or(0).div_ceil(self.block).saturating_add(10);
        }
        let left = self.after_warmup(end);
        if left < 0 {
            return 0;
        }
        let (total, wiggle) = (self.total as f64, self.version.wiggle());
        let free = if self.version.wiggle_of_total() {
            left as f64 - (1.0 - self.fraction * wiggle) * total
        } else {
            (left as f64 - (1.0 - self.fraction) * total) * wiggle
        };
        let blocks = (free.max(0.0) as u64) / self.block_bytes();
        blocks.saturating_add(self.batch_blocks())
    }

    /// The longest request: given, of the model, or what the pool holds.
    pub(super) fn longest(&self, tokens: u64) -> u64 {
        self.longest.unwrap_or(tokens)
    }
}

/// Longest request by default; none where it follows the pool.
fn default_length(inputs: &Inputs<'_>, version: Version) -> Option<u64> {
    let model = inputs.model.max_position_embeddings;
    if version.reckons_prefill() {
        // The smaller of model and pool: the pool's part is found later.
        return (model > 0).then_some(model);
    }
    if version.length_of_model() && model > 0 {
        return Some(model.min(4096));
    }
    Some(if version.length_of_model() { 4096 } else { 2048 })
}

/// Tokens of the prefill batch by default.
fn default_prefill(inputs: &Inputs<'_>, version: Version, longest: Option<u64>) -> u64 {
    if version.reckons_prefill() {
        return reckoned(inputs, inputs.serve.gpu_memory_utilization.unwrap_or(1.0));
    }
    match longest {
        // One token is left for the answer; fifty more allow for blocks.
        Some(n) if version.length_of_model() => n.saturating_sub(1).saturating_add(50),
        _ => 4096,
    }
}

/// Tokens of a block by attention: FlashInfer 1, flash decoding 256, paged 16.
fn default_block(inputs: &Inputs<'_>, version: Version) -> u64 {
    if !version.flashinfer() {
        return 16;
    }
    let old = inputs.device.gpu.is_some_and(|g| g.arch < 80);
    let fallback = if old { 16 } else { 256 };
    let dims = inputs.model.layers.iter().filter_map(|l| match l.attention.kind {
        AttentionKind::Full { head_dim, .. }
        | AttentionKind::Sliding { head_dim, .. }
        | AttentionKind::Chunked { head_dim, .. } => Some(head_dim),
        AttentionKind::Mla { .. } => Some(0),
        AttentionKind::Recurrent(_) | AttentionKind::None => None,
    });
    let supported = dims.into_iter().all(|d| matches!(d, 64 | 128 | 256));
    if supported && inputs.model.model_type != "falcon" { 1 } else { fallback }
}

/// Context, kernels and library handles.
fn around(arch: Option<u32>) -> Span {
    let (a, b, c) = (context_overhead(arch), non_torch_growth(arch, 1), library_workspace(arch));
    Span { point: a.point + b.point + c.point, low: a.low + b.low + c.low, high: a.high + b.high + c.high }
}

/// Bytes of a prompt token's logit while the warm-up runs, before 3.0: the logits and their log-softmax in 16 bits are
/// four, and the allocator kept 8.5 and 8.5 in the two start-ups that tell (Llama 2 7B and Llama 3.1 8B on an A10G).
pub(super) const LOGIT: u64 = 8;

/// The forward pass over the prefill batch.
fn forward(inputs: &Inputs<'_>, tokens: u64) -> Span {
    let widest = widest_layer(inputs.model, inputs.parallel.tensor);
    let point = product(&[tokens, widest, inputs.weights.dtype.bytes()]);
    Span { point, low: point / 4 * 3, high: point.saturating_add(point / 2) }
}

/// The warm-up: the forward pass, and before 3.0 logits of every token.
fn warmup(inputs: &Inputs<'_>, version: Version, tokens: u64) -> Span {
    let forward = forward(inputs, tokens);
    if !version.logits_of_prompt() {
        return forward;
    }
    let states = product(&[tokens, inputs.model.hidden_size, inputs.weights.dtype.bytes()]);
    let of = |bytes: u64| product(&[tokens, inputs.model.vocab_size, bytes]).saturating_add(states);
    let logits = Span { point: of(LOGIT), low: of(4), high: of(10) };
    forward.max(logits)
}

/// Graphs of 1 to 32 sequences. Observed: 0.21 GiB (huggingface/text-generation-inference#2450); the high end is
/// vLLM's for one rank, which captures more.
fn graphs(inputs: &Inputs<'_>, version: Version) -> Span {
    if let Some(bytes) = inputs.measured.cuda_graph_bytes {
        return Span::exactly(bytes);
    }
    if inputs.serve.enforce_eager || !version.graphs() {
        return Span::default();
    }
    Span { point: 222 * Bytes::MIB, low: 40 * Bytes::MIB, high: 1178 * Bytes::MIB }
}

/// Bytes of a token over all layers of a rank.
fn token_bytes(inputs: &Inputs<'_>) -> Result<u64, Problem> {
    let kv = kv(inputs)?;
    let (model, tensor) = (inputs.model, inputs.parallel.tensor);
    if !model.encoder_layers.is_empty() || model.layers.iter().any(|l| l.cross_attention) {
        return Err(not_modelled("encoder-decoder models, which have no pool"));
    }
    let mut sum = Bytes::ZERO;
    for layer in &model.layers {
        let bytes = match layer.attention.kind {
            AttentionKind::Recurrent(_) | AttentionKind::None => {
                return Err(not_modelled("recurrent models, which have no pool"));
            }
            AttentionKind::Full { kv_heads, head_dim, .. }
            | AttentionKind::Sliding { kv_heads, head_dim, .. }
            | AttentionKind::Chunked { kv_heads, head_dim, .. } => {
                Bytes::product(&[2, heads_per_rank(kv_heads, tensor), head_dim, kv.bytes])?
            }
            // Expanded to every head, values padded to the width of keys.
            AttentionKind::Mla { heads, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. } => {
                let width = qk_nope_head_dim.saturating_add(qk_rope_head_dim).max(v_head_dim);
                Bytes::product(&[2, heads_per_rank(heads, tensor), width, kv.bytes])?
            }
        };
        sum = sum.add(bytes)?;
    }
    Ok(sum.0.max(1))
}

fn kv(inputs: &Inputs<'_>) -> Result<KvDType, Problem> {
    let text = inputs.serve.kv_cache_dtype.trim().to_ascii_lowercase();
    let kv = kv_dtype(&text, inputs.weights.dtype)?;
    if matches!(text.as_str(), "auto" | "") || matches!(kv.id, "fp8" | "fp8_e4m3" | "fp8_e5m2") {
        return Ok(kv);
    }
    Err(Problem::not_accepted("job.serve.kv_cache_dtype", kv.id, "auto, fp8_e4m3, fp8_e5m2"))
}
