//! Families that differ from Llama in a detail: norms, biases, defaults, a fused matrix.

use super::llama::{Defaults, LLAMA, MISTRAL, PRE_NORMS, Sizes};
use super::moe::Routed;
use super::parts::{QkNorm, Root, dense, experts, fused_gated, gated, layer, layer_types, router, window};
use crate::model::fields::Fields;
use crate::model::{Attention, Mlp, Model, Sharding, TensorClass};
use crate::units::Problem;

const ROOT: Root = Root::PLAIN;

pub(crate) fn biased(f: Fields<'_>, defaults: &Defaults, bias: bool) -> Result<Sizes, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.gqa.qkv_bias = f.flag("attention_bias", bias)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    Ok(s)
}

const GRANITE: Defaults = Defaults { model_type: "granite", ..LLAMA };

pub(crate) fn granite(f: Fields<'_>) -> Result<Model, Problem> {
    let s = biased(f, &GRANITE, false)?;
    Ok(s.build(ROOT, PRE_NORMS, f.flag("mlp_bias", false)?, |_| s.gqa.full()))
}

pub(crate) fn granite_moe(f: Fields<'_>) -> Result<Model, Problem> {
    let s = biased(f, &Defaults { model_type: "granitemoe", ..LLAMA }, false)?;
    let r = Routed::read(f, ["num_local_experts", "intermediate_size"], [8, 2, s.intermediate])?;
    let layers = (0..s.layers).map(|_| layer(s.gqa.full(), r.mlp())).collect();
    Ok(s.assemble(ROOT, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &ROOT.all("self_attn.", s.layers), s.hidden);
        router(t, &ROOT.all("block_sparse_moe.", s.layers), "router", s.hidden, r.experts);
        experts(t, &ROOT.all("block_sparse_moe.experts.", s.layers), s.hidden, r.experts, r.intermediate);
    }))
}

const OLMOE: Defaults = Defaults {
    model_type: "olmoe",
    vocab: 50304,
    hidden: 2048,
    intermediate: 2048,
    layers: 16,
    heads: 16,
    positions: 4096,
    ..LLAMA
};

pub(crate) fn olmoe(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = biased(f, &OLMOE, false)?;
    s.gqa.qk_norm = QkNorm::Full;
    let r = Routed::read(f, ["num_experts|num_local_experts", "intermediate_size"], [64, 8, s.intermediate])?;
    let layers = (0..s.layers).map(|_| layer(s.gqa.full(), r.mlp())).collect();
    Ok(s.assemble(ROOT, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &ROOT.all("self_attn.", s.layers), s.hidden);
        router(t, &ROOT.all("mlp.", s.layers), "gate", s.hidden, r.experts);
        experts(t, &ROOT.all("mlp.experts.", s.layers), s.hidden, r.experts, r.intermediate);
    }))
}

/// OLMo 1 normalises without weights.
pub(crate) fn olmo(f: Fields<'_>) -> Result<Model, Problem> {
    let s = biased(f, &Defaults { model_type: "olmo", vocab: 50304, ..LLAMA }, false)?;
    let mut model = s.build(ROOT, &[], false, |_| s.gqa.full());
    model.tensors.retain(|group| group.class != TensorClass::Norm);
    Ok(model)
}

const SEED_OSS: Defaults = Defaults {
    model_type: "seed_oss",
    vocab: 155_136,
    intermediate: 27648,
    layers: 64,
    heads: 80,
    kv_heads: Some(8),
    head_dim: Some(128),
    positions: 524_288,
    ..LLAMA
};

pub(crate) fn seed_oss(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = biased(f, &SEED_OSS, true)?;
    s.gqa.out_bias = f.flag("attention_out_bias", false)?;
    Ok(s.build(ROOT, PRE_NORMS, f.flag("mlp_bias", false)?, |_| s.gqa.full()))
}

const ERNIE: Defaults = Defaults {
    model_type: "ernie4_5",
    vocab: 103_424,
    hidden: 1024,
    intermediate: 3072,
    layers: 18,
    heads: 16,
    kv_heads: Some(2),
    head_dim: Some(128),
    positions: 131_072,
    tied: true,
};

pub(crate) fn ernie(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &ERNIE)?;
    let bias = f.flag("use_bias", false)?;
    s.gqa.qkv_bias = bias;
    s.gqa.out_bias = bias;
    Ok(s.build(ROOT, PRE_NORMS, bias, |_| s.gqa.full()))
}

const MINISTRAL3: Defaults = Defaults {
    model_type: "ministral3",
    vocab: 131_072,
    layers: 34,
    head_dim: Some(128),
    positions: 262_144,
    ..MISTRAL
};

pub(crate) fn ministral3(f: Fields<'_>) -> Result<Model, Problem> {
    ministral3_in(f, ROOT, None)
}

pub(crate) fn ministral3_in(f: Fields<'_>, root: Root, tied: Option<bool>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &MINISTRAL3)?;
    s.tied = tied.unwrap_or(s.tied);
    let window = window(f, None)?;
    Ok(s.build(root, PRE_NORMS, false, |_| s.gqa.windowed(window)))
}

const SMOLLM3: Defaults = Defaults {
    model_type: "smollm3",
    vocab: 128_256,
    hidden: 2048,
    layers: 36,
    heads: 16,
    kv_heads: Some(4),
    positions: 32768,
    tied: true,
    ..LLAMA
};

/// SmolLM 3 leaves rotary position out of every fourth layer.
pub(crate) fn smollm3(f: Fields<'_>) -> Result<Model, Problem> {
    let s = biased(f, &SMOLLM3, false)?;
    let interval = f.whole("no_rope_layer_interval", 1, 4096)?.unwrap_or(4);
    let listed = f.numbers("no_rope_layers")?;
    let rope = |i: u64| match &listed {
        Some(list) => list.get(i as usize).is_none_or(|v| *v != 0),
        None => !(i + 1).is_multiple_of(interval),
    };
    let window = if f.flag("use_sliding_window", false)? { window(f, None)? } else { None };
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if window.is_some() && !rope(i) { "sliding_attention" } else { "full_attention" }
    })?;
    Ok(s.build(ROOT, PRE_NORMS, f.flag("mlp_bias", false)?, |i| Attention {
        rope: rope(i),
        ..s.gqa.windowed(window.filter(|_| kinds[i as usize] == "sliding_attention"))
    }))
}

const COHERE: Defaults = Defaults {
    model_type: "cohere",
    vocab: 256_000,
    hidden: 8192,
    intermediate: 22528,
    layers: 40,
    heads: 64,
    positions: 8192,
    tied: true,
    ..LLAMA
};

/// Command R: one norm feeds attention and feed-forward; q and k may have a norm per head.
pub(crate) fn cohere(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = biased(f, &COHERE, false)?;
    s.gqa.head_dim = (s.hidden / s.gqa.heads).max(1);
    let norm = f.flag("use_qk_norm", false)?;
    let attention = Attention { qk_norm: norm, ..s.gqa.full() };
    let layers = (0..s.layers).map(|_| layer(attention, dense(s.intermediate))).collect();
    Ok(s.assemble(ROOT, &["input_layernorm"], layers, |t| {
        let on = ROOT.all("self_attn.", s.layers);
        s.gqa.tensors(t, &on, s.hidden);
        if norm {
            for (name, heads) in [("q_norm.weight", s.gqa.heads), ("k_norm.weight", s.gqa.kv_heads)] {
                t.add(&on, name, &[heads, s.gqa.head_dim], TensorClass::Norm, Sharding::Column);
            }
        }
        gated(t, &ROOT.all("mlp.", s.layers), s.hidden, s.intermediate, false);
    }))
}

/// Command R7B and Command A: three sliding layers, then a full one without rotary position.
pub(crate) fn cohere2(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = biased(f, &Defaults { model_type: "cohere2", ..COHERE }, false)?;
    s.gqa.head_dim = (s.hidden / s.gqa.heads).max(1);
    let window = window(f, Some(4096))?;
    let period = f.whole("sliding_window_pattern", 1, 4096)?.unwrap_or(4);
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if (i + 1).is_multiple_of(period) { "full_attention" } else { "sliding_attention" }
    })?;
    Ok(s.build(ROOT, &["input_layernorm"], false, |i| {
        let sliding = kinds[i as usize] == "sliding_attention";
        Attention { rope: sliding, ..s.gqa.windowed(window.filter(|_| sliding)) }
    }))
}

const GLM: Defaults = Defaults {
    model_type: "glm",
    vocab: 151_552,
    intermediate: 13696,
    layers: 40,
    kv_heads: Some(2),
    head_dim: Some(128),
    positions: 131_072,
    ..LLAMA
};

fn glm_of(f: Fields<'_>, defaults: &Defaults, norms: &[&str]) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.gqa.qkv_bias = f.flag("attention_bias", true)?;
    let mlp = Mlp { fused_gate_up: true, ..dense(s.intermediate) };
    let layers = (0..s.layers).map(|_| layer(s.gqa.full(), mlp)).collect();
    Ok(s.assemble(ROOT, norms, layers, |t| {
        s.gqa.tensors(t, &ROOT.all("self_attn.", s.layers), s.hidden);
        fused_gated(t, &ROOT.all("mlp.", s.layers), s.hidden, s.intermediate);
    }))
}

pub(crate) fn glm(f: Fields<'_>) -> Result<Model, Problem> {
    glm_of(f, &GLM, PRE_NORMS)
}

pub(crate) fn glm4(f: Fields<'_>) -> Result<Model, Problem> {
    let norms =
        ["input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"];
    glm_of(f, &Defaults { model_type: "glm4", ..GLM }, &norms)
}

/// Hunyuan 0.5B to 7B: q and k norms under names of their own.
pub(crate) fn hunyuan_dense(f: Fields<'_>) -> Result<Model, Problem> {
    let defaults = Defaults { model_type: "hunyuan_v1_dense", vocab: 290_943, ..LLAMA };
    let s = biased(f, &defaults, false)?;
    let attention = Attention { qk_norm: true, ..s.gqa.full() };
    let layers = (0..s.layers).map(|_| layer(attention, dense(s.intermediate))).collect();
    Ok(s.assemble(ROOT, PRE_NORMS, layers, |t| {
        let on = ROOT.all("self_attn.", s.layers);
        s.gqa.tensors(t, &on, s.hidden);
        for norm in ["query_layernorm", "key_layernorm"] {
            t.norm(&on, norm, s.gqa.head_dim, false);
        }
        gated(t, &ROOT.all("mlp.", s.layers), s.hidden, s.intermediate, false);
    }))
}
