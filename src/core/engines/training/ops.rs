//! Operators: what each makes, what it keeps for backward, and what its backward makes.
//! From PyTorch's `derivatives.yaml` and `FunctionsManual.cpp`, seen at work in traces of torch 2.15.

use super::graph::{Data, Graph, Tensor};

/// Bytes of an fp32 element.
pub(super) const F32: u64 = 4;
/// Bytes of an int64 element.
pub(super) const I64: u64 = 8;

impl Graph<'_> {
    /// A cast; the tensor itself where it has that size already.
    pub(super) fn cast(&self, op: &'static str, x: &Tensor, e: u64) -> Tensor {
        if x.data.e == e {
            return x.clone();
        }
        let tracked = self.records(&[x]);
        let out = self.new_like(op, &x.data, e);
        if !tracked {
            return Tensor::plain(out);
        }
        let back = x.data.e;
        self.node(out, &[x], move |graph, grad| vec![Some(graph.as_dtype(grad, back))])
    }

    /// `a + b`: both gradients are the one that comes in, summed where an operand was broadcast.
    pub(super) fn add(&self, op: &'static str, a: &Tensor, b: &Tensor) -> Tensor {
        let tracked = self.records(&[a, b]);
        let wide = if a.data.n >= b.data.n { &a.data } else { &b.data };
        let out = self.new_like(op, wide, a.data.e.max(b.data.e));
        if !tracked {
            return Tensor::plain(out);
        }
        let shapes = [(a.tracked(), a.data.n, a.data.e), (b.tracked(), b.data.n, b.data.e)];
        self.node(out, &[a, b], move |graph, grad| {
            shapes.map(|(wanted, n, e)| wanted.then(|| graph.reduced(grad.clone(), n, e))).to_vec()
        })
    }

    /// `a * b`, keeping each operand that the other's gradient needs.
    pub(super) fn mul(&self, op: &'static str, a: &Tensor, b: &Tensor) -> Tensor {
        let tracked = self.records(&[a, b]);
        let kept_a = self.save_if(tracked && b.tracked(), &a.data);
        let kept_b = self.save_if(tracked && a.tracked(), &b.data);
        // The layout is that of the wider operand.
        let wide = if a.data.n >= b.data.n { &a.data } else { &b.data };
        let out = self.new_like(op, wide, a.data.e.max(b.data.e));
        if !tracked {
            return Tensor::plain(out);
        }
        let shapes = [(a.data.n, a.data.e), (b.data.n, b.data.e)];
        self.node(out, &[a, b], move |graph, grad| {
            let [first, second] = [&kept_b, &kept_a]
                .map(|kept| kept.as_ref().map(|other| graph.new_like("mul", &grad, grad.e.max(other.e))));
            let first = first.map(|g| graph.reduced(g, shapes[0].0, shapes[0].1));
            let second = second.map(|g| graph.reduced(g, shapes[1].0, shapes[1].1));
            vec![first, second]
        })
    }

    /// A gradient brought to `n` elements of `e` bytes.
    pub(super) fn reduced(&self, grad: Data, n: u64, e: u64) -> Data {
        let grad = if grad.n > n { self.new_data("sum", n, grad.e) } else { grad };
        self.as_dtype(grad, e)
    }

    /// An operator of one input that keeps nothing and whose gradient is a new tensor: scaling, negation.
    pub(super) fn scale(&self, op: &'static str, x: &Tensor) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_like(op, &x.data, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        self.node(out, &[x], move |graph, grad| vec![Some(graph.new_like(op, &grad, grad.e))])
    }

    /// Adding a number, or anything else whose gradient is the one that comes in.
    pub(super) fn shift(&self, op: &'static str, x: &Tensor) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_like(op, &x.data, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        self.node(out, &[x], move |_, grad| vec![Some(grad)])
    }

    /// An activation that keeps its input (SiLU, GELU); the gradient is one new tensor.
    pub(super) fn activation(&self, op: &'static str, x: &Tensor) -> Tensor {
        let tracked = self.records(&[x]);
        let kept = self.save_if(tracked, &x.data);
        let out = self.new_like(op, &x.data, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        self.node(out, &[x], move |graph, grad| {
            let out = graph.new_like(op, &grad, grad.e);
            drop(kept);
            vec![Some(out)]
        })
    }

    /// A function that keeps its output (tanh, sigmoid, softmax); the gradient is one new tensor.
    pub(super) fn keeping_output(&self, op: &'static str, x: &Tensor, e: u64) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_like(op, &x.data, e);
        if !tracked {
            return Tensor::plain(out);
        }
        let kept = self.save(&out);
        self.node(out, &[x], move |graph, grad| {
            let out = graph.new_like(op, &grad, grad.e);
            drop(kept);
            vec![Some(out)]
        })
    }

    /// `x.pow(2)`: keeps x; backward makes the power, its multiple and the product before it drops any.
    pub(super) fn square(&self, x: &Tensor) -> Tensor {
        let tracked = self.records(&[x]);
        let kept = self.save_if(tracked, &x.data);
        let out = self.new_like("pow", &x.data, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        self.node(out, &[x], move |graph, grad| {
            let power = graph.new_like("pow", &grad, grad.e);
            let multiple = graph.new_like("mul", &grad, grad.e);
            let out = graph.new_like("mul", &grad, grad.e);
            drop((power, multiple, kept));
            vec![Some(out)]
        })
    }

    /// The mean over rows: `rows` elements stay.
    pub(super) fn mean(&self, x: &Tensor, rows: u64) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_data("mean", rows, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let n = x.data.n;
        self.node(out, &[x], move |graph, grad| vec![Some(graph.new_data("div", n, grad.e))])
    }

    /// `rsqrt(x)`: keeps its output; backward makes the cube, its multiple and the product.
    pub(super) fn rsqrt(&self, x: &Tensor) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_like("rsqrt", &x.data, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let kept = self.save(&out);
        self.node(out, &[x], move |graph, grad| {
            let cube = graph.new_like("pow", &grad, grad.e);
            let multiple = graph.new_like("mul", &grad, grad.e);
            let out = graph.new_like("mul", &grad, grad.e);
            drop((cube, multiple, kept));
            vec![Some(out)]
        })
    }

    /// A slice: a view of `n` elements, whose gradient is a tensor as large as the whole.
    pub(super) fn slice(&self, x: &Tensor, n: u64) -> Tensor {
        if !self.records(&[x]) {
            return x.viewed(n);
        }
        let (whole, data) = (x.data.n, Data { n, ..x.data.clone() });
        self.node(data, &[x], move |graph, grad| {
            let mut out = graph.new_data("slice_backward", whole, grad.e);
            out.heads_first = true;
            vec![Some(out)]
        })
    }

    /// Several tensors joined into a new one; their gradients are views of its gradient.
    pub(super) fn cat(&self, op: &'static str, parts: &[&Tensor]) -> Tensor {
        let tracked = self.records(parts);
        let n = parts.iter().map(|p| p.data.n).fold(0, u64::saturating_add);
        let e = parts.iter().map(|p| p.data.e).max().unwrap_or(F32);
        let mut out = self.new_data(op, n, e);
        out.heads_first = true;
        if !tracked {
            return Tensor::plain(out);
        }
        let shapes: Vec<_> = parts.iter().map(|p| (p.tracked(), p.data.n)).collect();
        self.node(out, parts, move |_, grad| {
            shapes.iter().map(|&(wanted, n)| wanted.then(|| Data { n, ..grad.clone() })).collect()
        })
    }

    /// Cut into parts that are views; their gradients are joined into one new tensor.
    pub(super) fn split<const N: usize>(&self, x: &Tensor, sizes: [u64; N]) -> [Tensor; N] {
        let parts = sizes.map(|n| Data { n, ..x.data.clone() });
        if !self.records(&[x]) {
            return parts.map(Tensor::plain);
        }
        let (whole, e) = (x.data.n, x.data.e);
        self.nodes_of(
            parts,
            &[x],
            Box::new(move |graph, grads| {
                // Outputs nobody used count as zeros.
                let zeros: Vec<_> = grads
                    .iter()
                    .zip(sizes)
                    .filter(|(g, _)| g.is_none())
                    .map(|(_, n)| graph.new_data("zeros", n, e))
                    .collect();
                let out = Data { heads_first: true, ..graph.new_data("cat", whole, e) };
                drop((zeros, grads));
                vec![Some(out)]
            }),
        )
    }

    /// The copy that `contiguous()` or `reshape` makes; the gradient is handed on as it is.
    pub(super) fn copy(&self, op: &'static str, x: &Tensor, heads_first: bool) -> Tensor {
        let tracked = self.records(&[x]);
        let out = Data { heads_first, ..self.new_data(op, x.data.n, x.data.e) };
        if !tracked {
            return Tensor::plain(out);
        }
        self.node(out, &[x], move |_, grad| vec![Some(grad)])
    }

    /// A tensor copied to `n` elements by repetition; its gradient is summed.
    pub(super) fn spread(&self, x: &Tensor, n: u64) -> Tensor {
        let tracked = self.records(&[x]);
        let out = self.new_data("flatten(expand)", n, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        let back = x.data.n;
        self.node(out, &[x], move |graph, grad| vec![Some(graph.new_data("sum", back, grad.e))])
    }

    /// A projection's output seen head by head: the same storage. Its gradient must be token by token, so one
    /// that is head by head is copied, where there are `many` heads.
    pub(super) fn heads(&self, x: &Tensor, many: bool) -> Tensor {
        if !self.records(&[x]) {
            return x.clone();
        }
        self.node(x.data.clone(), &[x], move |graph, grad| {
            if !grad.heads_first || !many {
                return vec![Some(grad)];
            }
            vec![Some(graph.new_data("clone", grad.n, grad.e))]
        })
    }

    /// Drops a share of the elements at random: keeps a mask, or the noise that it multiplied with.
    pub(super) fn dropout(&self, x: &Tensor, active: bool) -> Tensor {
        if !active {
            return x.clone();
        }
        let tracked = self.records(&[x]);
        let fused = self.rules.fused_dropout;
        let noise = self.new_like("dropout noise", &x.data, if fused { 1 } else { x.data.e });
        let kept = self.save_if(tracked, &noise);
        let out = self.new_like("dropout", &x.data, x.data.e);
        if !tracked {
            return Tensor::plain(out);
        }
        self.node(out, &[x], move |graph, grad| {
            let out = graph.new_like("dropout_backward", &grad, grad.e);
            drop(kept);
            vec![Some(out)]
        })
    }

    /// `a += b`: a's storage stays the result's.
    pub(super) fn add_in_place(&self, a: &Tensor, b: &Tensor) -> Tensor {
        if !self.records(&[a, b]) {
            return Tensor::plain(a.data.clone());
        }
        let wanted = [a.tracked(), b.tracked()];
        self.node(a.data.clone(), &[a, b], move |_, grad| {
            wanted.map(|wanted| wanted.then(|| grad.clone())).to_vec()
        })
    }

    /// `x *= c` or `x /= c`: the storage stays, the gradient is a new tensor.
    pub(super) fn scale_in_place(&self, x: &Tensor) -> Tensor {
        if !self.records(&[x]) {
            return x.clone();
        }
        self.node(x.data.clone(), &[x], |graph, grad| vec![Some(graph.new_like("div", &grad, grad.e))])
    }

    /// fp32 copy, its mean square, and the normalised product.
    pub(super) fn normalised(&self, x: &Tensor, rows: u64) -> Tensor {
        let x32 = self.cast("to(float32)", x, F32);
        let variance = {
            let square = self.square(&x32);
            self.mean(&square, rows)
        };
        let root = {
            let shifted = self.shift("add(eps)", &variance);
            self.rsqrt(&shifted)
        };
        self.mul("mul(rsqrt)", &x32, &root)
    }
}
