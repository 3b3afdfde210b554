//! DeepSeek V2 and V3 (R1, Kimi K2): latent attention, dense first layers, shared and routed experts.

use super::llama::{Defaults, LLAMA, PRE_NORMS, Sizes};
use super::moe::{Routed, shared_and_routed};
use super::parts::{Root, dense, layer, layer_types};
use crate::model::fields::{Fields, MAX_HEADS};
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, AttentionKind, Model, Sharding, TensorClass};
use crate::units::Problem;
use serde_json::Value;

const V2: Defaults = Defaults {
    model_type: "deepseek_v2",
    vocab: 102_400,
    // A latent is cached: the number of KV heads plays no role.
    kv_heads: None,
    ..LLAMA
};
const V3: Defaults = Defaults {
    model_type: "deepseek_v3",
    vocab: 129_280,
    hidden: 7168,
    intermediate: 18432,
    layers: 61,
    heads: 128,
    positions: 4096,
    ..V2
};

/// Geometry of latent attention.
#[derive(Clone, Copy)]
struct Latent {
    heads: u64,
    q_rank: u64,
    kv_rank: u64,
    nope: u64,
    rope: u64,
    v: u64,
    bias: bool,
}

impl Latent {
    /// `defaults` are the rank of q, and the dims of k without position and of v.
    fn read(f: Fields<'_>, heads: u64, [q_rank, nope, v]: [u64; 3]) -> Result<Latent, Problem> {
        Ok(Latent {
            heads,
            q_rank: f.optional("q_lora_rank", MAX_HEADS, Some(q_rank))?.unwrap_or(0),
            kv_rank: f.heads("kv_lora_rank", 512)?,
            nope: f.heads("qk_nope_head_dim", nope)?,
            rope: f.heads("qk_rope_head_dim", 64)?,
            v: f.heads("v_head_dim", v)?,
            bias: f.flag("attention_bias", false)?,
        })
    }

    fn attention(self) -> Attention {
        let kind = AttentionKind::Mla {
            heads: self.heads,
            q_lora_rank: self.q_rank,
            kv_lora_rank: self.kv_rank,
            qk_nope_head_dim: self.nope,
            qk_rope_head_dim: self.rope,
            v_head_dim: self.v,
        };
        Attention { kind, qk_norm: false, rope: true }
    }

    /// Down projections are replicated in tensor parallelism, expansions to heads are split.
    fn tensors(self, t: &mut Tensors, on: &Scope, hidden: u64) {
        let (class, q) = (TensorClass::AttentionLatent, TensorClass::AttentionQ);
        let wide = self.heads * (self.nope + self.rope);
        if self.q_rank == 0 {
            t.linear(on, "q_proj", [wide, hidden], false, q, Sharding::Column);
        } else {
            t.linear(on, "q_a_proj", [self.q_rank, hidden], self.bias, class, Sharding::Replicated);
            t.norm(on, "q_a_layernorm", self.q_rank, false);
            t.linear(on, "q_b_proj", [wide, self.q_rank], false, class, Sharding::Column);
        }
        let latent = self.kv_rank + self.rope;
        t.linear(on, "kv_a_proj_with_mqa", [latent, hidden], self.bias, class, Sharding::Replicated);
        t.norm(on, "kv_a_layernorm", self.kv_rank, false);
        let expanded = self.heads * (self.nope + self.v);
        t.linear(on, "kv_b_proj", [expanded, self.kv_rank], false, class, Sharding::Column);
        let out = [hidden, self.heads * self.v];
        t.linear(on, "o_proj", out, self.bias, TensorClass::AttentionOut, Sharding::Row);
    }
}

/// A model whose layers are dense up to layer `first`.
fn build(s: &Sizes, latent: Latent, r: Routed, first: u64, mlp_bias: bool) -> Model {
    let root = Root::PLAIN;
    let mlp = |i| if i < first { dense(s.intermediate) } else { r.mlp() };
    let layers = (0..s.layers).map(|i| layer(latent.attention(), mlp(i))).collect();
    s.assemble(root, PRE_NORMS, layers, |t| {
        latent.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        shared_and_routed(t, root, s, r, first, mlp_bias);
    })
}

const NAMES: [&str; 2] = ["n_routed_experts|num_experts|num_local_experts", "moe_intermediate_size"];

pub(crate) fn v2(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &V2)?;
    let mut r = Routed::read(f, NAMES, [64, 6, 1407])?;
    let shared = f.optional("n_shared_experts", 1024, Some(2))?.unwrap_or(0);
    r.shared = r.intermediate * shared;
    r.fp32_router = true;
    let first = f.whole("first_k_dense_replace", 0, 4096)?.unwrap_or(0);
    Ok(build(&s, Latent::read(f, s.gqa.heads, [1536, 128, 128])?, r, first, f.flag("mlp_bias", false)?))
}

pub(crate) fn v3(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &V3)?;
    let mut r = Routed::read(f, NAMES, [256, 8, 2048])?;
    r.shared = r.intermediate * f.whole("n_shared_experts", 1, 1024)?.unwrap_or(1);
    r.fp32_router = true;
    let first = f.whole("first_k_dense_replace", 0, 4096)?.unwrap_or(3);
    let mut model = build(&s, Latent::read(f, s.gqa.heads, [1536, 128, 128])?, r, first, false);
    model.mtp_layers = f.whole("num_nextn_predict_layers|num_mtp_layers", 0, 4096)?.unwrap_or(1);
    Ok(model)
}

const LITE: Defaults = Defaults {
    model_type: "glm4_moe_lite",
    vocab: 154_880,
    hidden: 2048,
    intermediate: 10240,
    layers: 47,
    heads: 20,
    positions: 202_752,
    ..V2
};

/// GLM 4.7 Flash: latent attention with a dense first layer.
pub(crate) fn glm4_moe_lite(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &LITE)?;
    let mut r = Routed::read(f, NAMES, [64, 4, 1536])?;
    r.shared = r.intermediate * f.whole("n_shared_experts", 1, 1024)?.unwrap_or(1);
    r.fp32_router = true;
    let kinds = layer_types(f, "mlp_layer_types", s.layers, |i| if i == 0 { "dense" } else { "sparse" })?;
    let first = kinds.iter().position(|kind| *kind == "sparse").unwrap_or(kinds.len());
    if kinds.iter().skip(first).any(|kind| *kind != "sparse") {
        let given = Value::from("[\"sparse\", …, \"dense\"]");
        return Err(f.problem("mlp_layer_types", &given, "[\"dense\", …, \"sparse\", …]"));
    }
    Ok(build(&s, Latent::read(f, s.gqa.heads, [768, 192, 256])?, r, first as u64, false))
}
