//! Gemma: tied embeddings of a large vocabulary; 2 and 3 alternate sliding and full layers.

use super::llama::{Defaults, PRE_NORMS, Sizes};
use super::parts::{QkNorm, Root, layer_types, window};
use crate::model::Model;
use crate::model::fields::Fields;
use crate::units::Problem;

const GEMMA: Defaults = Defaults {
    model_type: "gemma",
    vocab: 256_000,
    hidden: 3072,
    intermediate: 24576,
    layers: 28,
    heads: 16,
    kv_heads: Some(16),
    head_dim: Some(256),
    positions: 8192,
    tied: true,
};

const GEMMA2: Defaults = Defaults {
    model_type: "gemma2",
    hidden: 2304,
    intermediate: 9216,
    layers: 26,
    heads: 8,
    kv_heads: Some(4),
    ..GEMMA
};

const GEMMA3: Defaults = Defaults { model_type: "gemma3_text", vocab: 262_208, positions: 131_072, ..GEMMA2 };

/// Gemma 2 and 3 normalise before and after both halves of a layer.
const FOUR_NORMS: &[&str] = &[
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
];

fn sizes(f: Fields<'_>, defaults: &Defaults) -> Result<Sizes, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    Ok(s)
}

pub(crate) fn gemma(f: Fields<'_>) -> Result<Model, Problem> {
    let s = sizes(f, &GEMMA)?;
    Ok(s.build(Root::PLAIN, PRE_NORMS, false, |_| s.gqa.full()))
}

pub(crate) fn gemma2(f: Fields<'_>) -> Result<Model, Problem> {
    let s = sizes(f, &GEMMA2)?;
    let mut model = alternating(f, &s, Root::PLAIN, 2)?;
    // Both caps are on unless the config says null.
    model.attention_softcap = caps(f, "attn_logit_softcapping", true);
    model.final_logit_softcap = caps(f, "final_logit_softcapping", true);
    Ok(model)
}

pub(crate) fn gemma3_in(f: Fields<'_>, root: Root, tied: Option<bool>) -> Result<Model, Problem> {
    let mut s = sizes(f, &GEMMA3)?;
    s.gqa.qk_norm = QkNorm::PerHead;
    s.tied = tied.unwrap_or(s.tied);
    let pattern = f.whole("sliding_window_pattern|_sliding_window_pattern", 1, 4096)?.unwrap_or(6);
    let mut model = alternating(f, &s, root, pattern)?;
    model.attention_softcap = caps(f, "attn_logit_softcapping", false);
    model.final_logit_softcap = caps(f, "final_logit_softcapping", false);
    Ok(model)
}

pub(crate) fn gemma3_text(f: Fields<'_>) -> Result<Model, Problem> {
    gemma3_in(f, Root::PLAIN, None)
}

fn caps(f: Fields<'_>, name: &str, default: bool) -> bool {
    f.value(name).is_some() || (default && !f.has(name))
}

/// Every `period`-th layer is full, the others slide.
fn alternating(f: Fields<'_>, s: &Sizes, root: Root, period: u64) -> Result<Model, Problem> {
    let window = window(f, Some(4096))?;
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if (i + 1).is_multiple_of(period) { "full_attention" } else { "sliding_attention" }
    })?;
    Ok(s.build(root, FOUR_NORMS, false, |i| {
        s.gqa.windowed(window.filter(|_| kinds[i as usize] == "sliding_attention"))
    }))
}
