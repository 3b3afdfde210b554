//! The feed-forward of a layer: dense, fused, plain, and routed experts with their dispatch.

use super::emit::{Emit, F32, I64};
use super::layout::Layout;
use super::tape::Id;
use crate::model::{Mlp, MlpKind};

/// Bytes of an int32 element.
const I32: u64 = 4;

impl Emit {
    /// The feed-forward; frees `input` where it is given.
    pub(super) fn feed_forward(&mut self, layout: &Layout<'_>, mlp: &Mlp, input: Option<Id>) -> Option<Id> {
        let hidden = layout.model.hidden_size;
        let output = match mlp.kind {
            MlpKind::None => return None,
            MlpKind::Dense { intermediate } => self.dense(mlp, intermediate, hidden),
            MlpKind::Moe { experts, top_k, intermediate, shared_intermediate, .. } => {
                let router = self.router(experts, top_k, hidden);
                let mut output = if self.class.dense_experts {
                    self.every_expert(experts, intermediate, hidden)
                } else {
                    self.routed(top_k, intermediate, hidden, mlp.gated)
                };
                if shared_intermediate > 0 {
                    let shared = self.dense(mlp, shared_intermediate, hidden);
                    let sum = self.token("add", hidden);
                    self.free_all(&[shared, output]);
                    output = sum;
                }
                self.free_all(&router);
                output
            }
        };
        self.free_all(input.as_slice());
        Some(output)
    }

    fn dense(&mut self, mlp: &Mlp, width: u64, hidden: u64) -> Id {
        if mlp.fused_gate_up {
            let both = self.token("gate_up_proj", width.saturating_mul(2));
            let activated = self.token("act_fn", width);
            let product = self.token("mul", width);
            self.free(activated);
            let output = self.token("down_proj", hidden);
            self.free_all(&[product, both]);
            return output;
        }
        let first = self.token(if mlp.gated { "gate_proj" } else { "up_proj" }, width);
        let mut product = self.token("act_fn", width);
        self.free(first);
        if mlp.gated {
            let up = self.token("up_proj", width);
            let both = self.token("mul", width);
            self.free_all(&[product, up]);
            product = both;
        }
        let output = self.token("down_proj", hidden);
        self.free(product);
        output
    }

    /// Router logits, their softmax and the top k; returns what lives as long as the block.
    fn router(&mut self, experts: u64, top_k: u64, hidden: u64) -> Vec<Id> {
        let mut held = Vec::new();
        let softmax = if self.class.fp32_router {
            let copy = (self.e != F32).then(|| self.token_f32("float(router input)", hidden));
            held.push(self.token_f32("router", experts));
            self.free_all(copy.as_slice());
            self.token_f32("softmax", experts)
        } else {
            held.push(self.token("router", experts));
            let copy = self.token_f32("float(router)", experts);
            let softmax = self.token_f32("softmax", experts);
            self.free(copy);
            softmax
        };
        let values = if self.class.fp32_combine { F32 } else { self.e };
        let values = self.per_token(top_k.saturating_mul(values));
        held.push(self.alloc("topk", values));
        let indices = self.per_token(top_k.saturating_mul(I64));
        held.push(self.alloc("topk", indices));
        self.free(softmax);
        held
    }

    /// Tokens gathered per expert, two grouped matrix products, and the weighted sum back in token order.
    fn routed(&mut self, top_k: u64, width: u64, hidden: u64, gated: bool) -> Id {
        let combine = if self.class.fp32_combine { F32 } else { self.e };
        let index = self.per_token(top_k.saturating_mul(I64));
        let mut held = vec![self.alloc("sort", index), self.alloc("sort", index)];
        let divided = self.alloc("floor_divide", index);
        held.push(self.token("index(hidden)", top_k.saturating_mul(hidden)));
        self.free(divided);
        let weights = self.per_token(top_k.saturating_mul(combine));
        held.push(self.alloc("index(weights)", weights));
        let counts = self.per_token(top_k.saturating_mul(I32));
        held.push(self.alloc("to(int32)", counts));
        let per_pick = |n: u64| top_k.saturating_mul(n);
        let product = if self.class.biased_experts {
            let bias = self.token("index(bias)", per_pick(width * 2));
            let both = self.token("grouped_mm", per_pick(width * 2));
            let product = self.clamped(per_pick(width), both);
            let down_bias = self.token("index(bias)", per_pick(hidden));
            self.free(bias);
            held.push(down_bias);
            product
        } else {
            let first = self.token("grouped_mm", per_pick(if gated { width * 2 } else { width }));
            let activated = self.token("act_fn", per_pick(width));
            let product = if gated {
                let product = self.token("mul", per_pick(width));
                self.free(activated);
                product
            } else {
                activated
            };
            self.free(first);
            product
        };
        held.push(self.token("grouped_mm", per_pick(hidden)));
        self.free(product);
        let weighted_size = self.per_token(per_pick(hidden).saturating_mul(combine));
        let weighted = self.alloc("mul(weights)", weighted_size);
        held.push(self.alloc("empty_like", index));
        let order = self.alloc("arange", index);
        self.free(order);
        held.push(self.alloc("index(order)", weighted_size));
        self.free(weighted);
        let sum_size = self.per_token(hidden.saturating_mul(combine));
        let sum = self.alloc("sum", sum_size);
        let output = if combine == self.e { sum } else { self.token("to(dtype)", hidden) };
        self.free_all(&held);
        if output != sum {
            self.free(sum);
        }
        output
    }

    /// The clamped, shifted SwiGLU of gpt-oss.
    fn clamped(&mut self, width: u64, both: Id) -> Id {
        let (gate, up) = (self.token("clamp", width), self.token("clamp", width));
        let scaled = self.token("mul", width);
        let sigmoid = self.token("sigmoid", width);
        self.free(scaled);
        let glu = self.token("mul", width);
        self.free(sigmoid);
        let shifted = self.token("add", width);
        let product = self.token("mul", width);
        self.free_all(&[shifted, gate, up, glu, both]);
        product
    }

    /// Llama 4: the hidden states repeated for every expert, batched over experts.
    fn every_expert(&mut self, experts: u64, width: u64, hidden: u64) -> Id {
        let repeated = self.token("repeat", experts.saturating_mul(hidden));
        let scaled = self.token("mul(scores)", experts.saturating_mul(hidden));
        self.free(repeated);
        let both = self.token("bmm", experts.saturating_mul(width * 2));
        let activated = self.token("act_fn", experts.saturating_mul(width));
        let product = self.token("mul", experts.saturating_mul(width));
        self.free_all(&[activated]);
        let output = self.token("bmm", experts.saturating_mul(hidden));
        self.free_all(&[product, both, scaled]);
        let sum = self.token("sum", hidden);
        self.free(output);
        sum
    }
}
