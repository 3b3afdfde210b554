//! Choosing tokens between forward passes: what `generate` copies of the logits, holds of the step before, keeps
//! for beams, and moves in the cache when beams change places. Read from `generation/utils.py` and
//! `generation/logits_process.py` of transformers 5.24, checked against traces.

use super::emit::{Emit, F32, I64};
use super::layout::{Layout, Step};
use super::program::start;
use super::tape::{Block, Dim, Id, SLOTS, Size, Tape};
use crate::engines::CacheImpl;
use crate::memory::TermId;
use crate::model::DType;

/// Bytes of an int32 element.
const I32: u64 = 4;

/// The choice of tokens after `step`.
pub(super) fn select(layout: &Layout<'_>, step: Step, dtype: DType, tape: Tape) -> Tape {
    let mut emit = start(layout, step, dtype, tape);
    emit.kept(layout);
    let held = emit.held(layout);
    emit.tape.enter("sampling", None);
    emit.caches(layout, None);
    emit.term = TermId::Logits;
    let kept = if emit.decode { Dim::One } else { Dim::N };
    let vocabulary = layout.model.vocab_size;
    let size = Size { dims: [Dim::B, kept, Dim::One], coefficient: vocabulary.saturating_mul(emit.e) };
    let logits = emit.alloc("lm_head", size);
    emit.term = TermId::Sampling;
    if layout.lengths.verify > 0 {
        emit.verify(layout, &held);
    } else if layout.lengths.beams > 1 {
        emit.search(layout, &held, logits);
    } else if layout.lengths.draws {
        emit.draw(vocabulary, &held);
    } else {
        emit.row("float(logits)", vocabulary, F32);
    }
    emit.tape.settle();
    emit.tape
}

impl Emit {
    /// What outlives a step of `generate` and is there while the next one runs: its scores in fp32, and the
    /// books of the beams.
    pub(super) fn held(&mut self, layout: &Layout<'_>) -> Vec<Id> {
        let lengths = layout.lengths;
        if !lengths.generates {
            return Vec::new();
        }
        self.term = TermId::Sampling;
        if lengths.verify > 0 {
            let e = self.e;
            let held =
                [("outputs of the step before", e), ("logits of the step before", F32), ("clone", F32)]
                    .map(|(op, bytes)| self.positions(layout, op, Dim::Held, bytes, lengths.verify + 1));
            if layout.assistant > 0 {
                self.positions(layout, "candidate_logits", Dim::B, F32, lengths.verify);
            }
            self.term = TermId::Activations;
            return held.into();
        }
        let names: &[&'static str] = match (lengths.beams > 1, lengths.draws) {
            (true, _) => &["logits of the step before", "log_probs of the step before"],
            (false, true) => {
                &["logits of the step before", "scores of the step before", "probs of the step before"]
            }
            _ => &["logits of the step before"],
        };
        let coefficient = layout.model.vocab_size.saturating_mul(F32);
        let scores = Size { dims: [Dim::Held, Dim::One, Dim::One], coefficient };
        let held = names.iter().map(|op| self.alloc(op, scores)).collect();
        if lengths.beams > 1 {
            let times = if self.decode { 5 } else { 2 };
            let sequences = Size { dims: [Dim::B, Dim::One, Dim::Whole], coefficient: I64 };
            self.books("running_sequences", sequences, times);
            let indices = Size { dims: [Dim::B, Dim::One, Dim::New], coefficient: I32 };
            self.books("beam_indices", indices, if self.decode { 4 } else { 2 });
            if !self.decode {
                let ids = Size { dims: [Dim::B, Dim::P, Dim::One], coefficient: I64 };
                self.books("input_ids of all beams", ids, 1);
            }
        }
        self.term = TermId::Activations;
        held
    }

    /// The candidates' logits in fp32, once to work on and once to keep; then the assistant drafts anew, its
    /// scores one by one and stacked, beside all of that.
    fn verify(&mut self, layout: &Layout<'_>, held: &[Id]) {
        let candidates = layout.lengths.verify;
        self.free_all(held.get(..1).unwrap_or_default());
        self.positions(layout, "float(logits)", Dim::B, F32, candidates + 1);
        self.free_all(held.get(1..2).unwrap_or_default());
        self.positions(layout, "clone", Dim::B, F32, candidates + 1);
        self.free_all(held.get(2..).unwrap_or_default());
        if layout.assistant > 0 {
            self.positions(layout, "scores of the assistant", Dim::B, F32, candidates);
            self.positions(layout, "candidate_logits", Dim::B, F32, candidates);
        }
    }

    /// One element of `bytes` for every word of `positions` positions.
    fn positions(
        &mut self,
        layout: &Layout<'_>,
        op: &'static str,
        rows: Dim,
        bytes: u64,
        positions: u64,
    ) -> Id {
        let words = layout.model.vocab_size.saturating_mul(positions);
        let dims = [rows, Dim::One, Dim::One];
        self.alloc(op, Size { dims, coefficient: words.saturating_mul(bytes) })
    }

    fn books(&mut self, op: &'static str, size: Size, times: u64) {
        self.tape.alloc(Block { size, times, term: TermId::Sampling, op });
    }

    /// One element of `bytes` for every row and word.
    fn row(&mut self, op: &'static str, vocabulary: u64, bytes: u64) -> Id {
        let coefficient = vocabulary.saturating_mul(bytes);
        self.alloc(op, Size { dims: [Dim::B, Dim::One, Dim::One], coefficient })
    }

    /// Temperature, top-k and top-p, one after the other, then probabilities.
    fn draw(&mut self, vocabulary: u64, held: &[Id]) {
        let copy = self.row("float(logits)", vocabulary, F32);
        self.free_all(held.get(..1).unwrap_or_default());
        let scaled = self.row("div(temperature)", vocabulary, F32);
        let mask = self.row("lt(top_k)", vocabulary, 1);
        let kept = self.row("masked_fill(top_k)", vocabulary, F32);
        self.free_all(&[mask, scaled]);
        let sorted = [self.row("sort", vocabulary, F32), self.row("sort", vocabulary, I64)];
        let softmax = self.row("softmax", vocabulary, F32);
        let sum = self.row("cumsum", vocabulary, F32);
        self.free(softmax);
        let removed = [self.row("le(top_p)", vocabulary, 1), self.row("scatter", vocabulary, 1)];
        let scores = self.row("masked_fill(top_p)", vocabulary, F32);
        self.free_all(&sorted);
        self.free_all(&removed);
        self.free_all(&[sum, kept]);
        self.free_all(held.get(1..2).unwrap_or_default());
        self.row("softmax", vocabulary, F32);
        self.free_all(&[copy, scores]);
    }

    /// Log probabilities of every beam, added to its score, and the cache rows put in their new order.
    fn search(&mut self, layout: &Layout<'_>, held: &[Id], logits: Id) {
        let vocabulary = layout.model.vocab_size;
        self.row("float(logits)", vocabulary, F32);
        self.free_all(held.get(..1).unwrap_or_default());
        let log = self.row("log_softmax", vocabulary, F32);
        self.free_all(held.get(1..).unwrap_or_default());
        self.free(logits);
        self.row("add(scores)", vocabulary, F32);
        self.free(log);
        self.reorder(layout);
    }

    /// `reorder_cache`: a layer's keys, then its values, are selected into new tensors beside the old.
    fn reorder(&mut self, layout: &Layout<'_>) {
        if layout.lengths.cache == CacheImpl::None {
            return;
        }
        for slot in 0..SLOTS {
            let of_slot = layout.kept.iter().flatten().filter(|s| usize::from(s.slot) == slot);
            let Some(width) = of_slot.map(|s| s.key.max(s.value)).max() else { continue };
            let slot = slot as u8;
            // Offloaded layers are put in order on the host, quantised ones when they are restored.
            if layout.lengths.leaves(slot) || layout.lengths.cache == CacheImpl::Quantized {
                continue;
            }
            let tokens = layout.lengths.tokens(slot);
            let copy = self.cached("index_select(beams)", width * layout.kv_element, tokens, 1);
            self.free(copy);
        }
    }
}
