//! Falcon and MPT: a fused qkv projection, LayerNorms, a plain feed-forward, tied embeddings.

use super::parts::{Gqa, blank, embedding, head, layer, plain, positions};
use crate::model::fields::Fields;
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;
use serde_json::Value;

/// A plain feed-forward of that width.
fn plain_mlp(intermediate: u64) -> Mlp {
    Mlp { kind: MlpKind::Dense { intermediate }, gated: false, fused_gate_up: false }
}

/// Refuses heads that do not divide the hidden size: these classes raise.
fn divides(f: Fields<'_>, heads: u64, hidden: u64) -> Result<(), Problem> {
    if hidden.is_multiple_of(heads) {
        return Ok(());
    }
    Err(f.problem("num_attention_heads", &Value::from(heads), format!("hidden_size ({hidden}) / n")))
}

pub(crate) fn falcon(f: Fields<'_>) -> Result<Model, Problem> {
    let hidden = f.size("n_embed|hidden_size", 4544)?;
    let vocab = f.size("vocab_size", 65024)?;
    let layers = f.layers("num_hidden_layers", 32)?;
    let heads = f.heads("num_attention_heads", 71)?;
    divides(f, heads, hidden)?;
    let new = f.flag("new_decoder_architecture", false)?;
    let shared = f.flag("multi_query", true)?;
    let bias = f.flag("bias", false)?;
    let inner = f.size("ffn_hidden_size", 4 * hidden)?;
    let kv_heads = match (new, shared) {
        (true, _) => f.heads("num_kv_heads", heads)?,
        (false, true) => 1,
        (false, false) => heads,
    };
    if !heads.is_multiple_of(kv_heads) {
        return Err(f.problem(
            "num_kv_heads",
            &Value::from(kv_heads),
            format!("num_attention_heads ({heads}) / n"),
        ));
    }
    let gqa = Gqa { heads, kv_heads, head_dim: hidden / heads, qkv_bias: bias, ..Gqa::EMPTY };
    let alibi = f.flag("alibi", false)?;
    let mut attention = gqa.full();
    attention.rope = !alibi;

    let mut model = blank("falcon", hidden, vocab);
    model.max_position_embeddings = positions(f, "max_position_embeddings", 2048)?;
    model.tied_embeddings = f.flag("tie_word_embeddings", true)?;
    model.hf_caches_all_heads = new;
    model.layers = (0..layers).map(|_| layer(attention, plain_mlp(inner))).collect();

    let mut t = Tensors::default();
    let root = Scope::root("transformer.");
    let on = Scope::all("transformer.h.*.", layers);
    embedding(&mut t, &root, "word_embeddings", vocab, hidden);
    gqa.fused(&mut t, &on.within("self_attention."), "query_key_value", hidden);
    let out = TensorClass::AttentionOut;
    t.linear(&on.within("self_attention."), "dense", [hidden, hidden], bias, out, Sharding::Row);
    plain(&mut t, &on.within("mlp."), ["dense_h_to_4h", "dense_4h_to_h"], hidden, inner, bias);
    let norms: &[&str] = if !f.flag("parallel_attn", true)? {
        &["post_attention_layernorm", "input_layernorm"]
    } else if f.whole("num_ln_in_parallel_attn", 0, 2)?.map_or(new, |n| n == 2) {
        &["ln_attn", "ln_mlp"]
    } else {
        &["input_layernorm"]
    };
    for norm in norms {
        t.norm(&on, norm, hidden, true);
    }
    t.norm(&root, "ln_f", hidden, true);
    head(&mut t, "lm_head", vocab, hidden, model.tied_embeddings, false);
    model.tensors = t.groups;
    Ok(model)
}

pub(crate) fn mpt(f: Fields<'_>) -> Result<Model, Problem> {
    let hidden = f.size("hidden_size|d_model", 2048)?;
    let vocab = f.size("vocab_size", 50368)?;
    let layers = f.layers("num_hidden_layers|n_layers", 24)?;
    let heads = f.heads("num_attention_heads|n_heads", 16)?;
    divides(f, heads, hidden)?;
    let gqa = Gqa { heads, kv_heads: heads, head_dim: hidden / heads, ..Gqa::EMPTY };
    // The class multiplies by 4 whatever `expansion_ratio` says.
    let inner = 4 * hidden;
    let mut attention = gqa.full();
    attention.rope = false;
    let mut model = blank("mpt", hidden, vocab);
    model.max_position_embeddings = positions(f, "max_seq_len|max_position_embeddings", 2048)?;
    model.tied_embeddings = f.flag("tie_word_embeddings", true)?;
    model.layers = (0..layers).map(|_| layer(attention, plain_mlp(inner))).collect();

    let mut t = Tensors::default();
    let root = Scope::root("transformer.");
    let on = Scope::all("transformer.blocks.*.", layers);
    embedding(&mut t, &root, "wte", vocab, hidden);
    t.norm(&on, "norm_1", hidden, false);
    gqa.fused(&mut t, &on.within("attn."), "Wqkv", hidden);
    let out = TensorClass::AttentionOut;
    t.linear(&on.within("attn."), "out_proj", [hidden, hidden], false, out, Sharding::Row);
    t.norm(&on, "norm_2", hidden, false);
    plain(&mut t, &on.within("ffn."), ["up_proj", "down_proj"], hidden, inner, false);
    t.norm(&root, "norm_f", hidden, false);
    head(&mut t, "lm_head", vocab, hidden, model.tied_embeddings, false);
    model.tensors = t.groups;
    Ok(model)
}
