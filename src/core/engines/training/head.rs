//! The vocabulary projection and the loss.

use super::decoder::Outcome;
use super::graph::{Graph, Tensor};
use super::ops::{F32, I64};
use super::pool::Kind;
use super::program::{Linear, Program};
use super::settings::Loss;

impl<'p> Program<'p> {
    /// Logits of every position and their loss.
    pub(super) fn head(&self, g: &Graph<'p>, last: Tensor, table: &Tensor) -> Outcome {
        if self.train.loss == Loss::Fused {
            return Outcome { loss: self.fused(g, &last, table), logits: None };
        }
        let logits = g.as_kind(Kind::Logits, || {
            let logits = self.vocabulary(g, &last, table);
            if !self.model.final_logit_softcap {
                return logits;
            }
            let tanh = {
                let divided = g.scale("div", &logits);
                g.keeping_output("tanh", &divided, divided.data.e)
            };
            g.scale("mul", &tanh)
        });
        // The model's own loss runs inside its forward, where the last hidden state still is; a caller's does not.
        let held = (self.train.loss == Loss::Hf).then_some(last);
        let loss = g.as_kind(Kind::Loss, || match self.train.loss {
            Loss::None => {
                let wide = g.cast("float(logits)", &logits, F32);
                g.mean(&wide, 1)
            }
            Loss::Plain => self.cross_entropy(g, &logits),
            Loss::Hf | Loss::Fused => {
                let wide = g.cast("float(logits)", &logits, F32);
                self.cross_entropy(g, &wide)
            }
        });
        drop(held);
        Outcome { loss, logits: Some(logits) }
    }

    /// Projection and loss in chunks of tokens (Liger's `fused_linear_cross_entropy`): both gradients are made in
    /// the forward pass and kept; only one chunk of logits is alive.
    fn fused(&self, g: &Graph<'p>, last: &Tensor, table: &Tensor) -> Tensor {
        g.as_kind(Kind::Loss, || {
            let (hidden, vocabulary) = (self.model.hidden_size, self.model.vocab_size);
            let x = self.operand(g, last);
            let weight = if self.model.tied_embeddings {
                table.clone()
            } else {
                self.weight(g, vocabulary.saturating_mul(hidden))
            };
            let labels = self.labels(g);
            let of_input = g.new_data("grad_input", x.data.n, x.data.e);
            let of_weight = weight.tracked().then(|| g.new_data("grad_weight", weight.data.n, self.e));
            let losses = g.constant("loss_1d", self.t(), F32);
            let logits = g.constant(
                "logits_chunk",
                chunk(self.t(), vocabulary, hidden).saturating_mul(vocabulary),
                x.data.e,
            );
            let loss = g.new_data("sum", 1, F32);
            drop((logits, losses, labels));
            if !g.records(&[&x, &weight]) {
                return Tensor::plain(loss);
            }
            let kept = [Some(g.save(&of_input)), of_weight.as_ref().map(|w| g.save(w))];
            g.node(loss, &[&x, &weight], move |_, _| kept.to_vec())
        })
    }

    /// Labels padded, and shifted by one: a copy where there are several sequences.
    fn labels(&self, g: &Graph<'p>) -> [Tensor; 2] {
        let padded = g.constant("pad(labels)", self.b() * (self.s() + 1), I64);
        let shifted = match self.b() {
            1 => padded.viewed(self.s()),
            _ => g.constant("contiguous", self.t(), I64),
        };
        [padded, shifted]
    }

    fn vocabulary(&self, g: &Graph<'p>, last: &Tensor, table: &Tensor) -> Tensor {
        let (input, output) = (self.model.hidden_size, self.model.vocab_size);
        let bias = self.model.tensors.iter().any(|t| t.name == "lm_head.bias");
        let head = Linear { name: "lm_head", input, output, bias };
        if self.model.tied_embeddings {
            self.product_of(g, head, last, table, None)
        } else {
            self.product_with(g, head, last, self.e, self.full())
        }
    }

    /// Labels shifted by one, log-softmax and the negative log-likelihood.
    fn cross_entropy(&self, g: &Graph<'p>, logits: &Tensor) -> Tensor {
        let [padded, labels] = self.labels(g);
        let soft = g.keeping_output("log_softmax", logits, logits.data.e);
        let tracked = g.records(&[&soft]);
        let out = g.new_data("nll_loss", 1, logits.data.e);
        let weight = g.new_data("nll_loss", 1, logits.data.e);
        drop(padded);
        if !tracked {
            return Tensor::plain(out);
        }
        let kept = [&soft.data, &labels.data, &weight].map(|d| g.save(d));
        g.node(out, &[&soft], move |g, grad| {
            let out = g.new_data("nll_loss_backward", kept[0].n, grad.e);
            drop(kept);
            vec![Some(out)]
        })
    }
}

/// Tokens of a chunk: as many as make its logits about as large as the hidden states, rounded up to a power of two.
fn chunk(tokens: u64, vocabulary: u64, hidden: u64) -> u64 {
    let parts = vocabulary.div_ceil(hidden.max(1)).max(1);
    tokens.div_ceil(parts).checked_next_power_of_two().unwrap_or(tokens).min(tokens)
}
