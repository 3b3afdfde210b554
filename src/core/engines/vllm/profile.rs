//! The profile run: what the forward pass and the sampler hold at once, per rank.

use super::settings::Settings;
use crate::engines::Inputs;
use crate::engines::pooled::{encoder_elements, product, widest_layer};
use crate::memory::context::library_workspace;

pub(super) use crate::engines::pooled::Span;

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

/// Lowest bytes per sequence and vocabulary entry seen, where FlashInfer samples without sorting: logits and masked
/// logits in 32 bits and probabilities (0.10.1 on A100, 0.11.2 on L4: 12.2 and 12.4 of what those pools leave).
const FLASHINFER_LOGIT: u64 = 12;
/// What the profile run holds beside the tensors counted, in the high end: 0.3 to 1.1 % of the peak (n = 12).
const SMALL_TENSORS: u64 = 64;
/// Highest: the sort of PyTorch's sampler keeps values, 64-bit indices, probabilities and sums beside the logits.
const SORTED_LOGIT: u64 = 38;

impl Profile {
    pub(super) fn new(inputs: &Inputs<'_>, s: &Settings) -> Profile {
        let model = inputs.model;
        Profile {
            per_token: widest_layer(model, inputs.parallel.tensor),
            hidden: model.hidden_size,
            element: inputs.weights.dtype.bytes(),
            vocabulary: model.vocab_size.checked_next_multiple_of(64).unwrap_or(u64::MAX),
            per_logit: s.version.sampler_bytes(),
            max_seqs: s.max_seqs,
            fewest_seqs: s.fewest_seqs.min(s.max_seqs),
            workspace: library_workspace(inputs.device.gpu.map(|g| g.arch)).point,
            encoder_per_token: match inputs.serve.images_per_prompt {
                Some(0) => 0,
                _ => encoder_elements(model),
            },
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
            // Hidden states of all tokens, and of the sampled ones before and after they are gathered.
            let states = product(&[tokens.saturating_add(rows.saturating_mul(2)), self.hidden, self.element]);
            product(&[rows, self.vocabulary, bytes]).saturating_add(states).saturating_add(self.workspace)
        };
        Span {
            point: of(self.max_seqs, self.per_logit),
            low: of(self.fewest_seqs, FLASHINFER_LOGIT.min(self.per_logit)),
            high: {
                let high = of(self.max_seqs, SORTED_LOGIT);
                high.saturating_add(high / SMALL_TENSORS)
            },
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
