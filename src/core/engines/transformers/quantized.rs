//! `QuantizedCache` on quanto: past tokens packed in groups of 64 with a scale and a shift each, the latest up to
//! 128 as they are; every step restores a whole layer and joins it with them. `QuantizedLayer` and
//! `QuantoQuantizedLayer` in `cache_utils.py` of transformers 5.24, traced with optimum-quanto 0.2.7.

use super::emit::Emit;
use super::layout::{Layout, Stored};
use super::tape::{Block, Dim, Id, Size};
use crate::memory::TermId;

/// Elements that share a scale and a shift.
const GROUP: u64 = 64;

/// Tokens kept as they are before all are packed anew.
pub(super) const RESIDUAL: u64 = 128;

/// Packed tokens, and those kept as they are, before a pass that follows `past` tokens of which `prompt` came at
/// once: at the highest of the passes until then, which is the one before all are packed anew.
pub(super) fn held(past: u64, prompt: u64) -> (u64, u64) {
    let residual = past.saturating_sub(prompt).min(RESIDUAL - 1);
    (past - residual, residual)
}

/// Bytes of a packed element times [`GROUP`].
pub(super) fn group_bytes(bits: u64, element: u64) -> u64 {
    GROUP * bits / 8 + 2 * element
}

impl Emit {
    /// The caches of `times` layers.
    pub(super) fn packed(&mut self, layout: &Layout<'_>, stored: &Stored, times: u64) {
        for (op, width) in [("packed keys", stored.key), ("packed values", stored.value)] {
            let e = layout.kv_element;
            self.kept_tokens(op, width * layout.lengths.bits / 8, Dim::Packed, times);
            self.kept_tokens("scale and shift", width * e / GROUP, Dim::Packed, times * 2);
            self.kept_tokens("latest tokens", width * e, Dim::Residual, times);
        }
    }

    fn kept_tokens(&mut self, op: &'static str, coefficient: u64, tokens: Dim, times: u64) {
        let size = Size { dims: [Dim::B, Dim::One, tokens], coefficient };
        self.tape.alloc(Block { size, times, term: TermId::KvCache, op });
    }

    /// After the prompt: K and V made contiguous and packed one after the other; attention takes them as they are.
    pub(super) fn pack(&mut self, layout: &Layout<'_>, stored: &Stored) {
        for width in [stored.key, stored.value] {
            let whole = self.token("contiguous", width);
            let codes = self.per_token(width);
            let codes = self.alloc("quantize", codes);
            self.free_all(&[whole, codes]);
        }
        self.packed(layout, stored, 1);
    }

    /// A decode step: both restored, joined with the latest tokens, and packed anew where those are many.
    /// What attention gets is for the caller to drop.
    pub(super) fn unpack(&mut self, layout: &Layout<'_>, stored: &Stored) -> [Id; 2] {
        let e = layout.kv_element;
        let widths = [stored.key, stored.value];
        let mut restored = widths.map(|w| self.across("dequantize", w * e, Dim::Packed));
        if layout.lengths.beams > 1 {
            let ordered = widths.map(|w| self.across("index_select(beams)", w * e, Dim::Packed));
            self.free_all(&restored);
            restored = ordered;
        }
        let joined = widths.map(|w| self.across("cat(restored, latest)", w * e, Dim::C(0)));
        for width in widths {
            let codes = self.across("quantize", width, Dim::Flush);
            let packed = self.across("pack", width * layout.lengths.bits / 8, Dim::Flush);
            let shifted = self.across("pack", width * layout.lengths.bits / 8, Dim::Flush);
            self.free_all(&[codes, packed, shifted]);
        }
        self.free_all(&restored);
        joined
    }

    fn across(&mut self, op: &'static str, coefficient: u64, tokens: Dim) -> Id {
        self.alloc(op, Size { dims: [Dim::B, Dim::One, tokens], coefficient })
    }
}
