//! The attention kernels: eager with its materialised scores, sdpa with what it picks, flash.

use super::class::{Class, Softmax};
use super::emit::{Emit, F32, I64};
use super::tape::{Dim, Id, Size};
use crate::engines::AttentionImpl;
use crate::memory::TermId;

/// Head dims up to this go to the flash kernel.
const FLASH_HEAD_DIM: u64 = 256;

/// Geometry of one attention call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Cache slot whose tokens are seen.
    pub(super) slot: u8,
    /// H.
    pub(super) heads: u64,
    /// Heads of K and V as given to the kernel.
    pub(super) kv_heads: u64,
    /// Head dim of q and k.
    pub(super) head_dim: u64,
    /// Head dim of v.
    pub(super) v_head_dim: u64,
    /// A mask tensor is passed.
    pub(super) masked: bool,
    /// Scores are soft-capped.
    pub(super) softcap: bool,
    /// A sink column joins the scores.
    pub(super) sinks: bool,
    /// q comes out of a concatenation, so the kernel's output must be made contiguous.
    pub(super) copies_output: bool,
    /// v is a slice of a wider tensor, which a batched product must copy (latent attention).
    pub(super) sliced_values: bool,
    /// Positions are padded (flash unpads).
    pub(super) padded: bool,
}

/// What attention leaves behind: its output, and weights that live on until the layer ends.
pub(super) struct Attended {
    pub(super) output: Id,
    pub(super) weights: Option<Id>,
}

impl Emit {
    /// Bytes per seen token of K or V over `heads` heads.
    fn seen(&self, slot: u8, width: u64) -> Size {
        Size { dims: [Dim::B, Dim::One, Dim::C(slot)], coefficient: width.saturating_mul(self.e) }
    }

    /// K and V repeated to all query heads (`repeat_kv`), where they have fewer. A single head is expanded
    /// without a copy.
    fn repeated(&mut self, c: &Call) -> Vec<Id> {
        if c.heads == c.kv_heads || c.kv_heads == 1 {
            return Vec::new();
        }
        let k = self.seen(c.slot, c.heads.saturating_mul(c.head_dim));
        let v = self.seen(c.slot, c.heads.saturating_mul(c.v_head_dim));
        vec![self.alloc("repeat_kv", k), self.alloc("repeat_kv", v)]
    }

    /// The copy that a batched product makes of an operand it cannot view as one batch: only with several
    /// sequences.
    fn batched_copy(&mut self, c: &Call, head_dim: u64) -> Id {
        let coefficient = c.heads.saturating_mul(head_dim).saturating_mul(self.e);
        let size = Size { dims: [Dim::Many, Dim::One, Dim::C(c.slot)], coefficient };
        self.alloc("bmm operand", size)
    }

    pub(super) fn attend(&mut self, which: AttentionImpl, c: &Call) -> Attended {
        match which {
            AttentionImpl::Eager => self.eager(c),
            AttentionImpl::Sdpa => self.sdpa(c),
            AttentionImpl::Flash => self.flash(c),
        }
    }

    fn eager(&mut self, c: &Call) -> Attended {
        let Class { softmax, .. } = self.class;
        let holding = softmax == Softmax::ModelDtypeHoldingScores;
        let shared = c.kv_heads == 1 && c.heads > 1;
        let copies = self.repeated(c);
        let (model, f32) = (c.heads.saturating_mul(self.e), c.heads.saturating_mul(F32));
        let (model, f32) = (self.per_pair(c.slot, model), self.per_pair(c.slot, f32));
        self.term = TermId::AttentionScores;
        let operand = shared.then(|| self.batched_copy(c, c.head_dim));
        let mut scores = self.alloc("bmm", model);
        self.free_all(operand.as_slice());
        let weights = if holding {
            let masked = self.alloc("add", model);
            let weights = self.alloc("softmax", model);
            self.free_all(&[masked, scores]);
            weights
        } else {
            for op in if c.softcap { &["mul", "div", "tanh", "mul", "add"][..] } else { &["mul", "add"] } {
                let next = self.alloc(op, model);
                self.free(scores);
                scores = next;
            }
            if c.sinks { self.with_sinks(c, scores, model) } else { self.softmax_f32(scores, model, f32) }
        };
        self.term = TermId::Activations;
        let operand = (shared || c.sliced_values).then(|| self.batched_copy(c, c.v_head_dim));
        let product = self.token("bmm", c.heads.saturating_mul(c.v_head_dim));
        self.free_all(operand.as_slice());
        let output = if self.decode {
            product
        } else {
            let output = self.token("contiguous", c.heads.saturating_mul(c.v_head_dim));
            self.free(product);
            output
        };
        self.free_all(&copies);
        Attended { output, weights: Some(weights) }
    }

    /// Softmax in fp32 and the cast back. In fp16 one kernel reads half and writes float; bf16 copies first.
    fn softmax_f32(&mut self, scores: Id, model: Size, f32: Size) -> Id {
        if self.e == F32 {
            let out = self.alloc("softmax", f32);
            self.free(scores);
            return out;
        }
        let copy = (!self.half_to_float).then(|| self.alloc("to(float32)", f32));
        let soft = self.alloc("softmax", f32);
        if let Some(copy) = copy {
            self.free(copy);
        }
        let out = self.alloc("to(dtype)", model);
        self.free_all(&[soft, scores]);
        out
    }

    /// The sink column: scores and sink joined, the maximum taken off, softmax in the model's dtype.
    fn with_sinks(&mut self, c: &Call, scores: Id, model: Size) -> Id {
        let joined = self.alloc("cat(sinks)", model);
        let sink = self.token("cat(sinks)", c.heads);
        let max = self.token("max", c.heads);
        let index_bytes = self.per_token(c.heads.saturating_mul(I64));
        let index = self.alloc("max", index_bytes);
        self.free(index);
        let shifted = self.alloc("sub", model);
        self.free_all(&[max, joined, sink]);
        let weights = self.alloc("softmax", model);
        self.free_all(&[scores, shifted]);
        weights
    }

    /// `scaled_dot_product_attention`: flash without a mask, efficient with one, with uneven head dims or in
    /// fp32 (which takes grouped heads only after repeating them).
    fn sdpa(&mut self, c: &Call) -> Attended {
        let even = c.head_dim == c.v_head_dim && c.head_dim <= FLASH_HEAD_DIM;
        let flash = !c.masked && even && self.e != F32;
        let packed = c.masked && self.decode;
        let copies = if flash || packed || self.class.always_masked { Vec::new() } else { self.repeated(c) };
        let out = c.heads.saturating_mul(c.v_head_dim);
        if flash {
            return Attended { output: self.flash_kernel(c, out), weights: None };
        }
        let mut masks = Vec::new();
        if c.masked {
            self.term = TermId::AttentionScores;
            let (additive, inverted) = (self.per_pair(c.slot, self.e), self.per_pair(c.slot, 1));
            masks.push(self.alloc("mask(dtype)", additive));
            let inverted = self.alloc("logical_not", inverted);
            self.free(inverted);
            let q = if self.decode { Dim::One } else { Dim::Q };
            let pad =
                Size { dims: [Dim::B, q, Dim::Pad(c.slot)], coefficient: c.heads.saturating_mul(self.e) };
            masks.push(self.alloc("pad(mask)", pad));
            self.term = TermId::Activations;
        }
        let mut output = self.token("efficient_attention", out);
        self.free_all(&masks);
        self.free_all(&copies);
        if packed && c.heads > c.kv_heads && !self.class.always_masked {
            let whole = self.token("contiguous", out);
            self.free(output);
            output = whole;
        }
        Attended { output, weights: None }
    }

    fn flash_kernel(&mut self, c: &Call, width: u64) -> Id {
        let output = self.token("flash_attention", width);
        let lse = self.token_f32("flash_attention", c.heads);
        self.free(lse);
        if !c.copies_output || self.decode {
            return output;
        }
        let whole = self.token("contiguous", width);
        self.free(output);
        whole
    }

    /// FlashAttention 2: takes grouped heads and windows itself; pads v to the head dim of q; unpads inputs.
    fn flash(&mut self, c: &Call) -> Attended {
        let mut copies = Vec::new();
        if c.padded {
            copies.push(self.token("unpad", c.heads.saturating_mul(c.head_dim)));
            for dim in [c.head_dim, c.v_head_dim] {
                let size = self.seen(c.slot, c.kv_heads.saturating_mul(dim));
                copies.push(self.alloc("unpad", size));
            }
        }
        if c.v_head_dim < c.head_dim {
            let size = self.seen(c.slot, c.kv_heads.saturating_mul(c.head_dim));
            copies.push(self.alloc("pad(v)", size));
        }
        let width = c.heads.saturating_mul(c.head_dim.max(c.v_head_dim));
        let mut output = self.flash_kernel(&Call { copies_output: false, ..*c }, width);
        if c.padded {
            let whole = self.token("pad_input", width);
            self.free(output);
            output = whole;
        }
        self.free_all(&copies);
        Attended { output, weights: None }
    }
}
