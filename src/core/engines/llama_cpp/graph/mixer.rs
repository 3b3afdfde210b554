//! What mixes tokens: attention over a cache, and latent attention. Recurrent layers are in `recurrent.rs`.

use super::build::{Build, F32, Rows};
use super::tensor::{Id, Op};
use crate::engines::llama_cpp::parts::Part;
use crate::model::{AttentionKind, KvDType, Layer};

/// Geometry of attention over cached keys and values.
#[derive(Clone, Copy)]
struct Heads {
    q: u64,
    kv: u64,
    k_dim: u64,
    v_dim: u64,
}

/// Bytes of `elements` of a row of this type.
pub(in crate::engines::llama_cpp) fn row(elements: u64, kind: KvDType) -> u64 {
    elements.div_ceil(kind.elements).saturating_mul(kind.bytes)
}

impl Build<'_> {
    /// The token mixer of a layer, its output projection included.
    pub(super) fn mixer(&mut self, index: usize, layer: &Layer, input: Id) -> Id {
        let windowed = self.job.settings.cells.windowed(&layer.attention.kind);
        match layer.attention.kind {
            AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim } => {
                let h = Heads { q: heads, kv: kv_heads, k_dim: head_dim, v_dim: v_head_dim };
                self.attention(index, layer, input, h, self.full)
            }
            AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
                let h = Heads { q: heads, kv: kv_heads, k_dim: head_dim, v_dim: v_head_dim };
                self.attention(index, layer, input, h, if windowed { self.window } else { self.full })
            }
            AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => {
                let h = Heads { q: heads, kv: kv_heads, k_dim: head_dim, v_dim: head_dim };
                self.attention(index, layer, input, h, if windowed { self.window } else { self.full })
            }
            AttentionKind::Mla { .. } => self.latent(index, &layer.attention.kind, input),
            AttentionKind::Recurrent(state) => self.recurrent(index, state, input),
            AttentionKind::None => input,
        }
    }

    /// A projection with its bias.
    pub(super) fn project(&mut self, index: usize, part: Part, input: Id, ne: [u64; 4]) -> Id {
        let (layout, home) = (self.job.layout, self.job.layout.home(index));
        let out = self.multiply(layout.bytes(Some(index), part), home, input, ne);
        match layout.bias(Some(index), part) {
            0 => out,
            bias => self.apply(bias, home, out),
        }
    }

    fn attention(&mut self, index: usize, layer: &Layer, input: Id, h: Heads, rows: Option<Rows>) -> Id {
        let (layout, tokens) = (self.job.layout, self.job.tokens);
        let (at, home) = (Some(index), self.job.layout.home(index));
        let Some(rows) = rows else { return input };
        let width = |n: u64, dim: u64| n.saturating_mul(dim);
        // Some models project a gate along with the queries.
        let gated = self.job.model.model_type.starts_with("qwen3_next")
            || self.job.model.model_type.starts_with("qwen3_5");
        let fused = layout.bytes(at, Part::Qkv) > 0;
        let (mut gate, mut q, mut k, mut v);
        gate = None;
        if fused {
            let k_start = width(h.q, h.k_dim);
            let all = k_start.saturating_add(width(h.kv, h.k_dim)).saturating_add(width(h.kv, h.v_dim));
            let qkv = self.project(index, Part::Qkv, input, [all, tokens, 1, 1]);
            let part = |build: &mut Self, n: u64, dim: u64| {
                let step = dim.saturating_mul(F32);
                let line = all.saturating_mul(F32);
                build.g.view(qkv, [dim, n, tokens, 1], [F32, step, line, line.saturating_mul(tokens)])
            };
            q = part(self, h.q, h.k_dim);
            k = part(self, h.kv, h.k_dim);
            v = part(self, h.kv, h.v_dim);
        } else {
            let factor = if gated { 2 } else { 1 };
            let all = width(h.q, h.k_dim).saturating_mul(factor);
            q = self.project(index, Part::Q, input, [all, tokens, 1, 1]);
            k = self.project(index, Part::K, input, [width(h.kv, h.k_dim), tokens, 1, 1]);
            v = self.project(index, Part::V, input, [width(h.kv, h.v_dim), tokens, 1, 1]);
            let wide = layout.bytes(at, Part::QNorm) / F32 > h.k_dim;
            if wide {
                (q, k) = self.head_norms(index, q, k, home);
            }
            if gated {
                let both = self.g.reshape(q, [h.k_dim * 2, h.q, tokens, 1]);
                let nb = self.g.tensors[both].nb;
                q = self.g.view(both, [h.k_dim, h.q, tokens, 1], nb);
                gate = Some(self.g.view(both, [h.k_dim, h.q, tokens, 1], nb));
            } else {
                q = self.g.reshape(q, [h.k_dim, h.q, tokens, 1]);
            }
            k = self.g.reshape(k, [h.k_dim, h.kv, tokens, 1]);
            v = self.g.reshape(v, [h.v_dim, h.kv, tokens, 1]);
            if !wide && layer.attention.qk_norm {
                (q, k) = self.head_norms(index, q, k, home);
            }
        }
        if layer.attention.rope {
            (q, k) = (self.rope(q), self.rope(k));
        }
        let scales_queries = ["gemma", "phi3"].iter().any(|m| self.job.model.model_type.starts_with(m));
        if scales_queries {
            q = self.g.like(&[q]);
        }
        (q, k, v) = self.rotate(h, q, k, v);
        self.g.expand(q);
        if self.window.is_some() {
            self.g.expand(k);
            self.g.expand(v);
        } else {
            self.g.expand(v);
            self.g.expand(k);
        }
        let (keys, values) = self.cached(index, h, k, v, rows);
        let mixed = self.attend(index, h, [q, keys, values], rows, None);
        let Some(gate) = gate else { return self.project_out(index, mixed) };
        let wide = [width(h.q, h.v_dim), tokens, 1, 1];
        let gate = self.g.op(Op::Fresh, &[gate], wide, F32);
        let gate = self.g.like(&[gate]);
        let mixed = self.g.like(&[mixed, gate]);
        self.project_out(index, mixed)
    }

    fn project_out(&mut self, index: usize, mixed: Id) -> Id {
        let ne = [self.job.model.hidden_size, self.job.tokens, 1, 1];
        self.project(index, Part::AttentionOut, mixed, ne)
    }

    fn head_norms(&mut self, index: usize, q: Id, k: Id, home: usize) -> (Id, Id) {
        let q = self.norm(Some(index), q, Part::QNorm, home, true);
        (q, self.norm(Some(index), k, Part::KNorm, home, true))
    }

    pub(super) fn rope(&mut self, of: Id) -> Id {
        let position = self.position;
        let id = self.g.like(&[of, position]);
        self.g.tensors[id].free_of_weights = true;
        // Its result is contiguous even where its operand is a view.
        let (ne, width) = (self.g.tensors[id].ne, self.g.tensors[id].width);
        self.g.tensors[id].nb = super::tensor::contiguous(ne, width);
        id
    }

    /// Quantised caches hold rotated rows: one more product before and after.
    fn rotate(&mut self, h: Heads, q: Id, k: Id, v: Id) -> (Id, Id, Id) {
        let s = self.job.settings;
        let rotated =
            |kind: KvDType, dim: u64| s.build.rotates() && kind.elements > 1 && dim.is_multiple_of(64);
        let (mut q, mut k, mut v) = (q, k, v);
        if rotated(s.k, h.k_dim) {
            (q, k) = (self.turned(q), self.turned(k));
        }
        if rotated(s.v, h.v_dim) {
            v = self.turned(v);
        }
        (q, k, v)
    }

    fn turned(&mut self, of: Id) -> Id {
        let ne = self.g.tensors[of].ne;
        let flat = self.g.reshape(of, [64, self.g.tensors[of].elements() / 64, 1, 1]);
        let turned = self.g.op(Op::Fresh, &[flat], self.g.tensors[flat].ne, F32);
        self.g.reshape(turned, ne)
    }

    /// Stores the new rows; keys and values as attention reads them.
    fn cached(&mut self, index: usize, h: Heads, k: Id, v: Id, rows: Rows) -> (Id, Id) {
        let (s, tokens) = (self.job.settings, self.job.tokens);
        let home = if s.kv_on_device { self.job.layout.home(index) } else { self.job.host };
        let (k_row, v_row) = (row(h.kv * h.k_dim, s.k), row(h.kv * h.v_dim, s.v));
        let cells = rows.cells.saturating_mul(s.streams);
        let keys = self.g.cache(k_row.saturating_mul(cells), home);
        let values = self.g.cache(v_row.saturating_mul(cells), home);
        let flat = self.g.reshape(k, [h.kv * h.k_dim, tokens, 1, 1]);
        let stored = self.g.store(flat, rows.k_at, keys);
        self.g.expand(stored);
        let flat = self.g.reshape(v, [h.kv * h.v_dim, tokens, 1, 1]);
        let stored = self.g.store(flat, rows.v_at, values);
        self.g.expand(stored);
        let look = |build: &mut Self, cache: Id, row: u64| {
            let line = row.saturating_mul(rows.cells);
            let id = build.g.view(cache, [row, rows.cells, 1, s.streams], [1, row, line, line]);
            build.g.permute(id, [0, 1, 2, 3])
        };
        (look(self, keys, k_row), look(self, values, v_row))
    }

    /// Attention itself: one fused operation, or scores, softmax and product.
    fn attend(
        &mut self,
        index: usize,
        h: Heads,
        [q, k, v]: [Id; 3],
        rows: Rows,
        expand: Option<(u64, u64)>,
    ) -> Id {
        let (s, tokens) = (self.job.settings, self.job.tokens);
        let per_stream = tokens / s.streams;
        let of_streams = self.g.tensors[q].ne;
        let nb = self.g.tensors[q].nb;
        let q = self.g.view(q, [of_streams[0], of_streams[1], per_stream, s.streams], nb);
        let q = self.g.permute(q, [0, 2, 1, 3]);
        let sinks = self.job.layout.bytes(Some(index), Part::Sinks);
        let home = self.job.layout.home(index);
        let mut operands = vec![q, k, v, rows.mask];
        let out_dim = expand.map_or(h.v_dim, |(_, dim)| dim);
        let current = if s.flash {
            if sinks > 0 {
                operands.push(self.g.weight(sinks, home));
            }
            let ne = [h.v_dim, h.q, per_stream, s.streams];
            let mixed = self.g.op(Op::Fresh, &operands, ne, F32);
            self.g.tensors[mixed].free_of_weights = true;
            self.g.tensors[mixed].scratch = self.scratch(h, rows, ne, expand.is_some());
            if !s.flash_on_device(h.k_dim, h.v_dim, h.q / h.kv.max(1)) {
                self.host_only(mixed);
            }
            match expand {
                None => self.g.reshape(mixed, [h.v_dim * h.q, tokens, 1, 1]),
                Some((bytes, dim)) => {
                    let turned = self.g.permute(mixed, [0, 2, 1, 3]);
                    let ne = [dim, per_stream, h.q, s.streams];
                    let wide = self.multiply(bytes, home, turned, ne);
                    let turned = self.g.permute(wide, [0, 2, 1, 3]);
                    let flat = self.g.op(Op::Fresh, &[turned], [dim, h.q, per_stream, s.streams], F32);
                    self.g.reshape(flat, [dim * h.q, tokens, 1, 1])
                }
            }
        } else {
            let shape = [rows.cells, per_stream, h.q, s.streams];
            let mut scores = self.g.op(Op::Fresh, &[k, q], shape, F32);
            if self.job.model.attention_softcap {
                for _ in 0..3 {
                    scores = self.g.like(&[scores]);
                }
            }
            let mut operands = vec![scores, rows.mask];
            if sinks > 0 {
                operands.push(self.g.weight(sinks, home));
            }
            let scores = self.g.like(&operands);
            let values = if s.values_turned() && expand.is_none_or(|_| !s.build.latent_keys_only()) {
                v
            } else {
                let ne = [rows.cells, h.v_dim, h.kv, s.streams];
                self.g.op(Op::Fresh, &[v], ne, if s.v.elements == 1 { s.v.bytes } else { F32 })
            };
            let ne = [h.v_dim, per_stream, h.q, s.streams];
            let mut mixed = self.g.op(Op::Fresh, &[values, scores], ne, F32);
            if let Some((bytes, dim)) = expand {
                mixed = self.multiply(bytes, home, mixed, [dim, per_stream, h.q, s.streams]);
            }
            let turned = self.g.permute(mixed, [0, 2, 1, 3]);
            let flat = self.g.op(Op::Fresh, &[turned], [out_dim * h.q, tokens, 1, 1], F32);
            if !s.kv_on_device {
                self.g.tensors[flat].wanted = Some(self.job.host);
            }
            flat
        };
        self.g.expand(current);
        current
    }

    /// Half-precision copies of quantised keys and values behind the result.
    fn scratch(&self, h: Heads, rows: Rows, ne: [u64; 4], one: bool) -> u64 {
        let s = self.job.settings;
        if !s.build.flash_scratch() {
            return 0;
        }
        let copy = |kind: KvDType, dim: u64| match kind.id {
            "f16" => 0,
            _ => [dim, h.kv, rows.cells, s.streams, 2].iter().fold(1_u64, |a, n| a.saturating_mul(*n)),
        };
        let result = ne.iter().fold(F32, |a, n| a.saturating_mul(*n));
        let mut end = result;
        let copies = [copy(s.k, h.k_dim), if one { 0 } else { copy(s.v, h.v_dim) }];
        for copy in copies.into_iter().filter(|c| *c > 0) {
            end = end.checked_next_multiple_of(128).unwrap_or(end).saturating_add(copy);
        }
        end - result
    }

    /// Latent attention: queries are taken into the latent space, or keys and values out of it.
    fn latent(&mut self, index: usize, kind: &AttentionKind, input: Id) -> Id {
        let &AttentionKind::Mla {
            heads,
            q_lora_rank,
            kv_lora_rank,
            qk_nope_head_dim: nope,
            qk_rope_head_dim: pe,
            v_head_dim,
        } = kind
        else {
            return input;
        };
        let Some(rows) = self.full else { return input };
        let (layout, tokens) = (self.job.layout, self.job.tokens);
        let (at, home) = (Some(index), layout.home(index));
        let dim = nope + pe;
        let mut q = input;
        if q_lora_rank > 0 {
            q = self.project(index, Part::QDown, q, [q_lora_rank, tokens, 1, 1]);
            q = self.norm(at, q, Part::QDownNorm, home, true);
            q = self.project(index, Part::QUp, q, [heads * dim, tokens, 1, 1]);
        } else {
            q = self.project(index, Part::Q, q, [heads * dim, tokens, 1, 1]);
        }
        let q = self.g.reshape(q, [dim, heads, tokens, 1]);
        let q_nb = self.g.tensors[q].nb;
        let width = kv_lora_rank + pe;
        let both = self.project(index, Part::KvDown, input, [width, tokens, 1, 1]);
        let line = width.saturating_mul(F32);
        let latent =
            self.g.view(both, [kv_lora_rank, tokens, 1, 1], [F32, line, line * tokens, line * tokens]);
        let k_pe = self.g.view(both, [pe, 1, tokens, 1], [F32, line, line, line * tokens]);
        let k_pe = self.rope(k_pe);
        let latent = self.norm(at, latent, Part::KvDownNorm, home, true);
        // A norm's result is contiguous.
        let up = layout.bytes(at, Part::KvUp) / 2;
        if self.job.settings.build.latent_cache() {
            let q_nope = self.g.view(q, [nope, heads, tokens, 1], q_nb);
            let q_pe = self.g.view(q, [pe, heads, tokens, 1], q_nb);
            let q_pe = self.rope(q_pe);
            let turned = self.g.permute(q_nope, [0, 2, 1, 3]);
            let absorbed = self.multiply(up, home, turned, [kv_lora_rank, tokens, heads, 1]);
            let absorbed = self.g.permute(absorbed, [0, 2, 1, 3]);
            let queries = self.g.op(Op::Fresh, &[absorbed, q_pe], [width, heads, tokens, 1], F32);
            let latent = self.g.reshape(latent, [kv_lora_rank, 1, tokens, 1]);
            let keys = self.g.op(Op::Fresh, &[latent, k_pe], [width, 1, tokens, 1], F32);
            self.g.expand(queries);
            self.g.expand(latent);
            self.g.expand(keys);
            let h = Heads { q: heads, kv: 1, k_dim: width, v_dim: kv_lora_rank };
            let (k, v) = self.cached_latents(index, h, keys, latent, rows);
            let mixed = self.attend(index, h, [queries, k, v], rows, Some((up, v_head_dim)));
            return self.project_out(index, mixed);
        }
        let kv = self.multiply(up * 2, home, latent, [heads * (nope + v_head_dim), tokens, 1, 1]);
        let step = (nope + v_head_dim).saturating_mul(F32);
        let nb = [F32, step, step * heads, step * heads * tokens];
        let k_nope = self.g.view(kv, [nope, heads, tokens, 1], nb);
        let values = self.g.view(kv, [v_head_dim, heads, tokens, 1], nb);
        let values = self.g.op(Op::Fresh, &[values], [v_head_dim, heads, tokens, 1], F32);
        let queries = self.rope(q);
        let k_pe = self.g.op(Op::Fresh, &[k_pe], [pe, heads, tokens, 1], F32);
        let keys = self.g.op(Op::Fresh, &[k_nope, k_pe], [dim, heads, tokens, 1], F32);
        for id in [queries, values, keys] {
            self.g.expand(id);
        }
        let h = Heads { q: heads, kv: heads, k_dim: dim, v_dim: v_head_dim };
        let (k, v) = self.cached(index, h, keys, values, rows);
        let mixed = self.attend(index, h, [queries, k, v], rows, None);
        self.project_out(index, mixed)
    }

    /// Latents are cached once; values look at the front of the keys, where the build does so.
    fn cached_latents(&mut self, index: usize, h: Heads, k: Id, v: Id, rows: Rows) -> (Id, Id) {
        let s = self.job.settings;
        if !s.build.latent_keys_only() {
            return self.cached(index, h, k, v, rows);
        }
        let home = if s.kv_on_device { self.job.layout.home(index) } else { self.job.host };
        let line = row(h.k_dim, s.k);
        let keys = self.g.cache(line.saturating_mul(rows.cells).saturating_mul(s.streams), home);
        let flat = self.g.reshape(k, [h.k_dim, self.job.tokens, 1, 1]);
        let stored = self.g.store(flat, rows.k_at, keys);
        self.g.expand(stored);
        let all = line.saturating_mul(rows.cells);
        let look = self.g.view(keys, [line, rows.cells, 1, s.streams], [1, line, all, all]);
        let (k, v) = (self.g.permute(look, [0, 1, 2, 3]), self.g.permute(look, [0, 1, 2, 3]));
        (k, v)
    }
}
