//! Llama 4: chunked attention with a full layer every few, routed experts of one per token, a vision tower.

use super::llama::{Defaults, LLAMA, PRE_NORMS, Sizes};
use super::moe::Routed;
use super::parts::{Root, dense, gated, layer, layer_types, router, shared_expert};
use super::vision;
use crate::model::fields::{Fields, MAX_SIZE};
use crate::model::{Attention, AttentionKind, Model};
use crate::units::Problem;

const LLAMA4: Defaults = Defaults {
    model_type: "llama4_text",
    vocab: 202_048,
    hidden: 5120,
    intermediate: 8192,
    layers: 48,
    heads: 40,
    kv_heads: Some(8),
    head_dim: Some(128),
    positions: 131_072,
    ..LLAMA
};

pub(crate) fn text(f: Fields<'_>) -> Result<Model, Problem> {
    text_in(f, Root::PLAIN)
}

fn text_in(f: Fields<'_>, root: Root) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &LLAMA4)?;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let dense_width = f.size("intermediate_size_mlp", 16384)?;
    let mut r = Routed::read(f, ["num_local_experts", "intermediate_size"], [16, 1, s.intermediate])?;
    r.shared = r.intermediate;
    let step = f.whole("interleave_moe_layer_step", 1, 4096)?.unwrap_or(1);
    let listed = f.numbers("moe_layers")?;
    let sparse = |i: u64| listed.as_ref().map_or((i + 1).is_multiple_of(step), |list| list.contains(&i));

    // 1 stands for a layer WITH rotary position, whatever the field's name.
    let interval = f.whole("no_rope_layer_interval", 1, 4096)?.unwrap_or(4);
    let rope_list = f.numbers("no_rope_layers")?.filter(|list| !list.is_empty());
    let rope = |i: u64| match &rope_list {
        Some(list) => list.get(i as usize).is_none_or(|v| *v != 0),
        None => !(i + 1).is_multiple_of(interval),
    };
    let chunk = f.optional("attention_chunk_size", MAX_SIZE << 16, Some(8192))?;
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if rope(i) && chunk.is_some() { "chunked_attention" } else { "full_attention" }
    })?;
    let norm = f.flag("use_qk_norm", true)?;
    let attention = |i: u64| -> Attention {
        let full = Attention { qk_norm: norm && rope(i), rope: rope(i), ..s.gqa.full() };
        match chunk.filter(|_| kinds[i as usize] == "chunked_attention") {
            Some(chunk) => {
                let kind = AttentionKind::Chunked {
                    heads: s.gqa.heads,
                    kv_heads: s.gqa.kv_heads,
                    head_dim: s.gqa.head_dim,
                    chunk,
                };
                Attention { kind, ..full }
            }
            None => full,
        }
    };
    let layers = (0..s.layers)
        .map(|i| layer(attention(i), if sparse(i) { r.mlp() } else { dense(dense_width) }))
        .collect();
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        gated(t, &root.layers("feed_forward.", s.layers, |i| !sparse(i)), s.hidden, dense_width, false);
        let on = |suffix: &str| root.layers(suffix, s.layers, sparse);
        let stack = on("feed_forward.experts.");
        t.experts(&stack, "gate_up_proj", [r.experts, 2 * r.intermediate, s.hidden], true, false);
        t.experts(&stack, "down_proj", [r.experts, s.hidden, r.intermediate], true, true);
        router(t, &on("feed_forward."), "router", s.hidden, r.experts);
        shared_expert(t, &on("feed_forward.shared_expert."), s.hidden, r.shared, false);
    }))
}

pub(crate) fn with_vision(f: Fields<'_>) -> Result<Model, Problem> {
    let root = Root { model: "language_model.model.", head: "language_model.lm_head" };
    let mut model = text_in(vision::part(f, "text_config")?, root)?;
    let (tensors, encoder) = vision::llama4(vision::part(f, "vision_config")?, model.hidden_size)?;
    model.tensors.splice(0..0, tensors);
    model.vision = Some(encoder);
    Ok(model)
}
