//! Routed experts: router, dispatch in one grouped product, and the weighted sum in token order.

use super::graph::{Data, Graph, Tensor};
use super::ops::{F32, I64};
use super::program::{Linear, Program};
use crate::model::{Mlp, MlpKind, TensorClass};

/// Bytes of an int32 element.
const I32: u64 = 4;

/// Geometry of a layer's experts.
#[derive(Clone, Copy, Debug)]
struct Routed {
    experts: u64,
    top_k: u64,
    width: u64,
    gated: bool,
}

impl<'p> Program<'p> {
    /// Routed experts with their shared ones.
    pub(super) fn experts(&self, g: &Graph<'p>, index: usize, mlp: &Mlp, x: &Tensor) -> Tensor {
        let MlpKind::Moe { experts, top_k, intermediate, shared_intermediate, .. } = mlp.kind else {
            return x.clone();
        };
        let routed = Routed { experts, top_k, width: intermediate, gated: mlp.gated };
        let (weights, indices) = self.router(g, routed, x);
        let out = self.routed(g, routed, x, &weights, &indices);
        if shared_intermediate == 0 {
            return out;
        }
        let shared = self.shared(g, index, mlp, shared_intermediate, x);
        g.add("add(shared)", &out, &shared)
    }

    /// The experts that every token passes.
    fn shared(&self, g: &Graph<'p>, index: usize, mlp: &Mlp, width: u64, x: &Tensor) -> Tensor {
        let out = self.dense(g, index, mlp, width, x);
        let gated = self.model.tensors.iter().any(|t| t.name.ends_with("shared_expert_gate.weight"));
        if !gated {
            return out;
        }
        let gate = {
            let gate = Linear {
                name: "shared_expert_gate",
                input: self.model.hidden_size,
                output: 1,
                bias: self.biased(index, TensorClass::Router),
            };
            let raw = self.linear(g, gate, x);
            g.keeping_output("sigmoid", &raw, raw.data.e)
        };
        g.mul("mul(gate)", &gate, &out)
    }

    /// Routing weights and chosen experts.
    fn router(&self, g: &Graph<'p>, r: Routed, x: &Tensor) -> (Tensor, Tensor) {
        let t = self.t();
        let name = "gate";
        let router = Linear { name, input: self.model.hidden_size, output: r.experts, bias: false };
        let (logits, back);
        let scores = if self.class.fp32_router {
            let x = g.cast("to(float32)", x, F32);
            let weight = {
                let n = router.input.saturating_mul(router.output);
                let weight = g.parameter(n, self.router_element(), self.full());
                g.cast("weight.float()", &weight, F32)
            };
            logits = self.product_of(g, router, &x, &weight, None);
            back = F32;
            g.keeping_output("softmax", &logits, F32)
        } else {
            logits = self.product_with(g, router, x, self.e, self.full());
            back = logits.data.e;
            let wide = g.cast("float(router)", &logits, F32);
            g.keeping_output("softmax", &wide, F32)
        };
        let picks = t.saturating_mul(r.top_k);
        let indices = g.constant("topk", picks, I64);
        let values = g.top(&scores, picks, &indices);
        let values =
            if self.class.fp32_router { g.scale("mul(scaling)", &values) } else { g.normed_top(&values, t) };
        drop(scores);
        let to = if self.class.fp32_combine { F32 } else { back };
        let weights = g.cast("to(dtype)", &values, to);
        drop(logits);
        (weights, indices)
    }

    /// Bytes of an element of the router's weight: some classes keep it in fp32.
    fn router_element(&self) -> u64 {
        let routers = self.model.tensors.iter().filter(|t| t.class == TensorClass::Router);
        routers.filter_map(|t| t.dtype).map(crate::model::DType::bytes).max().unwrap_or(self.e)
    }

    /// Tokens gathered by expert, two grouped products, weighted and summed back in token order.
    fn routed(&self, g: &Graph<'p>, r: Routed, x: &Tensor, weights: &Tensor, indices: &Tensor) -> Tensor {
        let hidden = self.model.hidden_size;
        let picks = indices.data.n;
        let wide = |n: u64| picks.saturating_mul(n);
        let sorted = [g.constant("sort", picks, I64), g.constant("sort", picks, I64)];
        let gathered = {
            let places = g.constant("floor_divide", picks, I64);
            g.gather("index(hidden)", x, &places, wide(hidden))
        };
        let picked = g.gather("index(weights)", weights, &sorted[1], picks);
        let counts = [g.constant("to(int32)", picks, I32), g.constant("histc", r.experts, I32)];
        let offsets = g.constant("cumsum", r.experts, I32);
        let first = if r.gated { r.width * 2 } else { r.width };
        let up = self.grouped(g, &gathered, &offsets, [r.experts, hidden, first], wide(first));
        let product = if r.gated {
            let [gate, up] = g.split(&up, [wide(r.width), wide(r.width)]);
            let activated = g.activation("act_fn", &gate);
            g.mul("mul", &activated, &up)
        } else {
            g.activation("act_fn", &up)
        };
        drop(up);
        let out = self.grouped(g, &product, &offsets, [r.experts, r.width, hidden], wide(hidden));
        drop(product);
        let ordered = {
            let weighted = g.mul("mul(weights)", &out, &picked);
            let places = g.constant("empty_like", picks, I64);
            let ordered = {
                let range = g.constant("arange", picks, I64);
                drop(range);
                g.gather("index(order)", &weighted, &places, wide(hidden))
            };
            drop(weighted);
            ordered
        };
        let sum = g.sum_over("sum", &ordered, self.t().saturating_mul(hidden));
        drop((sorted, counts, gathered, picked, out));
        g.cast("to(dtype)", &sum, x.data.e)
    }

    /// One product per expert over its own rows.
    fn grouped(
        &self,
        g: &Graph<'p>,
        x: &Tensor,
        offsets: &Tensor,
        [experts, input, output]: [u64; 3],
        n: u64,
    ) -> Tensor {
        let x = self.operand(g, x);
        let weight = self.weight(g, experts.saturating_mul(input).saturating_mul(output));
        let weight = self.parameter_operand(g, &weight);
        let tracked = g.records(&[&x, &weight]);
        let kept_x = g.save_if(tracked && weight.tracked(), &x.data);
        let kept_w = g.save_if(tracked && x.tracked(), &weight.data);
        let kept_offsets = g.save_if(tracked, &offsets.data);
        let out = g.new_data("grouped_mm", n, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let sizes = [x.data.n, weight.data.n];
        g.node(out, &[&x, &weight], move |g, grad| {
            let of = |n| g.new_data("grouped_mm", n, grad.e);
            let weight = kept_x.as_ref().map(|_| of(sizes[1]));
            let x = kept_w.as_ref().map(|_| of(sizes[0]));
            drop((kept_x, kept_w, kept_offsets));
            vec![x, weight]
        })
    }
}

impl Graph<'_> {
    /// The highest scores: backward scatters into zeros of the whole.
    fn top(&self, scores: &Tensor, picks: u64, indices: &Tensor) -> Tensor {
        let tracked = self.records(&[scores]);
        let kept = self.save_if(tracked, &indices.data);
        let out = self.new_data("topk", picks, scores.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let n = scores.data.n;
        self.node(out, &[scores], move |g, grad| {
            let zeros = g.new_data("new_zeros", n, grad.e);
            let out = g.new_data("scatter", n, grad.e);
            drop((zeros, kept));
            vec![Some(out)]
        })
    }

    /// `values /= values.sum(-1)` in place: keeps a copy of the values and the sums.
    fn normed_top(&self, values: &Tensor, rows: u64) -> Tensor {
        let tracked = self.records(&[values]);
        let sums = self.new_data("sum", rows, values.data.e);
        if !tracked {
            return values.clone();
        }
        let before = self.new_data("clone", values.data.n, values.data.e);
        let kept = [self.save(&before), self.save(&sums)];
        self.node(values.data.clone(), &[values], move |g, grad| {
            let like = |op| g.new_like(op, &grad, grad.e);
            let own = like("div");
            let of_sum = (like("div"), like("neg"), like("mul"), like("div"));
            let reduced = g.new_data("sum", rows, grad.e);
            drop(of_sum);
            let out = like("add");
            drop((own, reduced, kept));
            vec![Some(out)]
        })
    }

    /// Rows picked by index: backward puts them into zeros of the whole, out of place.
    pub(super) fn gather(&self, op: &'static str, x: &Tensor, places: &Tensor, n: u64) -> Tensor {
        let tracked = self.records(&[x]);
        let kept = self.save_if(tracked, &places.data);
        let out = self.new_data(op, n, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let whole = x.data.n;
        self.node(out, &[x], move |g, grad| {
            let zeros = g.new_data("new_zeros", whole, grad.e);
            let out = g.new_data("index_put", whole, grad.e);
            drop((zeros, kept));
            vec![Some(out)]
        })
    }

    /// A sum over the picks of each token: backward expands the gradient and copies it.
    fn sum_over(&self, op: &'static str, x: &Tensor, n: u64) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_data(op, n, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let whole = x.data.n;
        self.node(out, &[x], move |g, grad| vec![Some(g.new_data("clone", whole, grad.e))])
    }

    /// Keys made of two parts written into a new tensor: what their gradients go through.
    pub(super) fn written(&self, nope: &Tensor, rope: &Tensor, heads: u64) -> Tensor {
        let tracked = self.records(&[nope, rope]);
        let wide = rope.data.n.saturating_mul(heads);
        let n = nope.data.n.saturating_add(wide);
        let out = Data { heads_first: true, ..self.new_data("new_empty", n, nope.data.e) };
        if !tracked {
            return Tensor::plain(out);
        }
        let sizes = [nope.data.n, rope.data.n];
        self.node(out, &[nope, rope], move |g, grad| {
            // One copy per written slice: the whole, the slice, and zeros in its place.
            let first = g.new_data("new_empty_strided", n, grad.e);
            let part = g.new_data("clone", wide, grad.e);
            let zeros = g.new_data("zeros_like", wide, grad.e);
            drop((grad, zeros));
            let second = g.new_data("new_empty_strided", n, first.e);
            drop(first);
            let nope = Data { heads_first: true, ..g.new_data("clone", sizes[0], second.e) };
            drop(second);
            let rope = g.new_data("sum", sizes[1], part.e);
            vec![Some(nope), Some(rope)]
        })
    }
}
