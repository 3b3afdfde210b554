//! The feed-forward of a layer: dense, fused and plain.

use super::graph::{Graph, Tensor};
use super::program::{Linear, Program};
use crate::model::{Activation, Mlp, MlpKind, TensorClass};

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
            self.activated(g, &up)
        };
        let name = if mlp.gated { "down_proj" } else { self.names.down };
        let out = linear(name, width, hidden, TensorClass::MlpDown, &product);
        drop(product);
        g.dropout(&out, !mlp.gated && self.dropout.residual)
    }

    /// The activation of a plain feed-forward.
    fn activated(&self, g: &Graph<'p>, x: &Tensor) -> Tensor {
        match self.model.activation {
            Activation::Fused => g.activation("act_fn", x),
            Activation::Relu => g.keeping_output("relu", x, x.data.e),
            Activation::ReluSquared => {
                let positive = g.keeping_output("relu", x, x.data.e);
                g.square(&positive)
            }
            Activation::GeluNew => {
                let half = g.scale("mul(0.5)", x);
                let inner = {
                    let sum = {
                        let cube = {
                            let cube = g.square(x);
                            g.scale("mul(0.044715)", &cube)
                        };
                        g.add("add", x, &cube)
                    };
                    g.scale("mul(sqrt(2/pi))", &sum)
                };
                let tanh = g.keeping_output("tanh", &inner, x.data.e);
                drop(inner);
                let shifted = g.shift("add(1)", &tanh);
                drop(tanh);
                g.mul("mul", &half, &shifted)
            }
        }
    }
}
