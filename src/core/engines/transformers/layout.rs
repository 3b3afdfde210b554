//! What a job fixes before lengths are known: dtype, kernel, cache class, slots; and the lengths of each phase.

use super::class::Class;
use super::quantized;
use super::steps::{Pass, longest};
use super::tape::{Dim, Dims, Id, SLOTS};
use crate::engines::{AttentionImpl, CacheImpl, LogitsKept, ServeSettings};
use crate::model::{AttentionKind, Layer, Model};
use std::cell::Cell;

/// K and V of one layer as the cache object keeps them, in elements per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) slot: u8,
    pub(super) key: u64,
    pub(super) value: u64,
}

/// What decides lengths and masks: owned, so that a surface can outlive the model.
#[derive(Clone, Copy, Debug)]
pub(in crate::engines) struct Lengths {
    pub(in crate::engines) attention: AttentionImpl,
    pub(super) cache: CacheImpl,
    pub(super) all_logits: bool,
    pub(super) padded: bool,
    /// sdpa gets a mask in every pass.
    always_masked: bool,
    /// Rows that each prompt is expanded to before it is read: beams, or answers.
    pub(super) rows: u64,
    /// Beams of each prompt.
    pub(super) beams: u64,
    /// Candidates that a pass verifies beside its token; 0 without speculation.
    pub(super) verify: u64,
    /// Bits of an element of a quantised cache.
    pub(super) bits: u64,
    /// Tokens are drawn, not taken greedily.
    pub(super) draws: bool,
    /// `generate` runs the passes and chooses tokens between them; a plain forward does not.
    pub(super) generates: bool,
    /// Window of each slot; slot 0 has none.
    pub(in crate::engines) windows: [Option<u64>; SLOTS],
}

/// The fixed part of a job.
#[derive(Clone, Debug)]
pub(in crate::engines) struct Layout<'a> {
    pub(super) model: &'a Model,
    pub(super) class: Class,
    pub(in crate::engines) lengths: Lengths,
    /// What each layer caches.
    pub(super) kept: Vec<Option<Stored>>,
    /// First and last layer of each kind: the caches that grow or shrink from layer to layer make one of the
    /// two the highest.
    pub(super) telling: Vec<usize>,
    /// Bytes of a cached element.
    pub(super) kv_element: u64,
    /// Which slots get a mask tensor in the pass being written.
    pub(super) masked: [bool; SLOTS],
    /// q and k are normalised over their full width, not per head.
    pub(super) full_width_qk_norm: bool,
    /// Latent attention caches the expanded heads (transformers 4).
    pub(super) expanded_latent: bool,
    /// Bytes of a weight restored to the model's dtype while its layer runs; 0 where nothing is quantised.
    pub(super) dequantised: u64,
    /// Bytes per token of the assistant's cache.
    pub(super) assistant: u64,
    /// Bytes of a weight fetched from the host while its module runs.
    pub(super) fetched: u64,
    /// The embedding, and with it generation itself, is on this device.
    pub(super) entry: bool,
    /// Final norm and vocabulary projection are on this device.
    pub(super) head: bool,
    /// What rounding every weight up to a multiple of 512 bytes adds.
    pub(super) rounding: u64,
    /// The old cache tensors of the layer being written.
    pub(super) old_of_current: Cell<Option<[Option<Id>; 2]>>,
}

/// The load of a job, in tokens per sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) sequences: u64,
    pub(super) prompt: u64,
    pub(super) new: u64,
    /// Prompt and new tokens.
    pub(super) whole: u64,
    /// Tokens a static cache is allocated for.
    pub(super) longest: u64,
    /// The step is not the first of a generation.
    pub(super) later: bool,
}

impl Asked {
    /// The load of `sequences` that read `prompt` and write `new` tokens each, at a pass.
    pub(super) fn at(pass: &Pass, sequences: u64, prompt: u64, new: u64, max_len: Option<u64>) -> Asked {
        let whole = prompt.saturating_add(new);
        let longest = longest(max_len, prompt, new);
        let (prompt, later) = (pass.prompt, pass.later);
        Asked { sequences, prompt, new, whole, longest, later }
    }
}

/// A forward pass of generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum Step {
    /// The whole prompt in one pass.
    Prefill,
    /// One token after `past`; `first` where the cache still is as prefill left it.
    Decode {
        /// Tokens before this one.
        past: u64,
        /// The cache is as prefill left it.
        first: bool,
    },
}

impl<'a> Layout<'a> {
    pub(in crate::engines) fn new(
        model: &'a Model,
        class: Class,
        serve: &ServeSettings,
        element: u64,
    ) -> Layout<'a> {
        let mut windows = [None; SLOTS];
        for layer in &model.layers {
            if let Some(window) = window(&layer.attention.kind)
                && !windows.contains(&Some(window))
            {
                // More than two windows in one model: the last slot keeps the largest.
                match windows.iter().skip(1).position(Option::is_none) {
                    Some(free) => windows[free + 1] = Some(window),
                    None => windows[SLOTS - 1] = windows[SLOTS - 1].max(Some(window)),
                }
            }
        }
        let lengths = Lengths {
            attention: class.attention(serve),
            cache: serve.cache,
            all_logits: serve.logits == LogitsKept::All,
            padded: serve.padding_mask,
            always_masked: class.always_masked,
            rows: serve.num_beams.unwrap_or(1).max(serve.num_return_sequences.unwrap_or(1)).max(1),
            beams: serve.num_beams.unwrap_or(1).max(1),
            verify: serve.num_speculative_tokens,
            bits: if serve.kv_cache_dtype == "int2" { 2 } else { 4 },
            draws: serve.do_sample,
            generates: serve.logits == LogitsKept::Last || serve.num_beams.unwrap_or(1) > 1,
            windows,
        };
        let mut layout = Layout {
            kept: Vec::new(),
            telling: telling(&model.layers),
            model,
            class,
            lengths,
            kv_element: element,
            masked: [false; SLOTS],
            full_width_qk_norm: matches!(model.model_type.as_str(), "olmo2" | "olmo3" | "minimax_m2"),
            expanded_latent: serve.engine_version.as_deref().is_some_and(|v| v.starts_with("4.")),
            dequantised: 0,
            assistant: 0,
            fetched: 0,
            entry: true,
            head: true,
            rounding: 0,
            old_of_current: Cell::new(None),
        };
        layout.kept = model.layers.iter().map(|l| layout.stored(&l.attention.kind)).collect();
        layout
    }

    /// The slot of an attention kind.
    pub(in crate::engines) fn slot(&self, kind: &AttentionKind) -> u8 {
        let Some(window) = window(kind) else { return 0 };
        let at = self.lengths.windows.iter().position(|w| *w == Some(window)).unwrap_or(SLOTS - 1);
        at as u8
    }

    /// What a layer of this kind caches; `None` where it keeps no tokens.
    pub(super) fn stored(&self, kind: &AttentionKind) -> Option<Stored> {
        let slot = self.slot(kind);
        match *kind {
            AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim }
            | AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
                let kv_heads = if self.model.hf_caches_all_heads { heads } else { kv_heads };
                Some(Stored { slot, key: kv_heads * head_dim, value: kv_heads * v_head_dim })
            }
            AttentionKind::Chunked { kv_heads, head_dim, .. } => {
                Some(Stored { slot, key: kv_heads * head_dim, value: kv_heads * head_dim })
            }
            AttentionKind::Mla { heads, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. }
                if self.expanded_latent =>
            {
                let key = heads * (qk_nope_head_dim + qk_rope_head_dim);
                Some(Stored { slot, key, value: heads * v_head_dim })
            }
            AttentionKind::Mla { kv_lora_rank, qk_rope_head_dim, .. } => {
                Some(Stored { slot, key: kv_lora_rank, value: qk_rope_head_dim })
            }
            AttentionKind::Recurrent(_) | AttentionKind::None => None,
        }
    }
}

impl Lengths {
    /// The cache is allocated for its whole length beforehand.
    pub(super) fn fixed(&self) -> bool {
        matches!(self.cache, CacheImpl::Static | CacheImpl::OffloadedStatic)
    }

    /// Layers without a window wait on the host.
    pub(super) fn offloads(&self) -> bool {
        matches!(self.cache, CacheImpl::Offloaded | CacheImpl::OffloadedStatic)
    }

    /// The cache of this slot waits on the host while other layers run.
    pub(super) fn leaves(&self, slot: u8) -> bool {
        self.cache == CacheImpl::Offloaded || self.offloads() && slot == 0
    }

    /// How many tokens a layer of this slot holds after a pass.
    pub(super) fn tokens(&self, slot: u8) -> Dim {
        if self.fixed() { Dim::Old(slot) } else { Dim::C(slot) }
    }

    /// Which slots get a mask tensor in `step`.
    pub(in crate::engines) fn masks(&self, step: Step, prompt: u64) -> [bool; SLOTS] {
        let all = match self.attention {
            AttentionImpl::Flash => return [false; SLOTS],
            AttentionImpl::Eager => true,
            AttentionImpl::Sdpa => {
                let static_decode = self.fixed() && step != Step::Prefill;
                let verifies = self.verify > 0 && step != Step::Prefill;
                self.always_masked || self.padded || static_decode || verifies
            }
        };
        let mut masked = [all; SLOTS];
        for (slot, window) in self.windows.iter().enumerate() {
            if let Some(window) = window {
                let seen = match step {
                    Step::Prefill => prompt,
                    Step::Decode { past, .. } => past.saturating_add(1),
                };
                masked[slot] |= seen >= *window;
            }
        }
        masked
    }

    /// Lengths of a step.
    pub(super) fn dims(&self, step: Step, asked: Asked) -> Dims {
        let Asked { prompt, new, longest, .. } = asked;
        let sequences = asked.sequences.saturating_mul(self.rows);
        let (query, past) = match step {
            Step::Prefill => (prompt.saturating_add(self.verify), 0),
            Step::Decode { past, .. } => (1 + self.verify, past),
        };
        let kept = if self.all_logits { query } else { 1 + self.verify };
        let mut dims = Dims::new(sequences, query, kept, prompt);
        // A single decode step is taken as a plain call: nothing was chosen before it.
        let held = self.generates && asked.later && new > 1;
        dims.generation(asked.whole, new, held);
        if self.cache == CacheImpl::Quantized {
            let (packed, residual) = match step {
                Step::Prefill => (prompt, 0),
                Step::Decode { past, .. } => quantized::held(past, prompt),
            };
            dims.quantised(packed, residual, residual + 1 >= quantized::RESIDUAL);
        }
        for (slot, window) in self.windows.iter().enumerate() {
            if slot > 0 && window.is_none() {
                continue;
            }
            let (seen, old) = self.seen(step, past, prompt, longest, slot);
            dims.slot(slot as u8, seen, old);
            if self.fixed() && window.is_some() && past >= old {
                dims.rolled(slot as u8, old);
            }
        }
        dims
    }

    /// Tokens that a slot's attention sees, and that its cache stored before the step.
    fn seen(&self, step: Step, past: u64, prompt: u64, longest: u64, slot: usize) -> (u64, u64) {
        let window = self.windows[slot];
        if self.fixed() {
            let stored = window.map_or(longest, |w| w.min(longest));
            // With a mask the kernel takes the whole allocation; without one the prompt is sliced out of it.
            let whole = prompt <= stored && self.masks(step, prompt)[slot];
            return match step {
                Step::Prefill => (if whole { stored } else { prompt }, stored),
                Step::Decode { .. } => (stored, stored),
            };
        }
        match (step, window) {
            (Step::Prefill, _) => (prompt.saturating_add(self.verify), 0),
            (Step::Decode { .. }, None) => (past.saturating_add(1 + self.verify), past),
            // The layer keeps a view of the last window - 1 tokens: of the whole prompt right after prefill,
            // of what the last step saw from then on.
            (Step::Decode { first, .. }, Some(window)) => {
                let kept = past.min(window.saturating_sub(1));
                (kept.saturating_add(1 + self.verify), if first { past } else { past.min(window) })
            }
        }
    }
}

fn telling(layers: &[Layer]) -> Vec<usize> {
    let mut kinds: Vec<(&Layer, usize, usize)> = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        match kinds.iter_mut().find(|(kind, ..)| *kind == layer) {
            Some((_, _, last)) => *last = index,
            None => kinds.push((layer, index, index)),
        }
    }
    let mut all: Vec<usize> = kinds.iter().flat_map(|(_, first, last)| [*first, *last]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Tokens a layer of this kind looks back at most.
fn window(kind: &AttentionKind) -> Option<u64> {
    match *kind {
        AttentionKind::Sliding { window, .. } => Some(window),
        AttentionKind::Chunked { chunk, .. } => Some(chunk),
        _ => None,
    }
}
