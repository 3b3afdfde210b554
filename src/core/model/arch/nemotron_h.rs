//! Nemotron-H: each layer is one of Mamba 2, attention, feed-forward or routed experts.

use super::mamba::{Mamba2, with_positions};
use super::moe::Routed;
use super::parts::{Gqa, blank, embedding, head, layer, layer_types, plain, router};
use crate::model::fields::{Fields, MAX_LAYERS, MAX_SIZE};
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, AttentionKind, Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;
use serde_json::Value;

const NO_MLP: Mlp = Mlp { kind: MlpKind::None, gated: false, fused_gate_up: false };
const NO_ATTENTION: Attention = Attention { kind: AttentionKind::None, qk_norm: false, rope: false };

/// The kind of each layer, from `layers_block_type` or the letters of `hybrid_override_pattern`.
/// transformers takes the depth from the pattern; a smaller `num_hidden_layers` cuts it.
fn kinds(f: Fields<'_>) -> Result<Vec<&str>, Problem> {
    let depth = f.whole("num_hidden_layers", 1, MAX_LAYERS)?;
    if let Some(list) = f.texts("layers_block_type|layer_types")? {
        let depth = depth.unwrap_or(MAX_LAYERS).min(list.len() as u64);
        return layer_types(f, "layers_block_type|layer_types", depth, |_| "");
    }
    let Some(pattern) = f.text("hybrid_override_pattern") else {
        return Ok(vec!["linear_attention", "moe", "full_attention", "mlp"]);
    };
    let depth = depth.unwrap_or(MAX_LAYERS).min(MAX_LAYERS) as usize;
    pattern
        .chars()
        .take(depth)
        .map(|letter| match letter {
            'M' => Ok("linear_attention"),
            'E' => Ok("moe"),
            '*' => Ok("full_attention"),
            '-' => Ok("mlp"),
            other => {
                let given = Value::from(other.to_string());
                Err(f.problem("hybrid_override_pattern", &given, "M, E, *, -"))
            }
        })
        .collect()
}

pub(crate) fn nemotron_h(f: Fields<'_>) -> Result<Model, Problem> {
    let kinds = kinds(f)?;
    let layers = kinds.len() as u64;
    let hidden = f.size("hidden_size", 4096)?;
    let vocab = f.size("vocab_size", 131_072)?;
    let inner = f.size("intermediate_size", 21504)?;
    let gqa = Gqa::read(f, hidden, 32, Some(8), Some(128))?;
    let mlp_bias = f.flag("mlp_bias", false)?;
    let mamba = Mamba2 {
        heads: f.heads("mamba_num_heads", 128)?,
        head_dim: f.heads("mamba_head_dim", 64)?,
        state: f.heads("ssm_state_size", 128)?,
        groups: f.heads("mamba_n_groups|n_groups", 8)?,
        kernel: f.heads("mamba_d_conv|conv_kernel", 4)?,
        conv_bias: f.flag("mamba_conv_bias|use_conv_bias", true)?,
        bias: f.flag("use_bias", false)?,
    };
    let mut routed =
        Routed::read(f, ["n_routed_experts|num_local_experts", "moe_intermediate_size"], [8, 2, 7688])?;
    routed.shared = f.size("moe_shared_expert_intermediate_size", 7688)?;
    routed.fp32_router = true;
    let latent = f.optional("moe_latent_size", MAX_SIZE, None)?;

    let dense = Mlp { kind: MlpKind::Dense { intermediate: inner }, gated: false, fused_gate_up: false };
    let sparse = Mlp { gated: false, fused_gate_up: false, ..routed.mlp() };
    let mut attention = gqa.full();
    attention.rope = false;
    let mut model = blank("nemotron_h", hidden, vocab);
    model.layers = kinds
        .iter()
        .map(|kind| match *kind {
            "linear_attention" | "mamba" => layer(mamba.attention(), NO_MLP),
            "full_attention" | "attention" => layer(attention, NO_MLP),
            "moe" => layer(NO_ATTENTION, sparse),
            _ => layer(NO_ATTENTION, dense),
        })
        .collect();

    let mut t = Tensors::default();
    let on = |names: &[&str]| {
        Scope::layers("model.layers.*.mixer.", layers, |i| names.contains(&kinds[i as usize]))
    };
    let root = Scope::root("model.");
    embedding(&mut t, &root, "embeddings", vocab, hidden);
    t.norm(&Scope::all("model.layers.*.", layers), "norm", hidden, false);
    mamba.tensors(&mut t, &on(&["linear_attention", "mamba"]), hidden);
    gqa.tensors(&mut t, &on(&["full_attention", "attention"]), hidden);
    plain(&mut t, &on(&["mlp"]), ["up_proj", "down_proj"], hidden, inner, mlp_bias);
    moe(&mut t, &on(&["moe"]), hidden, routed, latent, mlp_bias);
    t.norm(&root, "norm_f", hidden, false);
    // The head of this class is never tied.
    head(&mut t, "lm_head", vocab, hidden, false, false);
    model.tensors = t.groups;
    with_positions(model, f, 4096)
}

/// Plain experts, in the latent width where there is one, an fp32 router and a shared expert.
fn moe(t: &mut Tensors, on: &Scope, hidden: u64, r: Routed, latent: Option<u64>, bias: bool) {
    let width = latent.unwrap_or(hidden);
    t.experts(&on.within("experts."), "up_proj", [r.experts, r.intermediate, width], false, false);
    t.experts(&on.within("experts."), "down_proj", [r.experts, width, r.intermediate], false, true);
    if !on.is_empty() {
        router(t, on, "gate", hidden, r.experts);
        t.last_in_fp32();
    }
    let (shared, class) = (on.within("shared_experts."), TensorClass::SharedExpert);
    t.linear(&shared, "up_proj", [r.shared, hidden], bias, class, Sharding::Column);
    t.linear(&shared, "down_proj", [hidden, r.shared], bias, class, Sharding::Row);
    if let Some(width) = latent {
        t.linear(on, "fc1_latent_proj", [width, hidden], bias, class, Sharding::Replicated);
        t.linear(on, "fc2_latent_proj", [hidden, width], bias, class, Sharding::Replicated);
    }
}
