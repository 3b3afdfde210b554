//! Classes published with the weights instead of transformers: they fuse what the Llama class keeps apart.

use super::llama::{Defaults, LLAMA, PRE_NORMS, Sizes};
use super::parts::{Root, dense, embedding, gated, head, layer};
use crate::model::fields::Fields;
use crate::model::tensors::Tensors;
use crate::model::{Attention, Model, Sharding, TensorClass};
use crate::units::Problem;

const ROOT: Root = Root::PLAIN;

/// InternLM 2 as published with its own code: one fused projection, feed-forward matrices named w1 to w3.
pub(crate) fn internlm2(f: Fields<'_>) -> Result<Model, Problem> {
    let defaults = Defaults { model_type: "internlm2", vocab: 103_168, positions: 2048, ..LLAMA };
    let mut s = Sizes::read(f, &defaults)?;
    s.gqa = s.gqa.with_bias(f.flag("bias", true)?);
    let mut t = Tensors::default();
    embedding(&mut t, &ROOT.outside(), "tok_embeddings", s.vocab, s.hidden);
    let attention = ROOT.all("attention.", s.layers);
    s.gqa.fused(&mut t, &attention, "wqkv", s.hidden);
    let wide = s.gqa.heads * s.gqa.head_dim;
    t.linear(&attention, "wo", [s.hidden, wide], s.gqa.out_bias, TensorClass::AttentionOut, Sharding::Row);
    let ff = ROOT.all("feed_forward.", s.layers);
    t.linear(&ff, "w1", [s.intermediate, s.hidden], false, TensorClass::MlpGate, Sharding::Column);
    t.linear(&ff, "w3", [s.intermediate, s.hidden], false, TensorClass::MlpUp, Sharding::Column);
    t.linear(&ff, "w2", [s.hidden, s.intermediate], false, TensorClass::MlpDown, Sharding::Row);
    for norm in ["attention_norm", "ffn_norm"] {
        t.norm(&ROOT.all("", s.layers), norm, s.hidden, false);
    }
    t.norm(&ROOT.outside(), "norm", s.hidden, false);
    head(&mut t, "output", s.vocab, s.hidden, s.tied, false);
    let mut model = s.model();
    model.layers = (0..s.layers).map(|_| layer(s.gqa.full(), dense(s.intermediate))).collect();
    model.tensors = t.groups;
    Ok(model)
}

/// Baichuan as published with its own code: a Llama with one fused projection; 13B has ALiBi, not rotary
/// position.
pub(crate) fn baichuan(f: Fields<'_>) -> Result<Model, Problem> {
    let defaults = Defaults { model_type: "baichuan", vocab: 125_696, positions: 4096, ..LLAMA };
    let s = Sizes::read(f, &defaults)?;
    let attention = Attention { rope: s.hidden == 4096, ..s.gqa.full() };
    let layers = (0..s.layers).map(|_| layer(attention, dense(s.intermediate))).collect();
    Ok(s.assemble(ROOT, PRE_NORMS, layers, |t| {
        let on = ROOT.all("self_attn.", s.layers);
        s.gqa.fused(t, &on, "W_pack", s.hidden);
        let wide = s.gqa.heads * s.gqa.head_dim;
        t.linear(&on, "o_proj", [s.hidden, wide], false, TensorClass::AttentionOut, Sharding::Row);
        gated(t, &ROOT.all("mlp.", s.layers), s.hidden, s.intermediate, false);
    }))
}
