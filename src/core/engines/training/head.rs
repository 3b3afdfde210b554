//! The vocabulary projection and the loss.

use super::decoder::Outcome;
use super::graph::{Graph, Tensor};
use super::ops::{F32, I64};
use super::pool::Kind;
use super::program::{Linear, Program};
use super::settings::Loss;

impl<'p> Program<'p> {
    /// Logits of every position and their loss.
    pub(super) fn head(&self, g: &Graph<'p>, last: &Tensor, table: &Tensor) -> Outcome {
        let logits = g.as_kind(Kind::Logits, || {
            let logits = self.vocabulary(g, last, table);
            if !self.model.final_logit_softcap {
                return logits;
            }
            let tanh = {
                let divided = g.scale("div", &logits);
                g.keeping_output("tanh", &divided, divided.data.e)
            };
            g.scale("mul", &tanh)
        });
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
        Outcome { loss, logits: Some(logits) }
    }

    fn vocabulary(&self, g: &Graph<'p>, last: &Tensor, table: &Tensor) -> Tensor {
        let (input, output) = (self.model.hidden_size, self.model.vocab_size);
        let head = Linear { name: "lm_head", input, output, bias: false };
        if self.model.tied_embeddings {
            self.product_of(g, head, last, table, None)
        } else {
            self.product_with(g, head, last, self.e, self.full())
        }
    }

    /// Labels shifted by one, log-softmax and the negative log-likelihood.
    fn cross_entropy(&self, g: &Graph<'p>, logits: &Tensor) -> Tensor {
        let labels = {
            let padded = g.constant("pad(labels)", self.b() * (self.s() + 1), I64);
            let shifted = g.constant("contiguous", self.t(), I64);
            drop(padded);
            shifted
        };
        let soft = g.keeping_output("log_softmax", logits, logits.data.e);
        let tracked = g.records(&[&soft]);
        let out = g.new_data("nll_loss", 1, logits.data.e);
        let weight = g.new_data("nll_loss", 1, logits.data.e);
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
