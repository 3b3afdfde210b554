//! MiniMax Text 01: lightning attention with softmax attention in between, routed experts throughout.

use super::llama::{Defaults, MISTRAL, PRE_NORMS, Sizes};
use super::mamba::recurrent;
use super::moe::Routed;
use super::parts::{Root, experts, layer, layer_types, router, window};
use crate::model::fields::Fields;
use crate::model::{Model, RecurrentState, Sharding, TensorClass};
use crate::units::Problem;

const MINIMAX: Defaults = Defaults { model_type: "minimax", ..MISTRAL };

pub(crate) fn minimax(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &MINIMAX)?;
    let r = Routed::read(f, ["num_local_experts|num_experts", "intermediate_size"], [8, 2, s.intermediate])?;
    let window = window(f, None)?;
    // The config published with the weights lists 1 for softmax attention and 0 for lightning attention.
    let listed = f.numbers("attn_type_list")?;
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        let full = listed.as_ref().map_or(i.is_multiple_of(2), |list| list.get(i as usize) == Some(&1));
        if full { "full_attention" } else { "linear_attention" }
    })?;
    let linear = |i: u64| kinds[i as usize] == "linear_attention";
    let (heads, head_dim) = (s.gqa.heads, s.gqa.head_dim);
    let lightning = recurrent(RecurrentState {
        mechanism: "lightning",
        conv_dim: 0,
        conv_kernel: 0,
        state_heads: heads,
        state_per_head: head_dim * head_dim,
        state_dtype: None,
    });
    let layers = (0..s.layers)
        .map(|i| layer(if linear(i) { lightning } else { s.gqa.windowed(window) }, r.mlp()))
        .collect();
    let root = Root::PLAIN;
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        let on = root.layers("self_attn.", s.layers, linear);
        let (wide, class) = (heads * head_dim, TensorClass::RecurrentProjection);
        t.add(&on, "norm.weight", &[wide], TensorClass::Norm, Sharding::Column);
        t.linear(&on, "qkv_proj", [3 * wide, s.hidden], false, class, Sharding::Column);
        t.linear(&on, "out_proj", [s.hidden, wide], false, class, Sharding::Row);
        t.linear(&on, "output_gate", [wide, s.hidden], false, class, Sharding::Column);
        router(t, &root.all("mlp.", s.layers), "gate", s.hidden, r.experts);
        experts(t, &root.all("mlp.experts.", s.layers), s.hidden, r.experts, r.intermediate);
        s.gqa.tensors(t, &root.layers("self_attn.", s.layers, |i| !linear(i)), s.hidden);
    }))
}
