//! The attention kernels: eager with its materialised scores, sdpa with what it picks, flash.

use super::attention::Geometry;
use super::graph::{Data, Graph, Tensor};
use super::ops::F32;
use super::pool::Kind;
use super::program::Program;
use super::settings::Checkpointing;
use crate::engines::AttentionImpl;
use crate::engines::transformers::class::Softmax;

const FLASH: &str = "flash_attention";
/// Head dims up to this go to the flash kernel.
const FLASH_HEAD_DIM: u64 = 256;
/// The efficient kernel pads the rows of its log-sum-exp to a multiple of this (`kAlignLSE`).
const EFFICIENT_LSE: u64 = 32;

/// One attention call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) h: Geometry,
    pub(super) mask: Option<Tensor>,
    /// Scores are soft-capped.
    pub(super) softcap: bool,
    pub(super) dropout: bool,
}

impl<'p> Program<'p> {
    /// The attention core, recomputed in backward where that is asked for.
    pub(super) fn core(
        &'p self,
        g: &Graph<'p>,
        call: Call,
        [q, k, v]: [&Tensor; 3],
    ) -> (Tensor, Option<Tensor>) {
        if self.train.checkpointing != Checkpointing::Selective {
            return self.attend(g, &call, q, k, v);
        }
        let out = g.checkpoint(&[q, k, v], move |g, parts| match parts {
            [q, k, v] => self.attend(g, &call, q, k, v).0,
            _ => g.constant("", 0, 1),
        });
        (out, None)
    }

    /// Attention: its output, token by token, and its weights where they outlive it.
    pub(super) fn attend(
        &self,
        g: &Graph<'p>,
        c: &Call,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
    ) -> (Tensor, Option<Tensor>) {
        match self.layout.lengths.attention {
            AttentionImpl::Eager => {
                let (out, weights) = self.eager(g, c, q, k, v);
                (out, Some(weights))
            }
            AttentionImpl::Sdpa => (self.sdpa(g, c, q, k, v), None),
            AttentionImpl::Flash => (self.flash(g, c, q, k, v), None),
        }
    }

    /// An operand of a batched product: a copy head by head where it is not, unless there is one sequence.
    fn batched(&self, g: &Graph<'p>, x: &Tensor) -> Tensor {
        let x = self.operand(g, x);
        if self.b() == 1 || x.data.heads_first {
            return x;
        }
        g.copy("clone", &x, true)
    }

    fn eager(&self, g: &Graph<'p>, c: &Call, q: &Tensor, k: &Tensor, v: &Tensor) -> (Tensor, Tensor) {
        let holding = self.class.softmax == Softmax::ModelDtypeHoldingScores;
        let keys = repeated(g, c, k, false);
        // Falcon leaves the repetition to the product itself.
        let early = (!holding).then(|| repeated(g, c, v, false));
        let pairs = self.t().saturating_mul(self.s()).saturating_mul(c.h.heads);
        let scores_kind = |body: &dyn Fn() -> Tensor| g.as_kind(Kind::Scores, body);
        let mut weights = {
            let (a, b) = (self.batched(g, q), self.batched(g, &keys));
            scores_kind(&|| {
                let raw = g.bmm(&a, &b, pairs);
                if holding { g.scale_in_place(&raw) } else { g.scale("mul(scaling)", &raw) }
            })
        };
        if c.softcap {
            weights = scores_kind(&|| {
                let divided = g.scale("div", &weights);
                let tanh = g.keeping_output("tanh", &divided, divided.data.e);
                g.scale("mul", &tanh)
            });
        }
        let scores = holding.then(|| weights.clone());
        if let Some(mask) = &c.mask {
            weights = scores_kind(&|| g.add("add(mask)", &weights, mask));
        }
        weights = scores_kind(&|| {
            if self.style.low_softmax {
                g.keeping_output("softmax", &weights, weights.data.e)
            } else {
                self.softmax(g, &weights)
            }
        });
        drop(scores);
        weights = g.dropout(&weights, c.dropout);
        let values = early.unwrap_or_else(|| repeated(g, c, v, false));
        let out = {
            let product = {
                let (a, b) = (self.batched(g, &weights), self.batched(g, &values));
                g.bmm(&a, &b, self.t().saturating_mul(c.h.heads * c.h.v_head_dim))
            };
            self.token_by_token(g, &product)
        };
        (out, weights)
    }

    /// The product head by head made contiguous token by token; the gradient is copied back.
    fn token_by_token(&self, g: &Graph<'p>, x: &Tensor) -> Tensor {
        let copies = self.b() > 1;
        let batched = if g.records(&[x]) {
            g.node(x.data.clone(), &[x], move |g, grad| {
                if !copies {
                    return vec![Some(grad)];
                }
                vec![Some(Data { heads_first: true, ..g.new_data("clone", grad.n, grad.e) })]
            })
        } else {
            x.clone()
        };
        g.copy("contiguous", &batched, false)
    }

    /// Softmax in fp32, cast back. In fp16 one kernel reads half and writes float; bf16 is copied first.
    fn softmax(&self, g: &Graph<'p>, scores: &Tensor) -> Tensor {
        let back = scores.data.e;
        let soft = {
            let wide = if self.half_to_float { scores.clone() } else { g.cast("to(float32)", scores, F32) };
            g.keeping_output("softmax", &wide, F32)
        };
        // The cast is to the dtype of q, which autocast's rotary embedding leaves in fp32.
        let to = if self.fast.is_some() { F32 } else { back };
        g.cast("to(dtype)", &soft, to)
    }

    /// `scaled_dot_product_attention`: flash without a mask; efficient with one, with uneven head dims or in
    /// fp32, which takes grouped heads only after repeating them.
    fn sdpa(&self, g: &Graph<'p>, c: &Call, q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
        let even = c.h.head_dim == c.h.v_head_dim && c.h.head_dim <= FLASH_HEAD_DIM;
        let half = self.fast.is_some() || q.data.e < F32;
        if c.mask.is_none() && even && half {
            let [q, k, v] = [q, k, v].map(|t| self.operand(g, t));
            return self.flash_kernel(g, c, &q, &k, &v, FLASH);
        }
        let repeats = !self.class.always_masked;
        // Without a mask the kernel's own repetition runs, which copies even a single head.
        let copies = c.mask.is_none() && c.h.head_dim <= FLASH_HEAD_DIM;
        let of = |x: &Tensor| if repeats { repeated(g, c, x, copies) } else { x.clone() };
        let (keys, values) = (of(k), of(v));
        let [q, k, v] = [q, &keys, &values].map(|t| self.operand(g, t));
        let mask = c.mask.as_ref().map(|mask| {
            let (rows, e) = (mask.data.n, q.data.e);
            let zeros = g.constant("zeros_like", rows, e);
            let inverted = g.constant("logical_not", rows, 1);
            let filled = g.constant("masked_fill", rows, e);
            drop((zeros, inverted));
            let width = self.s();
            if width.is_multiple_of(8) {
                return filled;
            }
            // Expanded to every head before it is padded.
            let padded = (rows / width).saturating_mul(width + 8 - width % 8);
            g.constant("pad(mask)", padded.saturating_mul(c.h.heads), e)
        });
        let lse = self.b().saturating_mul(c.h.heads).saturating_mul(self.s().next_multiple_of(EFFICIENT_LSE));
        self.kernel(g, c, [&q, &k, &v], mask.as_ref(), "efficient_attention", lse)
    }

    fn flash_kernel(
        &self,
        g: &Graph<'p>,
        c: &Call,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        op: &'static str,
    ) -> Tensor {
        let lse = self.t().saturating_mul(c.h.heads);
        self.kernel(g, c, [q, k, v], None, op, lse)
    }

    /// A fused kernel: keeps its inputs, its output, log-sum-exp and the random state.
    fn kernel(
        &self,
        g: &Graph<'p>,
        c: &Call,
        [q, k, v]: [&Tensor; 3],
        mask: Option<&Tensor>,
        op: &'static str,
        lse: u64,
    ) -> Tensor {
        let tracked = g.records(&[q, k, v]);
        let width = self.t().saturating_mul(c.h.heads * c.h.v_head_dim);
        // Flash lays its output and gradients out as its inputs are, the efficient kernel token by token.
        let flash = op == FLASH;
        let out = Data { heads_first: flash && q.data.heads_first, ..g.new_data(op, width, q.data.e) };
        let extra = [g.new_data(op, lse, F32), g.new_data(op, 1, 8), g.new_data(op, 1, 8)];
        if !tracked {
            return contiguous(g, c, &Tensor::plain(out));
        }
        let kept: Vec<Data> = [&q.data, &k.data, &v.data, &out]
            .into_iter()
            .chain(&extra)
            .chain(mask.map(|m| &m.data))
            .map(|d| g.save(d))
            .collect();
        let wanted = [q, k, v].map(|t| t.tracked().then(|| t.data.clone()));
        let sizes = wanted.map(|w| w.map(|d| (d.n, flash && d.heads_first)));
        let out = g.node(out, &[q, k, v], move |g, grad| {
            let out = sizes.map(|size| {
                size.map(|(n, heads_first)| Data {
                    heads_first,
                    ..g.new_data("attention_backward", n, grad.e)
                })
            });
            drop(kept);
            out.to_vec()
        });
        contiguous(g, c, &out)
    }

    /// FlashAttention 2: takes grouped heads and windows itself, and pads v to the head dim of q.
    fn flash(&self, g: &Graph<'p>, c: &Call, q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
        let [q, k, v] = [q, k, v].map(|t| self.operand(g, t));
        self.flash_kernel(g, c, &q, &k, &v, FLASH)
    }
}

impl Graph<'_> {
    /// One head seen by all: a view, whose gradient is summed over the heads.
    fn expanded(&self, x: &Tensor, n: u64) -> Tensor {
        let view = x.viewed(n);
        if !self.records(&[x]) {
            return view;
        }
        let back = x.data.n;
        self.node(view.data, &[x], move |g, grad| {
            vec![Some(Data { heads_first: true, ..g.new_data("sum(expand)", back, grad.e) })]
        })
    }

    /// A batched product. The gradient of the second operand is made first, as for `mm`.
    fn bmm(&self, a: &Tensor, b: &Tensor, n: u64) -> Tensor {
        let tracked = self.records(&[a, b]);
        let kept_a = self.save_if(tracked && b.tracked(), &a.data);
        let kept_b = self.save_if(tracked && a.tracked(), &b.data);
        let out = Data { heads_first: true, ..self.new_data("bmm", n, a.data.e) };
        if !tracked {
            return Tensor::plain(out);
        }
        let sizes = [a.data.n, b.data.n];
        self.node(out, &[a, b], move |g, grad| {
            let of = |n| Some(Data { heads_first: true, ..g.new_data("bmm", n, grad.e) });
            let second = kept_a.as_ref().and_then(|_| of(sizes[1]));
            let first = kept_b.as_ref().and_then(|_| of(sizes[0]));
            drop((kept_a, kept_b));
            vec![first, second]
        })
    }
}

/// A kernel's output token by token: a copy where it came head by head.
fn contiguous(g: &Graph<'_>, c: &Call, x: &Tensor) -> Tensor {
    if x.data.heads_first && c.h.heads > 1 { g.copy("contiguous", x, false) } else { x.clone() }
}

/// K or V repeated to all query heads; itself where it has as many. A single head is only seen by all, unless
/// `copies`.
fn repeated(g: &Graph<'_>, c: &Call, x: &Tensor, copies: bool) -> Tensor {
    let Geometry { heads, kv_heads, .. } = c.h;
    if heads == kv_heads {
        return x.clone();
    }
    let n = (x.data.n / kv_heads.max(1)).saturating_mul(heads);
    if kv_heads == 1 && !copies {
        // One head is expanded without a copy; its gradient is summed over the heads.
        return g.expanded(x, n);
    }
    let tracked = g.records(&[x]);
    let out = Data { heads_first: true, ..g.new_data("repeat_kv", n, x.data.e) };
    if !tracked {
        return Tensor::plain(out);
    }
    let back = x.data.n;
    g.node(out, &[x], move |g, grad| {
        vec![Some(Data { heads_first: true, ..g.new_data("sum(repeat_kv)", back, grad.e) })]
    })
}
