//! Jamba: Mamba 1 with an attention layer every few, routed experts every other layer.

use super::llama::{Defaults, MISTRAL, Sizes};
use super::mamba::Mamba1;
use super::moe::Routed;
use super::parts::{Root, dense, embedding, experts, gated, head, layer, router};
use crate::model::Model;
use crate::model::fields::{Fields, MAX_LAYERS};
use crate::model::tensors::Tensors;
use crate::units::Problem;
use serde_json::Value;

const JAMBA: Defaults = Defaults { model_type: "jamba", vocab: 65536, positions: 262_144, ..MISTRAL };

/// `period` and `offset` of a layer kind.
fn every(
    f: Fields<'_>,
    [period, offset]: [&str; 2],
    default: (u64, u64),
) -> Result<impl Fn(u64) -> bool, Problem> {
    let n = f.whole(period, 1, MAX_LAYERS)?.unwrap_or(default.0);
    let at = f.whole(offset, 0, n - 1)?.unwrap_or(default.1);
    Ok(move |i: u64| i % n == at)
}

pub(crate) fn jamba(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &JAMBA)?;
    let is_attention = every(f, ["attn_layer_period", "attn_layer_offset"], (8, 4))?;
    // One expert is a dense feed-forward.
    let names = ["num_experts|num_local_experts", "intermediate_size"];
    let count = f.experts(names[0], 16)?;
    let r = if count > 1 { Routed::read(f, names, [16, 2, s.intermediate])? } else { Routed::NONE };
    let expert_layer = every(f, ["expert_layer_period", "expert_layer_offset"], (2, 1))?;
    let is_sparse = |i: u64| r.experts > 1 && expert_layer(i);
    let rank = match f.value("mamba_dt_rank") {
        Some((_, Value::String(auto))) if auto == "auto" => s.hidden.div_ceil(16),
        _ => f.heads("mamba_dt_rank", s.hidden.div_ceil(16))?,
    };
    let mamba = Mamba1 {
        inner: f.heads("mamba_expand", 2)? * s.hidden,
        state: f.heads("mamba_d_state", 16)?,
        rank,
        kernel: f.heads("mamba_d_conv", 4)?,
        conv_bias: f.flag("mamba_conv_bias", true)?,
        bias: f.flag("mamba_proj_bias", false)?,
    };
    let mut attention = s.gqa.full();
    attention.rope = false;
    let mut model = s.model();
    model.layers = (0..s.layers)
        .map(|i| {
            let mixer = if is_attention(i) { attention } else { mamba.attention() };
            layer(mixer, if is_sparse(i) { r.mlp() } else { dense(s.intermediate) })
        })
        .collect();

    let root = Root::PLAIN;
    let mut t = Tensors::default();
    embedding(&mut t, &root.outside(), "embed_tokens", s.vocab, s.hidden);
    mamba.tensors(&mut t, &root.layers("mamba.", s.layers, |i| !is_attention(i)), s.hidden);
    let sparse = |suffix: &str| root.layers(suffix, s.layers, is_sparse);
    gated(
        &mut t,
        &root.layers("feed_forward.", s.layers, |i| !is_sparse(i)),
        s.hidden,
        s.intermediate,
        false,
    );
    for norm in ["input_layernorm", "pre_ff_layernorm"] {
        t.norm(&root.all("", s.layers), norm, s.hidden, false);
    }
    router(&mut t, &sparse("feed_forward."), "router", s.hidden, r.experts);
    experts(&mut t, &sparse("feed_forward.experts."), s.hidden, r.experts, r.intermediate);
    s.gqa.tensors(&mut t, &root.layers("self_attn.", s.layers, &is_attention), s.hidden);
    t.norm(&root.outside(), "final_layernorm", s.hidden, false);
    head(&mut t, root.head, s.vocab, s.hidden, s.tied, false);
    model.tensors = t.groups;
    Ok(model)
}
