//! The profile run: what the forward pass and the sampler hold at once, per rank.

use super::settings::Settings;
use crate::engines::Inputs;
use crate::memory::context::library_workspace;
use crate::model::{AttentionKind, Layer, MlpKind};

/// A figure with its range, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) point: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Span {
    pub(super) const fn exactly(bytes: u64) -> Span {
        Span { point: bytes, low: bytes, high: bytes }
    }

    /// The larger one, end by end.
    fn max(self, other: Span) -> Span {
        Span {
            point: self.point.max(other.point),
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// What the profile run is made of, apart from the number of tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// Elements of the widest layer per token.
    pub(super) per_token: u64,
    /// d.
    hidden: u64,
    /// Bytes per element.
    element: u64,
    /// V, padded to 64 rows.
    pub(super) vocabulary: u64,
    /// Bytes per sequence and vocabulary entry while sampling.
    pub(super) per_logit: u64,
    /// Sequences sampled at once at most.
    max_seqs: u64,
    fewest_seqs: u64,
    workspace: u64,
    /// Encoder peak per encoded token and its outputs; zero without a vision tower.
    encoder_per_token: u64,
    /// Only the last pipeline stage samples; the fullest rank is taken.
    measured: Option<u64>,
}

/// Lowest bytes per sequence and vocabulary entry seen, where FlashInfer samples without sorting: logits in 16 and
/// 32 bits and probabilities.
const FLASHINFER_LOGIT: u64 = 10;
/// Highest: the sort of PyTorch's sampler keeps values, 64-bit indices, probabilities and sums beside the logits.
const SORTED_LOGIT: u64 = 38;

impl Profile {
    pub(super) fn new(inputs: &Inputs<'_>, s: &Settings) -> Profile {
        let model = inputs.model;
        let t = inputs.parallel.tensor.max(1);
        let d = model.hidden_size;
        let widest = model.layers.iter().map(|l| layer_elements(l, d, t)).max().unwrap_or(0);
        let encoder = model.vision.map_or(0, |v| {
            let width = v.hidden_size.saturating_mul(3).saturating_add(v.intermediate_size.saturating_mul(2));
            // Patches merged into one token of the language model.
            let merged = v.patches.checked_div(v.tokens_per_image).unwrap_or(4).clamp(1, 64);
            width.saturating_mul(merged)
        });
        Profile {
            per_token: widest,
            hidden: d,
            element: inputs.weights.dtype.bytes(),
            vocabulary: model.vocab_size.checked_next_multiple_of(64).unwrap_or(u64::MAX),
            per_logit: s.version.sampler_bytes(),
            max_seqs: s.max_seqs,
            fewest_seqs: s.fewest_seqs.min(s.max_seqs),
            workspace: library_workspace(inputs.device.gpu.map(|g| g.arch)).point,
            encoder_per_token: encoder,
            measured: inputs.measured.activation_peak_bytes,
        }
    }

    /// Widest point of the forward pass over `tokens` tokens. Measured start-ups of V0 equal it within 1 %;
    /// compiled graphs of V1 may hold less or keep inputs longer.
    pub(super) fn activations(&self, tokens: u64) -> Span {
        let body = product(&[tokens, self.per_token, self.element]).saturating_add(self.workspace);
        Span { point: body, low: body / 4 * 3, high: body.saturating_add(body / 4) }
    }

    /// Sequences that the sampler sees at once.
    pub(super) fn sampled(&self, tokens: u64) -> u64 {
        self.max_seqs.min(tokens)
    }

    /// The sampler over as many sequences as one step may hold, with the hidden states it reads.
    pub(super) fn sampling(&self, tokens: u64) -> Span {
        let of = |seqs: u64, bytes| {
            let rows = seqs.min(tokens);
            let states = product(&[tokens.saturating_add(rows), self.hidden, self.element]);
            product(&[rows, self.vocabulary, bytes]).saturating_add(states).saturating_add(self.workspace)
        };
        Span {
            point: of(self.max_seqs, self.per_logit),
            low: of(self.fewest_seqs, FLASHINFER_LOGIT.min(self.per_logit)),
            high: of(self.max_seqs, SORTED_LOGIT),
        }
    }

    /// The encoder over a step's worth of image tokens.
    pub(super) fn encoder(&self, tokens: u64) -> Span {
        let point = product(&[tokens, self.encoder_per_token, self.element]);
        Span { point, low: 0, high: point.saturating_mul(2) }
    }

    /// What the engine finds as its activation peak, and subtracts.
    pub(super) fn peak(&self, tokens: u64) -> Span {
        match self.measured {
            Some(bytes) => Span::exactly(bytes),
            None => self.activations(tokens).max(self.sampling(tokens)).max(self.encoder(tokens)),
        }
    }
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |a, &b| a.saturating_mul(b))
}

/// Elements alive per token at the widest point of a layer: residual, the layer's input, the projections, the
/// result. A gated feed-forward holds gate and up, their product and the result beside residual and input.
fn layer_elements(layer: &Layer, d: u64, t: u64) -> u64 {
    let split = |n: u64| n.div_ceil(t);
    let attention = match layer.attention.kind {
        AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim }
        | AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
            let q = split(heads).saturating_mul(head_dim);
            let kv = split(kv_heads).saturating_mul(head_dim.saturating_add(v_head_dim));
            q.saturating_mul(3).saturating_add(kv)
        }
        AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => split(heads)
            .saturating_mul(3)
            .saturating_add(split(kv_heads).saturating_mul(2))
            .saturating_mul(head_dim),
        AttentionKind::Mla { heads, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. } => {
            // Queries, keys with their rotary part repeated per head, expanded latents, result.
            let qk = qk_nope_head_dim.saturating_add(qk_rope_head_dim).saturating_mul(2);
            let expanded = qk_nope_head_dim.saturating_add(v_head_dim.saturating_mul(2));
            split(heads).saturating_mul(qk.saturating_add(expanded))
        }
        AttentionKind::Recurrent(state) => split(state.conv_dim).saturating_mul(3),
        AttentionKind::None => 0,
    };
    let mlp = match layer.mlp.kind {
        MlpKind::Dense { intermediate } => {
            split(intermediate).saturating_mul(if layer.mlp.gated { 3 } else { 2 })
        }
        MlpKind::Moe { top_k, intermediate, shared_intermediate, .. } => {
            // Fused experts: one buffer for gate and up, reused for the results, and one for their product.
            let inner = split(intermediate);
            let buffers = inner.saturating_mul(2).max(d).saturating_add(inner);
            top_k.saturating_mul(buffers).saturating_add(split(shared_intermediate))
        }
        MlpKind::None => 0,
    };
    let around = d.saturating_mul(3);
    around.saturating_add(attention.max(mlp))
}
