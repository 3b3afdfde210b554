//! Latent attention (DeepSeek V2 and V3): one cached row a token, or, in old builds, keys and values of every head.

use super::build::{Build, F32, Rows};
use super::mixer::{Heads, row};
use super::tensor::{Id, Op};
use crate::engines::llama_cpp::parts::Part;
use crate::model::AttentionKind;

impl Build<'_> {
    /// Latent attention: queries are taken into the latent space, or keys and values out of it.
    pub(super) fn latent(&mut self, index: usize, kind: &AttentionKind, input: Id) -> Id {
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
        let k_pe = self.rope(k_pe, home);
        let latent = self.norm(at, latent, Part::KvDownNorm, home, true);
        // A norm's result is contiguous.
        let up = layout.bytes(at, Part::KvUp) / 2;
        if self.job.settings.build.latent_cache() {
            let q_nope = self.g.view(q, [nope, heads, tokens, 1], q_nb);
            let q_pe = self.g.view(q, [pe, heads, tokens, 1], q_nb);
            let q_pe = self.rope(q_pe, home);
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
        let queries = self.rope(q, home);
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
