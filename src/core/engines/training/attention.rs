//! The attention block: projections, norms of q and k, rotary embedding, kernel, output projection.

use super::graph::{Graph, Tensor};
use super::kernels::Call;
use super::ops::I64;
use super::program::{Linear, Program};
use super::rotary::Tables;
use super::style::FusedQkv;
use crate::engines::transformers::class::QkNorm;
use crate::model::{AttentionKind, Layer, TensorClass};

/// Elements per token of the tensors around one attention call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) heads: u64,
    pub(super) kv_heads: u64,
    pub(super) head_dim: u64,
    pub(super) v_head_dim: u64,
}

impl Geometry {
    /// The geometry of a kind of grouped attention.
    pub(super) fn of(kind: &AttentionKind) -> Option<Geometry> {
        match *kind {
            AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim }
            | AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
                Some(Geometry { heads, kv_heads, head_dim, v_head_dim })
            }
            AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => {
                Some(Geometry { heads, kv_heads, head_dim, v_head_dim: head_dim })
            }
            AttentionKind::Mla { .. } | AttentionKind::Recurrent(_) | AttentionKind::None => None,
        }
    }
}

/// What attention leaves: its output, and its weights where the layer's variables still name them.
pub(super) struct Mixed {
    pub(super) output: Tensor,
    pub(super) weights: Option<Tensor>,
}

/// What every layer gets from the model: tables by kind of rotary embedding, masks by slot, positions.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// Tables of layers that see everything.
    pub(super) tables: Option<Tables>,
    /// Tables of windowed layers, where they have their own.
    pub(super) windowed: Option<Tables>,
    pub(super) masks: [Option<Tensor>; 3],
    /// Held by everything that holds these.
    #[expect(dead_code, reason = "named only to be kept alive")]
    pub(super) positions: Tensor,
}

impl Shared {
    /// The tables of a kind of layer.
    pub(super) fn tables_of(&self, kind: &AttentionKind) -> Option<&Tables> {
        let windowed = matches!(kind, AttentionKind::Sliding { .. });
        self.windowed.as_ref().filter(|_| windowed).or(self.tables.as_ref())
    }
}

impl<'p> Program<'p> {
    /// Grouped attention on the normalised input.
    pub(super) fn attention(
        &'p self,
        g: &Graph<'p>,
        index: usize,
        layer: &Layer,
        h: Geometry,
        x: &Tensor,
        shared: &Shared,
    ) -> Mixed {
        let (mut q, mut k, v, fused) = self.projections(g, index, layer, h, x);
        if let Some(tables) = shared.tables_of(&layer.attention.kind).filter(|_| layer.attention.rope) {
            (q, k) = self.rotate(g, &q, &k, tables, h.head_dim);
        }
        let slot = self.layout.slot(&layer.attention.kind);
        // A decoder that spreads K and V gives its kernel as many heads of them as of q.
        let h = if self.model.hf_caches_all_heads { Geometry { kv_heads: h.heads, ..h } } else { h };
        let call = Call {
            h,
            mask: shared.masks[usize::from(slot)].clone(),
            softcap: self.model.attention_softcap,
            dropout: self.dropout.attention,
        };
        let (attended, weights) = self.core(g, call, [&q, &k, &v]);
        let out = Linear {
            name: self.names.output,
            input: h.heads.saturating_mul(h.v_head_dim),
            output: self.model.hidden_size,
            bias: self.biased(index, TensorClass::AttentionOut),
        };
        let output = self.linear(g, out, &attended);
        let output = g.dropout(&output, self.dropout.residual);
        drop((q, k, v, fused));
        Mixed { output, weights }
    }

    fn projections(
        &self,
        g: &Graph<'p>,
        index: usize,
        layer: &Layer,
        h: Geometry,
        x: &Tensor,
    ) -> (Tensor, Tensor, Tensor, Option<Tensor>) {
        let hidden = self.model.hidden_size;
        let (q_width, k_width) = (h.heads * h.head_dim, h.kv_heads * h.head_dim);
        let v_width = h.kv_heads * h.v_head_dim;
        let t = self.t();
        if self.class.fused_qkv {
            let qkv = Linear {
                name: self.names.qkv,
                input: hidden,
                output: q_width + k_width + v_width,
                bias: self.biased(index, TensorClass::AttentionQkv),
            };
            let both = self.linear(g, qkv, x);
            let parts = [q_width, k_width, v_width].map(|w| w.saturating_mul(t));
            let style = self.style.qkv;
            let (q, k, v) = fused_parts(g, &both, parts, h, style);
            return (q, k, v, Some(both));
        }
        let normed = layer.attention.qk_norm;
        let early = normed && self.class.qk_norm == QkNorm::Interleaved;
        let shape =
            |heads: u64| if self.full_width_qk_norm { (1, heads * h.head_dim) } else { (heads, h.head_dim) };
        let linear = |name, output, class| {
            self.linear(g, Linear { name, input: hidden, output, bias: self.biased(index, class) }, x)
        };
        let many = |heads: u64| heads > 1;
        let normed_heads = |t: Tensor, heads: u64| {
            let (rows, width) = shape(heads);
            if self.full_width_qk_norm {
                let normed = self.norm(g, &t, rows, width);
                drop(t);
                return g.heads(&normed, many(heads));
            }
            let apart = g.heads(&t, many(heads));
            drop(t);
            self.norm(g, &apart, rows, width)
        };
        let mut q = linear("q_proj", q_width, TensorClass::AttentionQ);
        q = if early { normed_heads(q, h.heads) } else { g.heads(&q, many(h.heads)) };
        let mut k = linear("k_proj", k_width, TensorClass::AttentionK);
        k = if early { normed_heads(k, h.kv_heads) } else { g.heads(&k, many(h.kv_heads)) };
        let v = linear("v_proj", v_width, TensorClass::AttentionV);
        let v = g.heads(&v, many(h.kv_heads));
        if normed && !early {
            let (rows, width) = shape(h.heads);
            q = self.norm(g, &q, rows, width);
            let (rows, width) = shape(h.kv_heads);
            k = self.norm(g, &k, rows, width);
        }
        (q, k, v, None)
    }

    /// Whether the layer's tensor of this class comes with a bias.
    pub(super) fn biased(&self, index: usize, class: TensorClass) -> bool {
        let held =
            |runs: &[(u32, u32)]| runs.iter().any(|(a, b)| (*a as usize..=*b as usize).contains(&index));
        let names = self.model.tensors.iter().filter(|t| t.class == class && held(&t.layers));
        names.filter_map(|t| t.name.strip_suffix("weight")).any(|stem| {
            self.model.tensors.iter().any(|t| held(&t.layers) && t.name.strip_suffix("bias") == Some(stem))
        })
    }
}

/// q, k and v as parts of one product.
fn fused_parts(
    g: &Graph<'_>,
    both: &Tensor,
    [q, k, v]: [u64; 3],
    h: Geometry,
    style: FusedQkv,
) -> (Tensor, Tensor, Tensor) {
    let (many_q, many_kv) = (h.heads > 1, h.kv_heads > 1 || style == FusedQkv::Spread);
    let pick = |n| g.gather("index(kv)", both, &g.constant("index", 1, I64), n);
    let (query, key, value) = match style {
        FusedQkv::Chunked => {
            let [query, key, value] = g.split(&g.heads(both, many_q), [q, k, v]);
            return (query, key, value);
        }
        FusedQkv::Split => {
            let [query, key, value] = g.split(both, [q, k, v]);
            (query, key, value)
        }
        FusedQkv::Slices => (g.slice(both, q), g.slice(both, k), g.slice(both, v)),
        FusedQkv::Picked => {
            let query = g.slice(both, q);
            let key = pick(k);
            (query, key, pick(v))
        }
        FusedQkv::Spread => {
            let query = g.slice(both, q);
            let (key, value) = (pick(k), pick(v));
            let (key, value) = (g.spread(&key, q), g.spread(&value, q));
            (g.copy("flatten", &query, false), key, value)
        }
    };
    (g.heads(&query, many_q), g.heads(&key, many_kv), g.heads(&value, many_kv))
}
