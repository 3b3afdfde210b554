//! One forward pass on the tape: embedding and masks, the layers that can hold the peak, the head.

use super::class::{Placement, Rope};
use super::emit::{Emit, F32, I64};
use super::layout::{Layout, Step, Stored};
use super::tape::{Block, Dim, Id, Size, Tape};
use crate::engines::{AttentionImpl, CacheImpl};
use crate::memory::TermId;
use crate::model::{AttentionKind, DType, Layer, RecurrentState};

/// The forward pass of `step` in the mask regime of `layout`.
pub(super) fn forward(layout: &Layout<'_>, step: Step, dtype: DType, tape: Tape) -> Tape {
    let mut emit = start(layout, step, dtype, tape);
    emit.inputs(layout);
    let prefix = emit.tape.mark();
    for &index in &layout.telling {
        emit.tape.restore(&prefix);
        emit.layer(layout, index);
    }
    emit.tape.restore(&prefix);
    if layout.head {
        emit.head(layout);
    }
    emit.tape.settle();
    emit.tape
}

/// An empty pass.
pub(super) fn start(layout: &Layout<'_>, step: Step, dtype: DType, tape: Tape) -> Emit {
    Emit {
        tape,
        class: layout.class,
        e: dtype.bytes(),
        half_to_float: dtype == DType::Fp16,
        decode: step != Step::Prefill && layout.lengths.verify == 0,
        past: step != Step::Prefill,
        term: TermId::Activations,
    }
}

impl Emit {
    /// Everything alive through all layers: input ids, embedding, positions, masks, rotary tables.
    fn inputs(&mut self, layout: &Layout<'_>) {
        self.tape.enter("embedding", None);
        self.kept(layout);
        if layout.entry {
            self.held(layout);
        }
        if layout.fetched > 0 {
            self.alloc("offloaded weight", Emit::fixed(layout.fetched));
        }
        if layout.dequantised > 0 {
            self.alloc("dequantised weight", Emit::fixed(layout.dequantised));
        }
        if layout.entry {
            let embedded = self.token("embedding", layout.model.hidden_size);
            if self.class.scaled_embedding {
                self.token("mul(scale)", layout.model.hidden_size);
                self.free(embedded);
            }
        }
        let positions = self.per_position(I64);
        self.alloc("position_ids", positions);
        self.tape.enter("masks", None);
        self.term = TermId::AttentionScores;
        for slot in 0..super::tape::SLOTS {
            let used = layout.kept.iter().flatten().any(|s| usize::from(s.slot) == slot);
            if used && layout.masked[slot] {
                self.mask(layout, slot as u8);
            }
        }
        self.term = TermId::Activations;
        self.tape.enter("rotary", None);
        let table = self.rotary_bytes(layout);
        for _ in 0..self.class.rope_tables {
            let size = self.per_position(table);
            self.alloc("cos", size);
            if self.class.rope != Rope::Complex {
                self.alloc("sin", size);
            }
        }
    }

    /// Ids and what stands beside the parameters: alive in every pass and between them.
    pub(super) fn kept(&mut self, layout: &Layout<'_>) {
        let prompt = Size { dims: [Dim::B, Dim::P, Dim::One], coefficient: I64 };
        for _ in 0..=u64::from(layout.lengths.padded) {
            if layout.entry {
                self.alloc("input_ids", prompt);
            }
        }
        if self.past && layout.entry {
            let size = self.per_token(I64);
            self.alloc("input_ids", size);
        }
        if layout.assistant > 0 {
            let size = Size { dims: [Dim::B, Dim::One, Dim::C(0)], coefficient: layout.assistant };
            self.tape.alloc(Block { size, times: 1, term: TermId::KvCache, op: "assistant's cache" });
        }
        if layout.rounding > 0 {
            self.alloc("rounding of weights", Emit::fixed(layout.rounding));
        }
        if self.class.buffers > 0 {
            let buffer = Block {
                size: Emit::fixed(1),
                times: self.class.buffers,
                term: TermId::Activations,
                op: "buffers",
            };
            self.tape.alloc(buffer);
        }
    }

    /// Bytes per position of a table of cos or of sin (or of both, as one complex number).
    fn rotary_bytes(&self, layout: &Layout<'_>) -> u64 {
        let width = layout.model.layers.iter().find_map(|l| match l.attention.kind {
            AttentionKind::Full { head_dim, .. }
            | AttentionKind::Sliding { head_dim, .. }
            | AttentionKind::Chunked { head_dim, .. } => Some(head_dim),
            AttentionKind::Mla { qk_rope_head_dim, .. } => Some(qk_rope_head_dim),
            _ => None,
        });
        let width = width.unwrap_or(0);
        match self.class.rope {
            Rope::HalfFp32 | Rope::Complex => width * F32,
            Rope::Split if layout.model.attention_sinks => width / 2 * self.e,
            _ => width * self.e,
        }
    }

    /// The mask of a slot: boolean for sdpa, additive in the model's dtype for eager.
    fn mask(&mut self, layout: &Layout<'_>, slot: u8) {
        let q = if self.decode { Dim::One } else { Dim::Q };
        let shared = Size { dims: [Dim::One, q, Dim::C(slot)], coefficient: 1 };
        let own = self.per_pair(slot, 1);
        let mut mask = None;
        if layout.lengths.windows[usize::from(slot)].is_some() {
            let greater = self.alloc("gt", shared);
            let windowed = self.alloc("and", shared);
            self.free(greater);
            mask = Some(windowed);
        }
        let causal = self.alloc("le", shared);
        let mut whole = causal;
        if let Some(windowed) = mask {
            whole = self.alloc("and", shared);
            self.free_all(&[causal, windowed]);
        }
        if layout.lengths.padded {
            let padded = self.alloc("and(padding)", own);
            self.free(whole);
            whole = padded;
        }
        if layout.lengths.attention == AttentionImpl::Eager {
            let additive = self.per_pair(slot, self.e);
            self.alloc("where", additive);
            self.free(whole);
        }
    }

    /// Caches of the layers before and after `index`, and, in decode, its own old tensors.
    pub(super) fn caches(&mut self, layout: &Layout<'_>, index: Option<usize>) {
        let layers = &layout.model.layers;
        let at = index.unwrap_or(layers.len());
        let mut groups: Vec<(Stored, u64, u64)> = Vec::new();
        let mut own = None;
        let next = prefetched(layout, index);
        let mut states: Vec<(RecurrentState, u64)> = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            if let AttentionKind::Recurrent(state) = layer.attention.kind
                && (i < at || self.past)
            {
                match states.iter_mut().find(|(s, _)| *s == state) {
                    Some((_, times)) => *times += 1,
                    None => states.push((state, 1)),
                }
            }
            let Some(stored) = layout.kept[i] else { continue };
            if i != at && layout.lengths.leaves(stored.slot) && next != Some(i) {
                continue;
            }
            if i == at {
                own = Some(stored);
                continue;
            }
            let (before, after) = if i < at { (1, 0) } else { (0, 1) };
            match groups.iter_mut().find(|(s, ..)| *s == stored) {
                Some((_, b, a)) => (*b, *a) = (*b + before, *a + after),
                None => groups.push((stored, before, after)),
            }
        }
        for (state, times) in states {
            self.recurrent_state(layout, state, times);
        }
        layout.old_of_current.set(None);
        if layout.lengths.cache == CacheImpl::None {
            return;
        }
        let dynamic = !layout.lengths.fixed();
        let windowed: u64 = groups.iter().filter(|(s, ..)| s.slot > 0).map(|(_, a, b)| a + b).sum::<u64>()
            + u64::from(own.is_some_and(|s| s.slot > 0));
        if dynamic && windowed > 0 {
            let size = Emit::fixed(8);
            let op = "sliding_window_tensor";
            self.tape.alloc(Block { size, times: windowed, term: TermId::KvCache, op });
        }
        if layout.lengths.cache == CacheImpl::Quantized {
            for (stored, before, after) in groups {
                self.packed(layout, &stored, before + if self.past { after } else { 0 });
            }
            if let (Some(stored), true) = (own, self.past) {
                self.packed(layout, &stored, 1);
            }
            return;
        }
        for (stored, before, after) in groups {
            let done = layout.lengths.tokens(stored.slot);
            if before > 0 {
                self.cache(layout, &stored, done, before);
            }
            if after > 0 && self.past {
                self.cache(layout, &stored, Dim::Old(stored.slot), after);
            }
        }
        if let (Some(stored), true) = (own, self.past) {
            let old = Dim::Old(stored.slot);
            let key = self.cached("cache.keys", stored.key * layout.kv_element, old, 1);
            let value = self.cached("cache.values", stored.value * layout.kv_element, old, 1);
            layout.old_of_current.set(Some([Some(key), Some(value)]));
        }
    }

    /// The constant state of `times` recurrent layers.
    pub(super) fn recurrent_state(&mut self, layout: &Layout<'_>, state: RecurrentState, times: u64) {
        let e = layout.kv_element;
        let state_e = state.state_dtype.map_or(e, DType::bytes);
        let tensors = [
            ("conv_state", state.conv_dim.saturating_mul(state.conv_kernel).saturating_mul(e)),
            (
                "recurrent_state",
                state.state_heads.saturating_mul(state.state_per_head).saturating_mul(state_e),
            ),
        ];
        for (op, coefficient) in tensors {
            if coefficient > 0 {
                let size = Size { dims: [Dim::B, Dim::One, Dim::One], coefficient };
                self.tape.alloc(Block { size, times, term: TermId::RecurrentState, op });
            }
        }
    }

    /// Layer `index`, with what lives around it.
    fn layer(&mut self, layout: &Layout<'_>, index: usize) {
        let number = u32::try_from(index).ok();
        let hidden = layout.model.hidden_size;
        let layer = layout.model.layers[index];
        self.tape.enter("layer_input", number);
        self.caches(layout, Some(index));
        // The first layer's input is the embedding itself; what comes from another device is a copy.
        if index > 0 || !layout.entry {
            self.token("layer_input", hidden);
        }
        let eager = layout.lengths.attention == AttentionImpl::Eager;
        if index > 0 && eager && self.class.returns_weights {
            self.previous_weights(layout, &layout.model.layers[index - 1]);
        }
        match self.class.placement {
            Placement::Parallel { norms } => self.parallel(layout, index, &layer, norms),
            _ => self.sequential(layout, index, &layer),
        }
    }

    fn previous_weights(&mut self, layout: &Layout<'_>, layer: &Layer) {
        if let AttentionKind::Full { heads, .. } = layer.attention.kind {
            let size = self.per_pair(layout.slot(&layer.attention.kind), heads * self.e);
            let op = "attention weights of the layer before";
            self.tape.alloc(Block { size, times: 1, term: TermId::AttentionScores, op });
        }
    }

    fn sequential(&mut self, layout: &Layout<'_>, index: usize, layer: &Layer) {
        let number = u32::try_from(index).ok();
        let hidden = layout.model.hidden_size;
        let before = self.class.placement != Placement::Post;
        let after = self.class.placement != Placement::Pre;
        self.tape.enter("attention", number);
        let mut residual = None;
        let mut weights = None;
        if layer.attention.kind != AttentionKind::None {
            let normed = before.then(|| self.norm(1, hidden));
            if let Some(mixed) = self.mixer(layout, layer, normed) {
                weights = mixed.weights;
                residual = Some(self.join(mixed.output, after, hidden));
            }
        }
        self.tape.enter("feed_forward", number);
        let normed = before.then(|| self.norm(1, hidden));
        if let Some(output) = self.feed_forward(layout, &layer.mlp, normed) {
            self.join(output, after, hidden);
        }
        self.free_all(residual.as_slice());
        self.free_all(weights.as_slice());
    }

    /// Normalises a block's output where the class does, and adds the residual.
    fn join(&mut self, mut output: Id, normed: bool, hidden: u64) -> Id {
        if normed {
            let out = self.norm(1, hidden);
            self.free(output);
            output = out;
        }
        let sum = self.token("add", hidden);
        self.free(output);
        sum
    }

    fn parallel(&mut self, layout: &Layout<'_>, index: usize, layer: &Layer, norms: u64) {
        let number = u32::try_from(index).ok();
        let hidden = layout.model.hidden_size;
        self.tape.enter("attention", number);
        for _ in 0..norms {
            self.norm(1, hidden);
        }
        self.mixer(layout, layer, None);
        self.tape.enter("feed_forward", number);
        self.feed_forward(layout, &layer.mlp, None);
        self.token("add", hidden);
    }

    /// The final norm over every position, then the vocabulary projection of those kept.
    fn head(&mut self, layout: &Layout<'_>) {
        let hidden = layout.model.hidden_size;
        self.tape.enter("final_norm", None);
        self.caches(layout, None);
        let caches = self.tape.mark();
        self.token("layer_output", hidden);
        self.norm(1, hidden);
        self.tape.restore(&caches);
        self.tape.enter("lm_head", None);
        self.drop_inputs();
        self.token("last_hidden_state", hidden);
        let kept = if self.decode { Dim::One } else { Dim::N };
        let vocabulary = layout.model.vocab_size.saturating_mul(self.e);
        let logits = Size { dims: [Dim::B, kept, Dim::One], coefficient: vocabulary };
        self.term = TermId::Logits;
        let mut out = self.alloc("lm_head", logits);
        if layout.model.final_logit_softcap {
            for op in ["div", "tanh", "mul"] {
                let next = self.alloc(op, logits);
                self.free(out);
                out = next;
            }
        }
    }

    /// Embedding, masks and tables end with the decoder; ids, buffers and caches stay.
    fn drop_inputs(&mut self) {
        self.tape.retain(|block| {
            matches!(block.op, "input_ids" | "buffers" | "rounding of weights")
                || matches!(block.term, TermId::KvCache | TermId::RecurrentState | TermId::Sampling)
        });
    }
}

/// The offloaded layer that is brought to the device while layer `index` runs: the next one, or the first
/// again after the last.
fn prefetched(layout: &Layout<'_>, index: Option<usize>) -> Option<usize> {
    if !layout.lengths.offloads() {
        return None;
    }
    let leaves = |i: &usize| layout.kept[*i].is_some_and(|s| layout.lengths.leaves(s.slot));
    let after = index.map_or(layout.kept.len(), |i| i + 1);
    (after..layout.kept.len()).find(leaves).or_else(|| (0..layout.kept.len()).find(leaves))
}
