//! What one forward pass of a model is made of, and the parts that every class shares: linear layers with their
//! adapters and casts, and normalisations.

use super::graph::{Data, Graph, Tensor};
use super::ops::F32;
use super::pool::BLOCK;
use super::settings::TrainSettings;
use super::shards::Shards;
use super::style::Style;
use crate::engines::transformers::class::Class;
use crate::engines::transformers::layout::Layout;
use crate::model::{Dropout, MlpKind, Model};
use std::cell::RefCell;

/// A model, a class and settings: everything that the forward pass needs to know.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) model: &'a Model,
    pub(super) class: Class,
    pub(super) style: Style,
    pub(super) train: &'a TrainSettings,
    pub(super) layout: Layout<'a>,
    /// Names of the linear layers of a plain feed-forward.
    pub(super) names: Names,
    /// Bytes of a parameter.
    pub(super) e: u64,
    /// Bytes of the elements that autocast computes in, where it is on.
    pub(super) fast: Option<u64>,
    /// Half precision is fp16: softmax reads it directly.
    pub(super) half_to_float: bool,
    /// q and k are normalised over their full width, not per head.
    pub(super) full_width_qk_norm: bool,
    /// Dropout probabilities that are not zero.
    pub(super) dropout: Dropout,
    /// How parameters are sharded, where they are.
    pub(super) shards: Option<Shards>,
    /// Attention weights that the last layer returned, where the class's layers return them.
    pub(super) returned: RefCell<Option<Tensor>>,
    /// Casts of parameters that autocast keeps until its block ends.
    pub(super) casts: RefCell<Vec<Tensor>>,
}

/// Names that differ from class to class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) up: &'static str,
    pub(super) down: &'static str,
    pub(super) output: &'static str,
    pub(super) qkv: &'static str,
}

/// One linear layer as it is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    /// The last part of its name.
    pub(super) name: &'static str,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) bias: bool,
}

impl<'p> Program<'p> {
    /// B.
    pub(super) fn b(&self) -> u64 {
        self.train.micro_batch
    }

    /// S.
    pub(super) fn s(&self) -> u64 {
        self.train.seq_len
    }

    /// T: tokens of the pass.
    pub(super) fn t(&self) -> u64 {
        self.b().saturating_mul(self.s())
    }

    /// Bytes of an element that a product gives for an input of `e` bytes.
    pub(super) fn product(&self, e: u64) -> u64 {
        self.fast.unwrap_or(e)
    }

    /// Bytes of registered buffers: rotary frequencies, and the balancing bias of routers that have one.
    pub(super) fn buffers(&self) -> u64 {
        let small = self.class.buffers.saturating_mul(BLOCK);
        // MiniMax keeps it in the model's dtype, the others in fp32.
        let e = match self.model.model_type.as_str() {
            "deepseek_v3" | "kimi_k2" | "glm4_moe" => F32,
            "minimax_m2" => self.e,
            _ => return small,
        };
        let biases = self.model.layers.iter().map(|l| match l.mlp.kind {
            MlpKind::Moe { experts, .. } => (experts * e).next_multiple_of(BLOCK),
            _ => 0,
        });
        small + biases.sum::<u64>()
    }

    /// Whether the base model's parameters get gradients.
    pub(super) fn full(&self) -> bool {
        self.train.lora.is_none()
    }

    /// The embedding's output is made to take a gradient, so that checkpoints have one to hand back.
    pub(super) fn wants_input_grads(&self) -> bool {
        !self.full() && self.train.checkpointing != super::settings::Checkpointing::None
    }

    /// A parameter of `n` elements of the base model.
    pub(super) fn weight(&self, g: &Graph<'p>, n: u64) -> Tensor {
        g.parameter(n, self.e, self.full())
    }

    /// What autocast makes of an operand of a product: a cast, unless it is in half precision already.
    pub(super) fn operand(&self, g: &Graph<'p>, x: &Tensor) -> Tensor {
        match self.fast {
            Some(fast) if x.data.e != fast => g.cast("autocast", x, fast),
            _ => x.clone(),
        }
    }

    /// The cast of a parameter, kept until autocast's block ends where it is trained.
    pub(super) fn parameter_operand(&self, g: &Graph<'p>, w: &Tensor) -> Tensor {
        let cast = self.operand(g, w);
        if self.fast.is_some() && w.tracked() && cast.data.e != w.data.e {
            self.casts.borrow_mut().push(cast.clone());
        }
        cast
    }

    /// `nn.Linear`, with its adapter where it has one.
    pub(super) fn linear(&self, g: &Graph<'p>, layer: Linear, x: &Tensor) -> Tensor {
        let quantised = self.train.base_quantization.is_some();
        let base = if quantised {
            self.restored(g, layer, x)
        } else {
            self.product_with(g, layer, x, self.e, self.full())
        };
        let Some(lora) = self.train.lora.as_ref().filter(|l| l.targets.hold(layer.name)) else {
            return base;
        };
        // Adapters are fp32: the input is cast, and the sum is fp32 until it is cast back. Over a quantised base the
        // output is copied first, and what is added is cast before the sum.
        let base = if quantised { g.copy("clone", &base, false) } else { base };
        let back = base.data.e;
        let x = g.cast("to(float32)", x, F32);
        let down = Linear { name: "lora_A", input: layer.input, output: lora.rank, bias: false };
        let up = Linear { name: "lora_B", input: lora.rank, output: layer.output, bias: false };
        let sum = {
            let delta = {
                let low = self.product_with(g, down, &x, F32, true);
                self.product_with(g, up, &low, F32, true)
            };
            let mut scaled = g.scale("mul(scaling)", &delta);
            drop(delta);
            if quantised {
                scaled = g.cast("to(dtype)", &scaled, back);
            }
            g.add("add(lora)", &base, &scaled)
        };
        drop(base);
        g.cast("to(dtype)", &sum, back)
    }

    /// A product with a 4-bit weight (bitsandbytes `MatMul4Bit`): restored for the product, forward and backward.
    fn restored(&self, g: &Graph<'p>, layer: Linear, x: &Tensor) -> Tensor {
        let n = layer.input.saturating_mul(layer.output);
        let rows = x.data.n.checked_div(layer.input).unwrap_or(0);
        let weight = dequantised(g, n, self.e);
        let tracked = g.records(&[x]);
        let out = g.new_data("matmul_4bit", rows.saturating_mul(layer.output), self.e);
        drop(weight);
        if !tracked {
            return Tensor::plain(out);
        }
        let back = x.data.n;
        let (e, saved) = (self.e, g.constant("", 0, 1));
        let saved = g.save(&saved.data);
        g.node(out, &[x], move |g, grad| {
            let weight = dequantised(g, n, e);
            let out = g.new_data("matmul_4bit", back, grad.e);
            drop((weight, saved));
            vec![Some(out)]
        })
    }

    /// The product itself: `mm`, or `addmm` where there is a bias.
    pub(super) fn product_with(
        &self,
        g: &Graph<'p>,
        layer: Linear,
        x: &Tensor,
        e: u64,
        trained: bool,
    ) -> Tensor {
        let weight = g.parameter(layer.input.saturating_mul(layer.output), e, trained);
        let bias = layer.bias.then(|| g.parameter(layer.output, e, trained));
        self.product_of(g, layer, x, &weight, bias)
    }

    /// The product with a given weight.
    pub(super) fn product_of(
        &self,
        g: &Graph<'p>,
        layer: Linear,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<Tensor>,
    ) -> Tensor {
        let Linear { input, output, .. } = layer;
        let e = weight.data.e;
        let x = self.operand(g, x);
        let weight = self.parameter_operand(g, weight);
        let bias = bias.map(|b| self.parameter_operand(g, &b));
        let tracked = g.records(&[&x, &weight]);
        let kept_x = g.save_if(tracked && weight.tracked(), &x.data);
        let kept_w = g.save_if(tracked && x.tracked(), &weight.data);
        let rows = x.data.n.checked_div(input).unwrap_or(0);
        let out = g.new_data("mm", rows.saturating_mul(output), self.product(e));
        if !tracked {
            return Tensor::plain(out);
        }
        let (n, kx) = (weight.data.n, x.data.n);
        let nobody = g.constant("", 0, e);
        let with_bias = bias.is_some();
        let bias = bias.unwrap_or(nobody);
        let bias_tracked = bias.tracked();
        g.node(out, &[&x, &weight, &bias], move |g, grad| {
            let of_x = |g: &Graph<'p>| kept_w.as_ref().map(|_| g.new_data("mm", kx, grad.e));
            let of_w = |g: &Graph<'p>| kept_x.as_ref().map(|_| g.new_data("mm", n, grad.e));
            // addmm takes its operands in order, mm the second first.
            let (x, w) = if with_bias {
                let x = of_x(g);
                (x, of_w(g))
            } else {
                let w = of_w(g);
                (of_x(g), w)
            };
            let b = bias_tracked.then(|| g.new_data("sum", output, grad.e));
            vec![x, w, b]
        })
    }

    /// A tensor of `per_token` elements for every token, in the model's dtype, without history.
    pub(super) fn token(&self, g: &Graph<'p>, op: &'static str, per_token: u64) -> Data {
        g.new_data(op, self.t().saturating_mul(per_token), self.e)
    }
}

/// A 4-bit weight restored to elements of `e` bytes; its doubly quantised scales are restored to fp32 before.
fn dequantised(g: &Graph<'_>, n: u64, e: u64) -> Tensor {
    let scales = g.constant("dequantised scales", n.div_ceil(NF4_BLOCK), F32);
    let weight = g.constant("dequantised weight", n, e);
    drop(scales);
    weight
}

/// Weights that one scale of NF4 covers.
const NF4_BLOCK: u64 = 64;
