//! T5: encoder and decoder with relative position buckets; the head is always tied in transformers 5.

use super::parts::{Gqa, blank, dense, embedding, positions};
use crate::model::fields::Fields;
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, Layer, Mlp, Model, Sharding, TensorClass};
use crate::units::Problem;

/// Sizes of both stacks.
struct T5 {
    hidden: u64,
    inner: u64,
    gqa: Gqa,
    buckets: u64,
    gated: bool,
}

pub(crate) fn t5(f: Fields<'_>) -> Result<Model, Problem> {
    let vocab = f.size("vocab_size", 32128)?;
    let heads = f.heads("num_heads|num_attention_heads", 8)?;
    let act = f.text("feed_forward_proj").unwrap_or("relu");
    let s = T5 {
        hidden: f.size("d_model|hidden_size", 512)?,
        inner: f.size("d_ff", 2048)?,
        gqa: Gqa { heads, kv_heads: heads, head_dim: f.heads("d_kv|head_dim", 64)?, ..Gqa::EMPTY },
        buckets: f.heads("relative_attention_num_buckets", 32)?,
        gated: act.starts_with("gated"),
    };
    let encoder = f.layers("num_hidden_layers|num_layers", 6)?;
    let decoder = f.layers("num_decoder_layers", encoder)?;

    let attention = Attention { rope: false, ..s.gqa.full() };
    let mlp = Mlp { gated: s.gated, ..dense(s.inner) };
    let mut model = blank("t5", s.hidden, vocab);
    // Relative buckets put no bound on positions.
    model.max_position_embeddings = positions(f, "n_positions|max_position_embeddings", 0)?;
    model.tied_embeddings = true;
    model.encoder_layers = (0..encoder).map(|_| Layer { attention, cross_attention: false, mlp }).collect();
    model.layers = (0..decoder).map(|_| Layer { attention, cross_attention: true, mlp }).collect();

    let mut t = Tensors::default();
    embedding(&mut t, &Scope::root(""), "shared", vocab, s.hidden);
    stack(&mut t, &s, "encoder", encoder, false);
    stack(&mut t, &s, "decoder", decoder, true);
    model.tensors = t.groups;
    Ok(model)
}

fn stack(t: &mut Tensors, s: &T5, name: &str, layers: u64, cross: bool) {
    let prefix = format!("{name}.block.*.layer.*.");
    let on = Scope::all(&prefix, layers);
    let first = Scope::layers(&prefix, layers, |i| i == 0);
    let names = ["q", "k", "v", "o"];
    s.gqa.named(t, &on.within("SelfAttention."), s.hidden, names);
    let bias = "SelfAttention.relative_attention_bias.weight";
    t.add(&first, bias, &[s.buckets, s.gqa.heads], TensorClass::Other, Sharding::Replicated);
    t.norm(&on.times(if cross { 3 } else { 2 }), "layer_norm", s.hidden, false);
    if cross {
        s.gqa.named(t, &on.within("EncDecAttention."), s.hidden, names);
    }
    let ff = on.within("DenseReluDense.");
    let (up, down) = ([s.inner, s.hidden], [s.hidden, s.inner]);
    if s.gated {
        t.linear(&ff, "wi_0", up, false, TensorClass::MlpGate, Sharding::Column);
        t.linear(&ff, "wi_1", up, false, TensorClass::MlpUp, Sharding::Column);
    } else {
        t.linear(&ff, "wi", up, false, TensorClass::MlpUp, Sharding::Column);
    }
    t.linear(&ff, "wo", down, false, TensorClass::MlpDown, Sharding::Row);
    t.norm(&Scope::root(&format!("{name}.")), "final_layer_norm", s.hidden, false);
}
