//! What mixes tokens: attention over a cache, and latent attention. Recurrent layers are in `recurrent.rs`.

use super::build::{Build, F32, Rows};
use super::tensor::{Id, Op};
use crate::engines::llama_cpp::parts::Part;
use crate::model::{AttentionKind, KvDType, Layer};

/// Geometry of attention over cached keys and values.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) q: u64,
    pub(super) kv: u64,
    pub(super) k_dim: u64,
    pub(super) v_dim: u64,
}

/// Bytes of `elements` of a row of this type.
pub(in crate::engines::llama_cpp) fn row(elements: u64, kind: KvDType) -> u64 {
    elements.div_ceil(kind.elements).saturating_mul(kind.bytes)
}

impl Build<'_> {
    /// The token mixer of a layer, its output projection included.
    pub(super) fn mixer(&mut self, index: usize, layer: &Layer, input: Id) -> Id {
        let windowed = self.window.is_some();
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
        let set = usize::from(self.job.settings.cells.windowed(&layer.attention.kind));
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
            (q, k) = (self.rope(q, home), self.rope(k, home));
        }
        let scales_queries = ["gemma", "phi3"].iter().any(|m| self.job.model.model_type.starts_with(m));
        if scales_queries {
            q = self.g.like(&[q]);
        }
        (q, k, v) = (self.turned(q, set, 0), self.turned(k, set, 0), self.turned(v, set, 1));
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
        let mixed = self.turned(mixed, set, 1);
        let Some(gate) = gate else { return self.project_out(index, mixed) };
        let wide = [width(h.q, h.v_dim), tokens, 1, 1];
        let gate = self.g.op(Op::Fresh, &[gate], wide, F32);
        let gate = self.g.like(&[gate]);
        let mixed = self.g.like(&[mixed, gate]);
        self.project_out(index, mixed)
    }

    pub(super) fn project_out(&mut self, index: usize, mixed: Id) -> Id {
        let ne = [self.job.model.hidden_size, self.job.tokens, 1, 1];
        self.project(index, Part::AttentionOut, mixed, ne)
    }

    fn head_norms(&mut self, index: usize, q: Id, k: Id, home: usize) -> (Id, Id) {
        let q = self.norm(Some(index), q, Part::QNorm, home, true);
        (q, self.norm(Some(index), k, Part::KNorm, home, true))
    }

    /// Rotary embedding; a layer's table of factors lies where the layer does.
    pub(super) fn rope(&mut self, of: Id, home: usize) -> Id {
        let mut operands = vec![of, self.position];
        let elements = self.job.model.rotary_dim / 2;
        if self.job.model.rotary_factor_tables > 0 {
            let table = match self.factors[home] {
                Some(table) => table,
                None => self.g.weight(elements.saturating_mul(F32), home),
            };
            self.factors[home] = Some(table);
            operands.push(table);
        }
        let id = self.g.like(&operands);
        self.g.tensors[id].free_of_weights = true;
        id
    }

    /// Quantised caches hold turned rows: one more product before them, and one after for values.
    fn turned(&mut self, of: Id, set: usize, which: usize) -> Id {
        let Some(turn) = self.turns[set][which] else { return of };
        let (ne, n) = (self.g.tensors[of].ne, self.g.tensors[turn].ne[0]);
        let flat = [n, self.g.tensors[of].elements() / n, 1, 1];
        let whole = self.g.tensors[of].nb == super::tensor::contiguous(ne, F32);
        let flat = if whole { self.g.reshape(of, flat) } else { self.g.op(Op::Fresh, &[of], flat, F32) };
        let out = self.g.op(Op::Fresh, &[turn, flat], self.g.tensors[flat].ne, F32);
        self.g.reshape(out, ne)
    }

    /// Stores the new rows; keys and values as attention reads them.
    pub(super) fn cached(&mut self, index: usize, h: Heads, k: Id, v: Id, rows: Rows) -> (Id, Id) {
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
    pub(super) fn attend(
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
}
