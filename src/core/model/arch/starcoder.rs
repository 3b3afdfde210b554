//! StarCoder 2: LayerNorms, biases, a plain feed-forward, a window in every layer.

use super::llama::{Defaults, LLAMA, Sizes};
use super::parts::{Root, layer, plain, window};
use crate::model::fields::Fields;
use crate::model::{Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;

const STARCODER2: Defaults = Defaults {
    model_type: "starcoder2",
    vocab: 49152,
    hidden: 3072,
    intermediate: 12288,
    layers: 30,
    heads: 24,
    kv_heads: Some(2),
    positions: 4096,
    tied: true,
    ..LLAMA
};

pub(crate) fn starcoder2(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &STARCODER2)?;
    let bias = f.flag("use_bias", true)?;
    s.gqa.qkv_bias = bias;
    s.gqa.out_bias = bias;
    let window = window(f, None)?;
    let root = Root::PLAIN;
    let mlp =
        Mlp { kind: MlpKind::Dense { intermediate: s.intermediate }, gated: false, fused_gate_up: false };
    let layers = (0..s.layers).map(|_| layer(s.gqa.windowed(window), mlp)).collect();
    let mut model = s.assemble(root, &[], layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        plain(t, &root.all("mlp.", s.layers), ["c_fc", "c_proj"], s.hidden, s.intermediate, bias);
        t.norm(&root.all("", s.layers), "input_layernorm", s.hidden, true);
        t.norm(&root.all("", s.layers), "post_attention_layernorm", s.hidden, true);
        t.add(&root.outside(), "norm.bias", &[s.hidden], TensorClass::Norm, Sharding::Replicated);
    });
    model.tied_embeddings = s.tied;
    Ok(model)
}
