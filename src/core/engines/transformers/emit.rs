//! Writing tensors on the tape: sizes per token, casts, and the normalisations every part uses.

use super::class::{Class, Norm};
use super::tape::{Block, Dim, Id, Size, Tape};
use crate::memory::TermId;

/// Bytes of an fp32 element.
pub(super) const F32: u64 = 4;
/// Bytes of an int64 element.
pub(super) const I64: u64 = 8;

/// The tape with what every part needs to know to write on it.
pub(super) struct Emit {
    pub(super) tape: Tape,
    pub(super) class: Class,
    /// e: bytes per element of the model's dtype.
    pub(super) e: u64,
    /// The model runs in fp16, where softmax reads half precision directly.
    pub(super) half_to_float: bool,
    /// One query token per sequence.
    pub(super) decode: bool,
    /// Caches hold the tokens before.
    pub(super) past: bool,
    /// The term new blocks belong to.
    pub(super) term: TermId,
}

impl Emit {
    /// Bytes per token of the pass.
    pub(super) fn per_token(&self, bytes: u64) -> Size {
        let q = if self.decode { Dim::One } else { Dim::Q };
        Size { dims: [Dim::B, q, Dim::One], coefficient: bytes }
    }

    /// Bytes per token and token seen, for one attention slot.
    pub(super) fn per_pair(&self, slot: u8, bytes: u64) -> Size {
        let q = if self.decode { Dim::One } else { Dim::Q };
        Size { dims: [Dim::B, q, Dim::C(slot)], coefficient: bytes }
    }

    /// Bytes per position of the pass, whatever the batch.
    pub(super) fn per_position(&self, bytes: u64) -> Size {
        let q = if self.decode { Dim::One } else { Dim::Q };
        Size { dims: [Dim::One, q, Dim::One], coefficient: bytes }
    }

    pub(super) fn fixed(bytes: u64) -> Size {
        Size { dims: [Dim::One; 3], coefficient: bytes }
    }

    pub(super) fn alloc(&mut self, op: &'static str, size: Size) -> Id {
        self.tape.alloc(Block { size, times: 1, term: self.term, op })
    }

    /// A new tensor of `width` elements per token in the model's dtype.
    pub(super) fn token(&mut self, op: &'static str, width: u64) -> Id {
        let size = self.per_token(width.saturating_mul(self.e));
        self.alloc(op, size)
    }

    /// A new fp32 tensor of `width` elements per token.
    pub(super) fn token_f32(&mut self, op: &'static str, width: u64) -> Id {
        let size = self.per_token(width.saturating_mul(F32));
        self.alloc(op, size)
    }

    pub(super) fn free(&mut self, id: Id) {
        self.tape.free(id);
    }

    pub(super) fn free_all(&mut self, ids: &[Id]) {
        for &id in ids {
            self.free(id);
        }
    }

    /// A cast to fp32: a copy, unless the model is fp32 already.
    fn upcast(&mut self, width: u64) -> Option<Id> {
        (self.e != F32).then(|| self.token_f32("to(float32)", width))
    }

    /// The normalisation of `rows` rows of `width` per token; its output is a new tensor.
    pub(super) fn norm(&mut self, rows: u64, width: u64) -> Id {
        let all = rows.saturating_mul(width);
        match self.class.norm {
            Norm::Fused => {
                let out = self.token("layer_norm", all);
                let mean = self.token_f32("layer_norm", rows);
                let rstd = self.token_f32("layer_norm", rows);
                self.free_all(&[mean, rstd]);
                out
            }
            Norm::Rms => {
                let (scaled, variance) = self.normalised(rows, all);
                let cast = (self.e != F32).then(|| self.token("to(dtype)", all));
                let out = self.token("mul", all);
                if let Some(cast) = cast {
                    self.free(cast);
                }
                self.free_all(&[scaled, variance]);
                out
            }
            Norm::RmsWeightFp32 => {
                let (scaled, variance) = self.normalised(rows, all);
                let weighted = self.token_f32("mul", all);
                let out = if self.e == F32 { weighted } else { self.token("to(dtype)", all) };
                if self.e != F32 {
                    self.free(weighted);
                }
                self.free_all(&[scaled, variance]);
                out
            }
            Norm::Gemma => self.gemma(rows, width),
        }
    }

    /// fp32 copy, its square and mean, and the normalised product; returns the product and the mean.
    fn normalised(&mut self, rows: u64, all: u64) -> (Id, Id) {
        let copy = self.upcast(all);
        let square = self.token_f32("pow", all);
        let variance = self.token_f32("mean", rows);
        self.free(square);
        let shifted = self.token_f32("add", rows);
        let root = self.token_f32("rsqrt", rows);
        self.free(shifted);
        let scaled = self.token_f32("mul", all);
        self.free(root);
        if let Some(copy) = copy {
            self.free(copy);
        }
        (scaled, variance)
    }

    fn gemma(&mut self, rows: u64, width: u64) -> Id {
        let all = rows.saturating_mul(width);
        let copy = self.upcast(all);
        let square = self.token_f32("pow", all);
        let mean = self.token_f32("mean", rows);
        self.free(square);
        let shifted = self.token_f32("add", rows);
        self.free(mean);
        let root = self.token_f32("rsqrt", rows);
        self.free(shifted);
        let scaled = self.token_f32("mul", all);
        self.free(root);
        if let Some(copy) = copy {
            self.free(copy);
        }
        let weight = self.alloc("weight.float()", Emit::fixed(width.saturating_mul(F32)));
        let one_plus = self.alloc("add", Emit::fixed(width.saturating_mul(F32)));
        self.free(weight);
        let weighted = self.token_f32("mul", all);
        self.free_all(&[one_plus, scaled]);
        if self.e == F32 {
            return weighted;
        }
        let out = self.token("type_as", all);
        self.free(weighted);
        out
    }
}
