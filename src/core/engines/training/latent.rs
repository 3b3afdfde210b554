//! Latent attention: q and kv compressed, keys and values expanded to all heads.

use super::attention::{Geometry, Mixed, Shared};
use super::graph::{Graph, Tensor};
use super::kernels::Call;
use super::program::{Linear, Program};
use crate::model::{AttentionKind, Layer};

impl<'p> Program<'p> {
    /// Multi-head latent attention on the normalised input.
    pub(super) fn latent(&'p self, g: &Graph<'p>, layer: &Layer, x: &Tensor, shared: &Shared) -> Mixed {
        let AttentionKind::Mla {
            heads,
            q_lora_rank,
            kv_lora_rank,
            qk_nope_head_dim: nope,
            qk_rope_head_dim: rope,
            v_head_dim,
        } = layer.attention.kind
        else {
            return Mixed { output: x.clone(), weights: None };
        };
        let (hidden, t) = (self.model.hidden_size, self.t());
        let linear =
            |name, input, output, x: &Tensor| self.linear(g, Linear { name, input, output, bias: false }, x);
        let q_width = heads * (nope + rope);
        let q = if q_lora_rank > 0 {
            let low = {
                let low = linear("q_a_proj", hidden, q_lora_rank, x);
                self.norm(g, &low, 1, q_lora_rank)
            };
            linear("q_b_proj", q_lora_rank, q_width, &low)
        } else {
            linear("q_proj", hidden, q_width, x)
        };
        let q = g.heads(&q, heads > 1);
        let [q_nope, q_rope] = g.split(&q, [heads * nope, heads * rope].map(|n| n.saturating_mul(t)));
        let both = linear("kv_a_proj_with_mqa", hidden, kv_lora_rank + rope, x);
        let [latent, k_rope] = g.split(&both, [kv_lora_rank, rope].map(|n| n.saturating_mul(t)));
        let k_nope = self.norm(g, &latent, 1, kv_lora_rank);
        let (q_rope, k_rope) = match &shared.tables {
            Some(tables) => self.rotate(g, &q_rope, &k_rope, tables, rope),
            _ => (q_rope, k_rope),
        };
        let query = g.cat("cat(q)", &[&q_nope, &q_rope]);
        let expanded = linear("kv_b_proj", kv_lora_rank, heads * (nope + v_head_dim), &k_nope);
        let expanded = g.heads(&expanded, heads > 1);
        let [k_part, values] =
            g.split(&expanded, [heads * nope, heads * v_head_dim].map(|n| n.saturating_mul(t)));
        let keys = g.written(&k_part, &k_rope, heads);
        let h = Geometry { heads, kv_heads: heads, head_dim: nope + rope, v_head_dim };
        let call = Call { h, mask: shared.masks[0].clone(), softcap: false, dropout: false };
        let (attended, weights) = self.core(g, call, [&query, &keys, &values]);
        let output = linear("o_proj", heads * v_head_dim, hidden, &attended);
        drop((q, both, query, keys, expanded));
        Mixed { output, weights }
    }
}
