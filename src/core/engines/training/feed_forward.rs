//! The feed-forward of a layer: dense, fused and plain.

use super::graph::{Graph, Tensor};
use super::program::{Linear, Program};
use crate::model::{Mlp, MlpKind, TensorClass};

impl<'p> Program<'p> {
    /// The feed-forward on the normalised input; none where the layer has none.
    pub(super) fn feed_forward(&self, g: &Graph<'p>, index: usize, mlp: &Mlp, x: &Tensor) -> Option<Tensor> {
        match mlp.kind {
            MlpKind::None => None,
            MlpKind::Dense { intermediate } => Some(self.dense(g, index, mlp, intermediate, x)),
            MlpKind::Moe { .. } => Some(self.experts(g, index, mlp, x)),
        }
    }

    /// One feed-forward of `width`.
    pub(super) fn dense(&self, g: &Graph<'p>, index: usize, mlp: &Mlp, width: u64, x: &Tensor) -> Tensor {
        let hidden = self.model.hidden_size;
        let linear = |name, input, output, class, x: &Tensor| {
            self.linear(g, Linear { name, input, output, bias: self.biased(index, class) }, x)
        };
        if mlp.fused_gate_up {
            let both = linear("gate_up_proj", hidden, width * 2, TensorClass::MlpGate, x);
            let n = width.saturating_mul(self.t());
            let [gate, up] = g.split(&both, [n, n]);
            let product = {
                let activated = g.activation("act_fn", &gate);
                g.mul("mul", &up, &activated)
            };
            return linear("down_proj", width, hidden, TensorClass::MlpDown, &product);
        }
        let product = if mlp.gated {
            let activated = {
                let gate = linear("gate_proj", hidden, width, TensorClass::MlpGate, x);
                g.activation("act_fn", &gate)
            };
            let up = linear("up_proj", hidden, width, TensorClass::MlpUp, x);
            g.mul("mul", &activated, &up)
        } else {
            let up = linear(self.names.up, hidden, width, TensorClass::MlpUp, x);
            g.activation("act_fn", &up)
        };
        let name = if mlp.gated { "down_proj" } else { self.names.down };
        let out = linear(name, width, hidden, TensorClass::MlpDown, &product);
        drop(product);
        g.dropout(&out, !mlp.gated && self.dropout.residual)
    }
}
