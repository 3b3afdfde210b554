//! The attention block of a layer: projections, norms of q and k, rotary embedding, cache, kernel, output.

use super::class::{QkNorm, Rope};
use super::emit::{Emit, F32};
use super::layout::{Layout, Stored};
use super::scores::Call;
use super::tape::{Dim, Id};
use crate::engines::CacheImpl;
use crate::memory::TermId;
use crate::model::{AttentionKind, Layer, RecurrentState};

/// Elements per token of the tensors around one attention call.
#[derive(Clone, Copy)]
struct Geometry {
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    v_head_dim: u64,
}

/// K and V as they go to the cache: `None` where they are views of something else.
struct Fresh {
    k: Option<Id>,
    v: Option<Id>,
}

/// What attention leaves: its output, and its weights where the layer keeps them.
pub(super) struct Mixed {
    pub(super) output: Id,
    pub(super) weights: Option<Id>,
}

impl Emit {
    /// The token mixer of a layer; frees `input`, its normalised input, where it is given.
    pub(super) fn mixer(&mut self, layout: &Layout<'_>, layer: &Layer, input: Option<Id>) -> Option<Mixed> {
        let heads =
            |heads, kv_heads, head_dim, v_head_dim| Geometry { heads, kv_heads, head_dim, v_head_dim };
        let mixed = match layer.attention.kind {
            AttentionKind::None => return None,
            AttentionKind::Recurrent(state) => Mixed { output: self.recurrent(layout, state), weights: None },
            AttentionKind::Mla { .. } => self.latent(layout, layer),
            AttentionKind::Full { heads: h, kv_heads, head_dim, v_head_dim }
            | AttentionKind::Sliding { heads: h, kv_heads, head_dim, v_head_dim, .. } => {
                self.grouped(layout, layer, heads(h, kv_heads, head_dim, v_head_dim))
            }
            AttentionKind::Chunked { heads: h, kv_heads, head_dim, .. } => {
                self.grouped(layout, layer, heads(h, kv_heads, head_dim, head_dim))
            }
        };
        if let Some(input) = input {
            self.free(input);
        }
        Some(mixed)
    }

    fn grouped(&mut self, layout: &Layout<'_>, layer: &Layer, h: Geometry) -> Mixed {
        let (q_width, k_width) = (h.heads * h.head_dim, h.kv_heads * h.head_dim);
        let v_width = h.kv_heads * h.v_head_dim;
        let rotated = layer.attention.rope && self.class.rope != Rope::None;
        let expanded = layout.model.hf_caches_all_heads;
        let mut held = Vec::new();
        let (query, kv, kv_heads);
        if self.class.fused_qkv {
            held.push(self.token("query_key_value", q_width + k_width + v_width));
            let copies = self.class.always_masked && h.kv_heads < h.heads;
            let mut raw = Vec::new();
            let mut value = None;
            if copies {
                raw.push(self.token("index(k)", k_width));
                value = Some(self.token("index(v)", v_width));
            }
            if expanded {
                let grouped = (std::mem::take(&mut raw), value);
                raw = vec![self.token("expand(q)", q_width), self.token("expand(k)", q_width)];
                value = Some(self.token("expand(v)", q_width));
                self.free_all(&grouped.0);
                if let Some(v) = grouped.1 {
                    self.free(v);
                }
            }
            kv_heads = if expanded { h.heads } else { h.kv_heads };
            if rotated {
                let (q, k) = self.rotate(q_width, kv_heads * h.head_dim);
                self.free_all(&raw);
                held.push(q);
                kv = Fresh { k: Some(k), v: value };
            } else {
                kv = Fresh { k: raw.pop(), v: value };
                held.extend(raw);
            }
        } else {
            kv_heads = h.kv_heads;
            let (q, k, value) = self.projections(layer, h, layout.full_width_qk_norm);
            if rotated {
                let (q2, k2) = self.rotate(q_width, k_width);
                self.free_all(&[q, k]);
                query = q2;
                kv = Fresh { k: Some(k2), v: Some(value) };
            } else {
                query = q;
                kv = Fresh { k: Some(k), v: Some(value) };
            }
            held.push(query);
        }
        self.store(layout, layer, &kv, &mut held);
        let slot = layout.slot(&layer.attention.kind);
        let call = Call {
            slot,
            heads: h.heads,
            kv_heads,
            head_dim: h.head_dim,
            v_head_dim: h.v_head_dim,
            masked: layout.masked[slot as usize],
            softcap: layout.model.attention_softcap,
            sinks: layout.model.attention_sinks,
            copies_output: self.class.rope == Rope::HalfJoined,
            sliced_values: false,
            padded: layout.lengths.padded,
        };
        self.project(layout, &call, &held)
    }

    /// q, k and v by their own matrices, with the norms some classes put on q and k.
    fn projections(&mut self, layer: &Layer, h: Geometry, full_width: bool) -> (Id, Id, Id) {
        let (q_width, k_width) = (h.heads * h.head_dim, h.kv_heads * h.head_dim);
        let normed = layer.attention.qk_norm;
        let early = normed && self.class.qk_norm == QkNorm::Interleaved;
        let shape = |heads: u64| if full_width { (1, heads * h.head_dim) } else { (heads, h.head_dim) };
        let mut q = self.token("q_proj", q_width);
        if early {
            q = self.renormed(q, shape(h.heads));
        }
        let mut k = self.token("k_proj", k_width);
        if early {
            k = self.renormed(k, shape(h.kv_heads));
        }
        let v = self.token("v_proj", h.kv_heads * h.v_head_dim);
        if normed && !early {
            q = self.renormed(q, shape(h.heads));
            k = self.renormed(k, shape(h.kv_heads));
        }
        (q, k, v)
    }

    fn renormed(&mut self, input: Id, (rows, width): (u64, u64)) -> Id {
        let out = self.norm(rows, width);
        self.free(input);
        out
    }

    /// Rotary embedding of q and k; what they were computed from is the caller's to drop.
    fn rotate(&mut self, q: u64, k: u64) -> (Id, Id) {
        match self.class.rope {
            Rope::HalfFp32 if self.e != F32 => {
                let (q32, k32) = (self.rotate_half(q, F32), self.rotate_half(k, F32));
                let (q16, k16) = (self.token("to(dtype)", q), self.token("to(dtype)", k));
                self.free_all(&[q32, k32]);
                (q16, k16)
            }
            Rope::HalfJoined => (self.rotate_joined(q), self.rotate_joined(k)),
            Rope::Split => (self.rotate_split(q), self.rotate_split(k)),
            Rope::Complex => self.rotate_complex(q, k),
            _ => (self.rotate_half(q, self.e), self.rotate_half(k, self.e)),
        }
    }

    /// `x * cos + rotate_half(x) * sin`, the products in elements of `e` bytes.
    fn rotate_half(&mut self, width: u64, e: u64) -> Id {
        let product = self.per_token(width.saturating_mul(e));
        let cosine = self.alloc("mul(cos)", product);
        let negated = self.token("neg", width / 2);
        let turned = self.token("cat", width);
        self.free(negated);
        let sine = self.alloc("mul(sin)", product);
        self.free(turned);
        let out = self.alloc("add", product);
        self.free_all(&[cosine, sine]);
        out
    }

    fn rotate_joined(&mut self, width: u64) -> Id {
        let turned = self.rotate_half(width, self.e);
        let out = self.token("cat", width);
        self.free(turned);
        out
    }

    fn rotate_split(&mut self, width: u64) -> Id {
        let mut halves = [None; 2];
        for (half, op) in halves.iter_mut().zip(["sub", "add"]) {
            let (a, b) = (self.token("mul(cos)", width / 2), self.token("mul(sin)", width / 2));
            *half = Some(self.token(op, width / 2));
            self.free_all(&[a, b]);
        }
        let out = self.token("cat", width);
        for half in halves.into_iter().flatten() {
            self.free(half);
        }
        out
    }

    fn rotate_complex(&mut self, q: u64, k: u64) -> (Id, Id) {
        let floats = (self.e != F32).then(|| [self.token_f32("float(q)", q), self.token_f32("float(k)", k)]);
        let mut out = [None; 2];
        for (slot, width) in out.iter_mut().zip([q, k]) {
            let turned = self.token_f32("mul(complex)", width);
            *slot = Some(if self.e == F32 { turned } else { self.token("type_as", width) });
            if self.e != F32 {
                self.free(turned);
            }
        }
        if let Some(floats) = floats {
            self.free_all(&floats);
        }
        let [Some(q), Some(k)] = out else { unreachable!("both were just made") };
        (q, k)
    }

    /// Puts K and V into the cache; without one they stay among `held` until attention ends.
    fn store(&mut self, layout: &Layout<'_>, layer: &Layer, kv: &Fresh, held: &mut Vec<Id>) {
        let drops: Vec<Id> = kv.k.into_iter().chain(kv.v).collect();
        let Some(stored) = layout.stored(&layer.attention.kind) else {
            return held.extend(drops);
        };
        match (layout.lengths.cache, self.past) {
            (CacheImpl::None, _) => return held.extend(drops),
            (CacheImpl::Quantized, true) => held.extend(self.unpack(layout, &stored)),
            (CacheImpl::Quantized, false) => {
                self.pack(layout, &stored);
                return held.extend(drops);
            }
            (_, true) if layout.lengths.fixed() => self.roll(layout, &stored, held),
            (_, true) => self.grow(layout, &stored, held),
            (_, false) => {
                let tokens = layout.lengths.tokens(stored.slot);
                let kept = self.cache(layout, &stored, tokens, 1);
                if layout.lengths.leaves(stored.slot) {
                    held.extend(kept);
                }
            }
        }
        self.free_all(&drops);
    }

    /// The K and V blocks of `times` layers holding `tokens`.
    pub(super) fn cache(&mut self, layout: &Layout<'_>, stored: &Stored, tokens: Dim, times: u64) -> [Id; 2] {
        [("cache.keys", stored.key), ("cache.values", stored.value)]
            .map(|(op, width)| self.cached(op, width * layout.kv_element, tokens, times))
    }

    pub(super) fn cached(&mut self, op: &'static str, bytes: u64, tokens: Dim, times: u64) -> Id {
        use super::tape::{Block, Size};
        let size = Size { dims: [Dim::B, Dim::One, tokens], coefficient: bytes };
        self.tape.alloc(Block { size, times, term: TermId::KvCache, op })
    }

    /// A full static ring is rolled in copies and written back.
    fn roll(&mut self, layout: &Layout<'_>, stored: &Stored, held: &mut Vec<Id>) {
        if layout.lengths.leaves(stored.slot) {
            held.extend(layout.old_of_current.get().into_iter().flatten().flatten());
        }
        if stored.slot > 0 {
            let width = |n: u64| n * layout.kv_element;
            let key = self.cached("roll(keys)", width(stored.key), Dim::Rolled(stored.slot), 1);
            let value = self.cached("roll(values)", width(stored.value), Dim::Rolled(stored.slot), 1);
            self.free_all(&[key, value]);
        }
    }

    /// One decode step of a cache that grows by concatenation: the new tensor beside the old one. A layer
    /// with a window makes both new tensors before it lets go of the old ones.
    fn grow(&mut self, layout: &Layout<'_>, stored: &Stored, held: &mut Vec<Id>) {
        let [old_key, old_value] = layout.old_of_current.get().unwrap_or([None; 2]);
        let seen = Dim::C(stored.slot);
        let keys = self.cached("cat(keys)", stored.key * layout.kv_element, seen, 1);
        if stored.slot == 0 {
            self.free_all(old_key.as_slice());
        }
        let values = self.cached("cat(values)", stored.value * layout.kv_element, seen, 1);
        if stored.slot != 0 {
            self.free_all(old_key.as_slice());
        }
        self.free_all(old_value.as_slice());
        // An offloaded layer goes to the host at once; attention still holds what it was given.
        if layout.lengths.leaves(stored.slot) {
            held.extend([keys, values]);
        }
    }

    /// The kernel and the output projection; `held` is dropped when attention returns.
    fn project(&mut self, layout: &Layout<'_>, call: &Call, held: &[Id]) -> Mixed {
        let attended = self.attend(layout.lengths.attention, call);
        let output = self.token("o_proj", layout.model.hidden_size);
        self.free(attended.output);
        self.free_all(held);
        Mixed { output, weights: attended.weights }
    }

    /// Multi-head latent attention: the latent is cached, and expanded to all heads over all tokens seen.
    fn latent(&mut self, layout: &Layout<'_>, layer: &Layer) -> Mixed {
        let AttentionKind::Mla {
            heads,
            q_lora_rank,
            kv_lora_rank,
            qk_nope_head_dim: nope,
            qk_rope_head_dim: rope,
            v_head_dim,
        } = layer.attention.kind
        else {
            unreachable!("called for latent attention only")
        };
        let mut held = Vec::new();
        let normed = (q_lora_rank > 0).then(|| {
            let low = self.token("q_a_proj", q_lora_rank);
            self.renormed(low, (1, q_lora_rank))
        });
        held.push(self.token("q_proj", heads * (nope + rope)));
        self.free_all(normed.as_slice());
        held.push(self.token("kv_a_proj", kv_lora_rank + rope));
        let latent = self.norm(1, kv_lora_rank);
        let (q_rope, k_rope) = self.rotate(heads * rope, rope);
        held.push(q_rope);
        self.store(layout, layer, &Fresh { k: Some(latent), v: Some(k_rope) }, &mut held);
        held.push(self.token("cat(q)", heads * (nope + rope)));
        for (op, width) in [("kv_b_proj", heads * (nope + v_head_dim)), ("cat(k)", heads * (nope + rope))] {
            let size = super::tape::Size {
                dims: [Dim::B, Dim::One, Dim::C(0)],
                coefficient: width.saturating_mul(self.e),
            };
            held.push(self.alloc(op, size));
        }
        let call = Call {
            slot: 0,
            heads,
            kv_heads: heads,
            head_dim: nope + rope,
            v_head_dim,
            masked: layout.masked[0],
            softcap: false,
            sinks: false,
            copies_output: false,
            sliced_values: true,
            padded: layout.lengths.padded,
        };
        self.project(layout, &call, &held)
    }

    /// A recurrent mixer: its projections, the convolution and the fp32 scan. The scan's own chunks are not
    /// modelled, so these stages are bounds and the ledger says so.
    fn recurrent(&mut self, layout: &Layout<'_>, state: RecurrentState) -> Id {
        let inner = state.conv_dim.max(layout.model.hidden_size);
        let projected = self.token("in_proj", inner.saturating_mul(2));
        let convolved = self.token("conv1d", inner);
        let scan = [self.token_f32("scan", inner), self.token_f32("scan", inner)];
        if !self.past {
            self.recurrent_state(layout, state, 1);
        }
        let gated = self.token("norm(gate)", inner);
        self.free_all(&scan);
        let output = self.token("out_proj", layout.model.hidden_size);
        self.free_all(&[projected, convolved, gated]);
        output
    }
}
