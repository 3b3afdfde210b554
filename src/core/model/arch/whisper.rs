//! Whisper: an audio encoder behind two convolutions, a decoder with cross-attention, tied embeddings.

use super::parts::{Gqa, blank, embedding, head, plain};
use crate::model::fields::{Fields, MAX_SIZE};
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, Layer, Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;

pub(crate) fn whisper(f: Fields<'_>) -> Result<Model, Problem> {
    let hidden = f.size("d_model|hidden_size", 384)?;
    let vocab = f.size("vocab_size", 51865)?;
    let mels = f.heads("num_mel_bins", 80)?;
    let source = f.whole("max_source_positions", 1, MAX_SIZE)?.unwrap_or(1500);
    let target = f.whole("max_target_positions", 1, MAX_SIZE)?.unwrap_or(448);
    let read = |side: [&str; 3]| -> Result<(u64, u64, u64), Problem> {
        Ok((f.layers(side[0], 4)?, f.heads(side[1], 6)?, f.size(side[2], 1536)?))
    };
    let encoder = read(["num_hidden_layers|encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"])?;
    let decoder = read(["decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"])?;

    let mut model = blank("whisper", hidden, vocab);
    model.max_position_embeddings = target;
    model.tied_embeddings = f.flag("tie_word_embeddings", true)?;
    let mut t = Tensors::default();
    let root = Scope::root("model.encoder.");
    let other = TensorClass::Encoder;
    for (name, channels) in [("conv1", mels), ("conv2", hidden)] {
        t.add(&root, &format!("{name}.weight"), &[hidden, channels, 3], other, Sharding::Replicated);
        t.add(&root, &format!("{name}.bias"), &[hidden], other, Sharding::Replicated);
    }
    position(&mut t, &root, source, hidden);
    model.encoder_layers = stack(&mut t, "model.encoder.", hidden, encoder, false);
    t.norm(&root, "layer_norm", hidden, true);
    let root = Scope::root("model.decoder.");
    embedding(&mut t, &root, "embed_tokens", vocab, hidden);
    position(&mut t, &root, target, hidden);
    model.layers = stack(&mut t, "model.decoder.", hidden, decoder, true);
    t.norm(&root, "layer_norm", hidden, true);
    head(&mut t, "proj_out", vocab, hidden, model.tied_embeddings, false);
    model.tensors = t.groups;
    Ok(model)
}

fn position(t: &mut Tensors, root: &Scope, rows: u64, hidden: u64) {
    let class = TensorClass::PositionEmbedding;
    t.linear(root, "embed_positions", [rows, hidden], false, class, Sharding::Replicated);
}

/// One stack; answers its layers.
fn stack(t: &mut Tensors, prefix: &str, hidden: u64, size: (u64, u64, u64), cross: bool) -> Vec<Layer> {
    let (layers, heads, inner) = size;
    let on = Scope::all(&format!("{prefix}layers.*."), layers);
    let gqa = Gqa { heads, kv_heads: heads, head_dim: (hidden / heads).max(1), ..Gqa::EMPTY };
    attention(t, &on.within("self_attn."), hidden, heads);
    t.norm(&on, "self_attn_layer_norm", hidden, true);
    if cross {
        attention(t, &on.within("encoder_attn."), hidden, heads);
        t.norm(&on, "encoder_attn_layer_norm", hidden, true);
    }
    plain(t, &on, ["fc1", "fc2"], hidden, inner, true);
    t.norm(&on, "final_layer_norm", hidden, true);
    let attention = Attention { rope: false, ..gqa.full() };
    let mlp = Mlp { kind: MlpKind::Dense { intermediate: inner }, gated: false, fused_gate_up: false };
    vec![Layer { attention, cross_attention: cross, mlp }; layers as usize]
}

/// The k projection alone has no bias.
fn attention(t: &mut Tensors, on: &Scope, hidden: u64, heads: u64) {
    let kv = Sharding::KvHeads { kv_heads: heads };
    let square = [hidden, hidden];
    t.linear(on, "k_proj", square, false, TensorClass::AttentionK, kv);
    t.linear(on, "v_proj", square, true, TensorClass::AttentionV, kv);
    t.linear(on, "q_proj", square, true, TensorClass::AttentionQ, Sharding::Column);
    t.linear(on, "out_proj", square, true, TensorClass::AttentionOut, Sharding::Row);
}
