//! Granite 4 H: Mamba 2 and attention layers, each followed by routed experts and a shared feed-forward.

use super::llama::{Defaults, LLAMA, PRE_NORMS, Sizes};
use super::mamba::Mamba2;
use super::moe::Routed;
use super::parts::{Root, experts, layer, layer_types, router};
use crate::model::fields::Fields;
use crate::model::{Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;
use serde_json::Value;

const GRANITE_HYBRID: Defaults = Defaults { model_type: "granitemoehybrid", ..LLAMA };

pub(crate) fn granite_hybrid(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &GRANITE_HYBRID)?;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let mamba = mamba(f, s.hidden)?;
    let shared = f.size("shared_intermediate_size", 1024)?;
    let count = f.experts("num_local_experts|num_experts", 8)?;
    let kinds = layer_types(f, "layer_types|layers_block_type", s.layers, |_| "linear_attention")?;
    let is_mamba = |i: u64| matches!(kinds[i as usize], "mamba" | "linear_attention");
    let routed = if count > 0 {
        let mut r =
            Routed::read(f, ["num_local_experts|num_experts", "intermediate_size"], [8, 2, s.intermediate])?;
        r.shared = shared;
        Some(r)
    } else {
        None
    };
    let dense = Mlp { kind: MlpKind::Dense { intermediate: shared }, gated: true, fused_gate_up: true };
    let mlp = routed.map_or(dense, Routed::mlp);
    let mut attention = s.gqa.full();
    attention.rope = f.text("position_embedding_type") == Some("rope");
    let layers =
        (0..s.layers).map(|i| layer(if is_mamba(i) { mamba.attention() } else { attention }, mlp)).collect();
    let root = Root::PLAIN;
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        if let Some(r) = routed {
            router(t, &root.all("block_sparse_moe.", s.layers), "router", s.hidden, r.experts);
            experts(t, &root.all("block_sparse_moe.experts.", s.layers), s.hidden, r.experts, r.intermediate);
        }
        let class = |dense| if routed.is_some() { TensorClass::SharedExpert } else { dense };
        let ff = root.all("shared_mlp.", s.layers);
        let (up, down) = (class(TensorClass::MlpGate), class(TensorClass::MlpDown));
        t.linear(&ff, "input_linear", [2 * shared, s.hidden], false, up, Sharding::Column);
        t.linear(&ff, "output_linear", [s.hidden, shared], false, down, Sharding::Row);
        mamba.tensors(t, &root.layers("mamba.", s.layers, is_mamba), s.hidden);
        s.gqa.tensors(t, &root.layers("self_attn.", s.layers, |i| !is_mamba(i)), s.hidden);
    }))
}

fn mamba(f: Fields<'_>, hidden: u64) -> Result<Mamba2, Problem> {
    let expand = f.heads("mamba_expand", 2)?;
    let heads = f.heads("mamba_n_heads", 128)?;
    // "auto" spreads the inner width over the heads.
    let head_dim = match f.value("mamba_d_head") {
        Some((_, Value::String(auto))) if auto == "auto" => (expand * hidden / heads).max(1),
        _ => f.heads("mamba_d_head", 64)?,
    };
    if head_dim * heads != expand * hidden {
        let accepted = format!("mamba_expand * hidden_size / mamba_n_heads = {}", expand * hidden / heads);
        return Err(f.problem("mamba_d_head", &Value::from(head_dim), accepted));
    }
    Ok(Mamba2 {
        heads,
        head_dim,
        state: f.heads("mamba_d_state", 256)?,
        groups: f.heads("mamba_n_groups", 1)?,
        kernel: f.heads("mamba_d_conv", 4)?,
        conv_bias: f.flag("mamba_conv_bias", true)?,
        bias: f.flag("mamba_proj_bias", false)?,
    })
}
