//! Older decoders with LayerNorms, biases and a plain feed-forward: GPT-2, GPT-J, GPT-NeoX, OPT, BLOOM, Phi-2.

use super::parts::{Gqa, blank, embedding, head, layer, plain, positions};
use crate::model::fields::{Fields, MAX_SIZE};
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;
use serde_json::Value;

/// What these families read first.
struct Gpt {
    vocab: u64,
    hidden: u64,
    layers: u64,
    inner: u64,
    gqa: Gqa,
    tied: bool,
}

/// Class defaults.
struct Defaults {
    vocab: u64,
    hidden: u64,
    layers: u64,
    heads: u64,
    tied: bool,
}

impl Gpt {
    fn read(
        f: Fields<'_>,
        hidden: &str,
        depth: &str,
        heads: &str,
        inner: &str,
        d: &Defaults,
    ) -> Result<Gpt, Problem> {
        let hidden = f.size(hidden, d.hidden)?;
        let count = f.heads(heads, d.heads)?;
        if !hidden.is_multiple_of(count) {
            return Err(f.problem(heads, &Value::from(count), format!("hidden_size ({hidden}) / n")));
        }
        Ok(Gpt {
            vocab: f.size("vocab_size", d.vocab)?,
            hidden,
            layers: f.layers(depth, d.layers)?,
            inner: f.optional(inner, MAX_SIZE, None)?.unwrap_or(4 * hidden),
            gqa: Gqa { heads: count, kv_heads: count, head_dim: hidden / count, ..Gqa::EMPTY }
                .with_bias(true),
            tied: f.flag("tie_word_embeddings", d.tied)?,
        })
    }

    fn model(&self, model_type: &str, rope: bool) -> Model {
        let mlp =
            Mlp { kind: MlpKind::Dense { intermediate: self.inner }, gated: false, fused_gate_up: false };
        let attention = Attention { rope, ..self.gqa.full() };
        let mut model = blank(model_type, self.hidden, self.vocab);
        model.tied_embeddings = self.tied;
        model.layers = (0..self.layers).map(|_| layer(attention, mlp)).collect();
        model
    }

    fn out(&self, t: &mut Tensors, on: &Scope, name: &str) {
        let bias = self.gqa.out_bias;
        t.linear(on, name, [self.hidden, self.hidden], bias, TensorClass::AttentionOut, Sharding::Row);
    }

    fn head(&self, t: &mut Tensors, bias: bool) {
        head(t, "lm_head", self.vocab, self.hidden, self.tied, bias);
    }
}

fn position_table(t: &mut Tensors, on: &Scope, name: &str, rows: u64, hidden: u64) {
    t.linear(on, name, [rows, hidden], false, TensorClass::PositionEmbedding, Sharding::Replicated);
}

pub(crate) fn gpt2(f: Fields<'_>) -> Result<Model, Problem> {
    let d = Defaults { vocab: 50257, hidden: 768, layers: 12, heads: 12, tied: true };
    let s = Gpt::read(
        f,
        "n_embd|hidden_size",
        "n_layer|num_hidden_layers",
        "n_head|num_attention_heads",
        "n_inner",
        &d,
    )?;
    let mut model = s.model("gpt2", false);
    model.max_position_embeddings = positions(f, "n_positions|max_position_embeddings", 1024)?;
    let mut t = Tensors::default();
    let (root, on) = (Scope::root("transformer."), Scope::all("transformer.h.*.", s.layers));
    embedding(&mut t, &root, "wte", s.vocab, s.hidden);
    position_table(&mut t, &root, "wpe", model.max_position_embeddings, s.hidden);
    t.norm(&on, "ln_1", s.hidden, true);
    s.gqa.fused(&mut t, &on.within("attn."), "c_attn", s.hidden);
    s.out(&mut t, &on.within("attn."), "c_proj");
    t.norm(&on, "ln_2", s.hidden, true);
    plain(&mut t, &on.within("mlp."), ["c_fc", "c_proj"], s.hidden, s.inner, true);
    // Conv1D keeps its matrices as [in, out].
    for group in &mut t.groups {
        let conv = group.name.contains(".attn.") || group.name.contains(".mlp.");
        if conv && group.shape.len() == 2 {
            group.shape.reverse();
            group.transposed = true;
        }
    }
    t.norm(&root, "ln_f", s.hidden, true);
    s.head(&mut t, false);
    model.tensors = t.groups;
    Ok(model)
}

pub(crate) fn gptj(f: Fields<'_>) -> Result<Model, Problem> {
    let d = Defaults { vocab: 50400, hidden: 4096, layers: 28, heads: 16, tied: false };
    let mut s = Gpt::read(
        f,
        "n_embd|hidden_size",
        "n_layer|num_hidden_layers",
        "n_head|num_attention_heads",
        "n_inner",
        &d,
    )?;
    s.gqa = s.gqa.with_bias(false);
    let mut model = s.model("gptj", true);
    model.max_position_embeddings = positions(f, "n_positions|max_position_embeddings", 2048)?;
    let mut t = Tensors::default();
    let (root, on) = (Scope::root("transformer."), Scope::all("transformer.h.*.", s.layers));
    embedding(&mut t, &root, "wte", s.vocab, s.hidden);
    t.norm(&on, "ln_1", s.hidden, true);
    s.gqa.named(&mut t, &on.within("attn."), s.hidden, ["q_proj", "k_proj", "v_proj", "out_proj"]);
    plain(&mut t, &on.within("mlp."), ["fc_in", "fc_out"], s.hidden, s.inner, true);
    t.norm(&root, "ln_f", s.hidden, true);
    s.head(&mut t, true);
    model.tensors = t.groups;
    Ok(model)
}

pub(crate) fn gpt_neox(f: Fields<'_>) -> Result<Model, Problem> {
    let d = Defaults { vocab: 50432, hidden: 6144, layers: 44, heads: 64, tied: false };
    let names = ["hidden_size", "num_hidden_layers", "num_attention_heads"];
    let mut s = Gpt::read(f, names[0], names[1], names[2], "intermediate_size", &d)?;
    s.inner = f.size("intermediate_size", 24576)?;
    s.gqa = s.gqa.with_bias(f.flag("attention_bias", true)?);
    let mut model = s.model("gpt_neox", true);
    model.max_position_embeddings = positions(f, "max_position_embeddings", 2048)?;
    let mut t = Tensors::default();
    let (root, on) = (Scope::root("gpt_neox."), Scope::all("gpt_neox.layers.*.", s.layers));
    embedding(&mut t, &root, "embed_in", s.vocab, s.hidden);
    t.norm(&on, "input_layernorm", s.hidden, true);
    t.norm(&on, "post_attention_layernorm", s.hidden, true);
    s.gqa.fused(&mut t, &on.within("attention."), "query_key_value", s.hidden);
    s.out(&mut t, &on.within("attention."), "dense");
    plain(&mut t, &on.within("mlp."), ["dense_h_to_4h", "dense_4h_to_h"], s.hidden, s.inner, true);
    t.norm(&root, "final_layer_norm", s.hidden, true);
    s.head(&mut t, false);
    model.tensors = t.groups;
    Ok(model)
}

pub(crate) fn opt(f: Fields<'_>) -> Result<Model, Problem> {
    let d = Defaults { vocab: 50272, hidden: 768, layers: 12, heads: 12, tied: true };
    let names = ["hidden_size", "num_hidden_layers", "num_attention_heads"];
    let mut s = Gpt::read(f, names[0], names[1], names[2], "ffn_dim", &d)?;
    s.inner = f.size("ffn_dim", 3072)?;
    let bias = f.flag("enable_bias", true)?;
    s.gqa = s.gqa.with_bias(bias);
    let affine = f.flag("layer_norm_elementwise_affine", true)?;
    // OPT-350m embeds in a narrower space and projects in and out of it.
    let narrow = f.optional("word_embed_proj_dim", MAX_SIZE, Some(768))?.unwrap_or(s.hidden);
    let mut model = s.model("opt", false);
    model.max_position_embeddings = positions(f, "max_position_embeddings", 2048)?;
    let mut t = Tensors::default();
    let (root, on) = (Scope::root("model.decoder."), Scope::all("model.decoder.layers.*.", s.layers));
    embedding(&mut t, &root, "embed_tokens", s.vocab, narrow);
    // Positions are offset by two.
    position_table(&mut t, &root, "embed_positions", model.max_position_embeddings + 2, s.hidden);
    if narrow != s.hidden {
        let other = TensorClass::Other;
        t.linear(&root, "project_out", [narrow, s.hidden], false, other, Sharding::Replicated);
        t.linear(&root, "project_in", [s.hidden, narrow], false, other, Sharding::Replicated);
    }
    if affine && f.flag("do_layer_norm_before", true)? && !f.flag("_remove_final_layer_norm", false)? {
        t.norm(&root, "final_layer_norm", s.hidden, true);
    }
    s.gqa.named(&mut t, &on.within("self_attn."), s.hidden, ["q_proj", "k_proj", "v_proj", "out_proj"]);
    plain(&mut t, &on, ["fc1", "fc2"], s.hidden, s.inner, bias);
    if affine {
        t.norm(&on, "self_attn_layer_norm", s.hidden, true);
        t.norm(&on, "final_layer_norm", s.hidden, true);
    }
    head(&mut t, "lm_head", s.vocab, narrow, s.tied, false);
    model.tensors = t.groups;
    Ok(model)
}

pub(crate) fn bloom(f: Fields<'_>) -> Result<Model, Problem> {
    let d = Defaults { vocab: 250_880, hidden: 64, layers: 2, heads: 8, tied: true };
    let (depth, heads) = ("n_layer|num_hidden_layers", "n_head|num_attention_heads");
    let mut s = Gpt::read(f, "n_embed|hidden_size", depth, heads, "hidden_size", &d)?;
    s.inner = 4 * s.hidden;
    let mut model = s.model("bloom", false);
    // ALiBi puts no bound on positions; the config may state the training length.
    model.max_position_embeddings = positions(f, "seq_length|max_position_embeddings", 0)?;
    let mut t = Tensors::default();
    let (root, on) = (Scope::root("transformer."), Scope::all("transformer.h.*.", s.layers));
    embedding(&mut t, &root, "word_embeddings", s.vocab, s.hidden);
    t.norm(&root, "word_embeddings_layernorm", s.hidden, true);
    t.norm(&on, "input_layernorm", s.hidden, true);
    s.gqa.fused(&mut t, &on.within("self_attention."), "query_key_value", s.hidden);
    s.out(&mut t, &on.within("self_attention."), "dense");
    t.norm(&on, "post_attention_layernorm", s.hidden, true);
    plain(&mut t, &on.within("mlp."), ["dense_h_to_4h", "dense_4h_to_h"], s.hidden, s.inner, true);
    t.norm(&root, "ln_f", s.hidden, true);
    s.head(&mut t, false);
    model.tensors = t.groups;
    Ok(model)
}

pub(crate) fn phi(f: Fields<'_>) -> Result<Model, Problem> {
    let d = Defaults { vocab: 51200, hidden: 2048, layers: 24, heads: 32, tied: false };
    let names = ["hidden_size", "num_hidden_layers", "num_attention_heads"];
    let mut s = Gpt::read(f, names[0], names[1], names[2], "intermediate_size", &d)?;
    s.inner = f.size("intermediate_size", 8192)?;
    s.gqa = Gqa::read(f, s.hidden, d.heads, None, None)?.with_bias(true);
    let norm = f.flag("qk_layernorm", false)?;
    let mut model = s.model("phi", true);
    model.max_position_embeddings = positions(f, "max_position_embeddings", 2048)?;
    let mut t = Tensors::default();
    let (root, on) = (Scope::root("model."), Scope::all("model.layers.*.", s.layers));
    embedding(&mut t, &root, "embed_tokens", s.vocab, s.hidden);
    s.gqa.named(&mut t, &on.within("self_attn."), s.hidden, ["q_proj", "k_proj", "v_proj", "dense"]);
    if norm {
        for name in ["q_layernorm", "k_layernorm"] {
            t.norm(&on.within("self_attn."), name, s.hidden / s.gqa.heads, true);
        }
        for layer in &mut model.layers {
            layer.attention.qk_norm = true;
        }
    }
    plain(&mut t, &on.within("mlp."), ["fc1", "fc2"], s.hidden, s.inner, true);
    t.norm(&on, "input_layernorm", s.hidden, true);
    t.norm(&root, "final_layernorm", s.hidden, true);
    s.head(&mut t, true);
    model.tensors = t.groups;
    Ok(model)
}
