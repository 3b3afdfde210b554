//! Llama-shaped decoders with LayerNorms that carry biases: StableLM, Nemotron 3 and 4.

use super::kindred::biased;
use super::llama::{Defaults, LLAMA, PRE_NORMS, Sizes};
use super::parts::{Root, dense, gated, layer, plain};
use crate::model::fields::Fields;
use crate::model::{Mlp, Model, Sharding, TensorClass};
use crate::units::Problem;
use serde_json::Value;

const ROOT: Root = Root::PLAIN;

const STABLELM: Defaults = Defaults {
    model_type: "stablelm",
    vocab: 50304,
    hidden: 2560,
    intermediate: 6912,
    kv_heads: Some(32),
    positions: 4096,
    ..LLAMA
};

/// StableLM: LayerNorms; one of them where attention and feed-forward run in parallel.
pub(crate) fn stablelm(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &STABLELM)?;
    s.gqa.head_dim = (s.hidden / s.gqa.heads).max(1);
    s.gqa.qkv_bias = f.flag("use_qkv_bias", false)?;
    if f.flag("qk_layernorm", false)? {
        return Err(f.problem("qk_layernorm", &Value::Bool(true), "false"));
    }
    let norms: &[&str] = if f.flag("use_parallel_residual", false)? { &PRE_NORMS[..1] } else { PRE_NORMS };
    Ok(layer_normed(&s, norms, true))
}

const NEMOTRON: Defaults = Defaults {
    model_type: "nemotron",
    vocab: 256_000,
    hidden: 6144,
    intermediate: 24576,
    heads: 48,
    positions: 4096,
    ..LLAMA
};

/// Nemotron 3 and 4, Minitron: LayerNorms and a plain squared-ReLU feed-forward.
pub(crate) fn nemotron(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = biased(f, &NEMOTRON, false)?;
    let bias = f.flag("mlp_bias", false)?;
    if bias {
        return Err(f.problem("mlp_bias", &Value::Bool(true), "false"));
    }
    s.tied = f.flag("tie_word_embeddings", false)?;
    Ok(layer_normed(&s, PRE_NORMS, false))
}

/// A decoder whose norms carry biases, with a gated or a plain feed-forward.
fn layer_normed(s: &Sizes, norms: &[&str], is_gated: bool) -> Model {
    let mlp = Mlp { gated: is_gated, ..dense(s.intermediate) };
    let layers = (0..s.layers).map(|_| layer(s.gqa.full(), mlp)).collect();
    s.assemble(ROOT, &[], layers, |t| {
        s.gqa.tensors(t, &ROOT.all("self_attn.", s.layers), s.hidden);
        let ff = ROOT.all("mlp.", s.layers);
        if is_gated {
            gated(t, &ff, s.hidden, s.intermediate, false);
        } else {
            plain(t, &ff, ["up_proj", "down_proj"], s.hidden, s.intermediate, false);
        }
        for norm in norms {
            t.norm(&ROOT.all("", s.layers), norm, s.hidden, true);
        }
        t.add(&ROOT.outside(), "norm.bias", &[s.hidden], TensorClass::Norm, Sharding::Replicated);
    })
}
