//! Normalisations, as each class writes them.

use super::graph::{Graph, Tensor};
use super::ops::F32;
use super::program::Program;
use super::style::OwnNorm;
use crate::engines::transformers::class::Norm;
use crate::model::TensorClass;

impl<'p> Program<'p> {
    /// The normalisation of `rows` rows of `width` per token.
    pub(super) fn norm(&self, g: &Graph<'p>, x: &Tensor, rows: u64, width: u64) -> Tensor {
        let rows = rows.saturating_mul(self.t());
        match self.style.norm {
            Some(OwnNorm::Centred) => return self.centred(g, x, rows, width),
            Some(OwnNorm::Bare) => {
                let x32 = g.cast("to(float32)", x, F32);
                let out = g.layer_norm(&x32, None, rows);
                drop(x32);
                return g.cast("to(dtype)", &out, x.data.e);
            }
            None => {}
        }
        match self.class.norm {
            Norm::Fused => self.layer_norm(g, x, rows, width),
            Norm::Rms => {
                let back = x.data.e;
                let scaled = g.normalised(x, rows);
                let low = g.cast("to(dtype)", &scaled, back);
                let weight = self.weight(g, width);
                let out = g.mul("mul(weight)", &weight, &low);
                drop(scaled);
                out
            }
            Norm::RmsWeightFp32 => {
                let back = x.data.e;
                let scaled = g.normalised(x, rows);
                let weight = self.weight(g, width);
                let weighted = g.mul("mul(weight)", &weight, &scaled);
                g.cast("to(dtype)", &weighted, back)
            }
            Norm::Gemma => {
                let back = x.data.e;
                let x32 = g.cast("float", x, F32);
                let root = {
                    let mean = {
                        let square = g.square(&x32);
                        g.mean(&square, rows)
                    };
                    let shifted = g.shift("add(eps)", &mean);
                    drop(mean);
                    g.rsqrt(&shifted)
                };
                let scaled = g.mul("mul(rsqrt)", &x32, &root);
                drop((x32, root));
                let weight = self.weight(g, width);
                let one_plus = {
                    let weight = g.cast("weight.float()", &weight, F32);
                    g.shift("add(1)", &weight)
                };
                let weighted = g.mul("mul(weight)", &scaled, &one_plus);
                drop((scaled, one_plus));
                g.cast("type_as", &weighted, back)
            }
        }
    }

    /// Cohere's: the mean is taken off once for the variance and once for the product.
    fn centred(&self, g: &Graph<'p>, x: &Tensor, rows: u64, width: u64) -> Tensor {
        let x32 = g.cast("to(float32)", x, F32);
        let mean = g.mean(&x32, rows);
        let variance = {
            let square = g.square(&g.add("sub", &x32, &mean));
            g.mean(&square, rows)
        };
        let scaled = {
            let centred = g.add("sub", &x32, &mean);
            let root = g.rsqrt(&g.shift("add(eps)", &variance));
            g.mul("mul(rsqrt)", &centred, &root)
        };
        drop(x32);
        let weight = g.cast("weight.float()", &self.weight(g, width), F32);
        let weighted = g.mul("mul(weight)", &weight, &scaled);
        drop(scaled);
        g.cast("to(dtype)", &weighted, x.data.e)
    }

    /// `nn.LayerNorm` with its weight, and its bias where it has one.
    fn layer_norm(&self, g: &Graph<'p>, x: &Tensor, rows: u64, width: u64) -> Tensor {
        // Autocast runs it in fp32.
        let x = if self.fast.is_some() { g.cast("autocast", x, F32) } else { x.clone() };
        let biased =
            self.model.tensors.iter().any(|t| t.class == TensorClass::Norm && t.name.ends_with("bias"));
        let weight = self.weight(g, width);
        let bias = if biased { self.weight(g, width) } else { g.parameter(width, self.e, false) };
        g.layer_norm(&x, Some([&weight, &bias]), rows)
    }
}

impl Graph<'_> {
    /// `native_layer_norm`: one kernel that keeps its input, mean and reciprocal deviation.
    fn layer_norm(&self, x: &Tensor, affine: Option<[&Tensor; 2]>, rows: u64) -> Tensor {
        let none = self.constant("", 0, F32);
        let [weight, bias] = affine.unwrap_or([&none, &none]);
        let tracked = self.records(&[x, weight]);
        let kept = self.save_if(tracked, &x.data);
        let kept_weight = self.save_if(tracked && affine.is_some(), &weight.data);
        let out = self.new_data("native_layer_norm", x.data.n, x.data.e);
        let statistics = [(); 2].map(|()| self.new_data("native_layer_norm", rows, F32));
        if !tracked {
            return Tensor::plain(out);
        }
        let statistics = statistics.map(|s| self.save(&s));
        let wanted = x.tracked();
        let affine = [weight, bias].map(|t| t.tracked().then_some((t.data.n, t.data.e)));
        self.node(out, &[x, weight, bias], move |g, grad| {
            let op = "native_layer_norm_backward";
            let out = wanted.then(|| g.new_like(op, &grad, grad.e));
            let [weight, bias] = affine.map(|t| t.map(|(n, e)| g.new_data(op, n, e)));
            drop((kept, kept_weight, statistics));
            vec![out, weight, bias]
        })
    }
}
