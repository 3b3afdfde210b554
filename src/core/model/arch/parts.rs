//! Parts that families share: attention, feed-forward, experts, embeddings, layer lists.

use crate::model::fields::{Fields, MAX_HEADS, MAX_SIZE};
use crate::model::tensors::{Scope, Tensors};
use crate::model::{
    Activation, Attention, AttentionKind, Dropout, Layer, Mlp, MlpKind, Model, Sharding, TensorClass,
};
use crate::units::Problem;
use serde_json::Value;

/// Where a wrapper class keeps the language model and its head.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    /// Prefix of the stack, with a trailing dot.
    pub model: &'static str,
    /// Name of the head without `.weight`.
    pub head: &'static str,
}

impl Root {
    /// `model.*` and `lm_head`.
    pub(crate) const PLAIN: Root = Root { model: "model.", head: "lm_head" };

    /// A scope over the layers that `holds` selects, deeper by `suffix`.
    pub(crate) fn layers(self, suffix: &str, layers: u64, holds: impl Fn(u64) -> bool) -> Scope {
        Scope::layers(&format!("{}layers.*.{suffix}", self.model), layers, holds)
    }

    /// A scope over all layers.
    pub(crate) fn all(self, suffix: &str, layers: u64) -> Scope {
        self.layers(suffix, layers, |_| true)
    }

    /// The scope of tensors beside the layers.
    pub(crate) fn outside(self) -> Scope {
        Scope::root(self.model)
    }
}

/// A model without layers and tensors yet.
pub(crate) fn blank(model_type: &str, hidden_size: u64, vocab_size: u64) -> Model {
    Model {
        name: String::new(),
        class: String::new(),
        model_type: model_type.to_owned(),
        hidden_size,
        vocab_size,
        max_position_embeddings: 0,
        layers: Vec::new(),
        encoder_layers: Vec::new(),
        tensors: Vec::new(),
        tied_embeddings: false,
        parameters: 0,
        active_parameters: 0,
        dtype: None,
        quantization: None,
        vision: None,
        final_logit_softcap: false,
        attention_softcap: false,
        attention_sinks: false,
        mtp_layers: 0,
        rotary_table_elements: 0,
        longest_positions: 0,
        rotary_factor_tables: 0,
        hf_caches_all_heads: false,
        rotary_dim: 0,
        activation: Activation::default(),
        dropout: Dropout::default(),
        notes: Vec::new(),
    }
}

/// Whether q and k are normalised, and how wide the weight is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// Not normalised, or by a norm without weights.
    No,
    /// One weight of head_dim shared by the heads (Qwen 3).
    PerHead,
    /// One weight over all heads (OLMo 2).
    Full,
}

/// Attention with separate q, k, v and o projections.
#[derive(Clone, Copy)]
pub(crate) struct Gqa {
    pub heads: u64,
    pub kv_heads: u64,
    pub head_dim: u64,
    pub qkv_bias: bool,
    pub out_bias: bool,
    pub qk_norm: QkNorm,
}

impl Gqa {
    /// No heads, no biases: to be filled in.
    pub(crate) const EMPTY: Gqa =
        Gqa { heads: 1, kv_heads: 1, head_dim: 1, qkv_bias: false, out_bias: false, qk_norm: QkNorm::No };

    /// Reads the geometry. `kv_heads` and `head_dim` are class defaults; `None` stands for as many as query
    /// heads, and for hidden size over heads.
    pub(crate) fn read(
        fields: Fields<'_>,
        hidden: u64,
        heads: u64,
        kv_heads: Option<u64>,
        head_dim: Option<u64>,
    ) -> Result<Gqa, Problem> {
        let heads = fields.heads("num_attention_heads", heads)?;
        let kv_heads = match fields.derivable("num_key_value_heads", MAX_HEADS, kv_heads)? {
            Some(n) => n,
            None => heads,
        };
        let head_dim = match fields.derivable("head_dim", MAX_HEADS, head_dim)? {
            Some(n) => n,
            None => hidden / heads,
        };
        if head_dim == 0 {
            let given = Value::from(heads);
            return Err(fields.problem(
                "num_attention_heads",
                &given,
                format!("1 ... hidden_size ({hidden})"),
            ));
        }
        // A class default that does not divide is kept: the class builds these tensors too.
        let written = fields.value("num_key_value_heads").is_some();
        if written && !heads.is_multiple_of(kv_heads) {
            let given = Value::from(kv_heads);
            return Err(fields.problem(
                "num_key_value_heads",
                &given,
                format!("num_attention_heads ({heads}) / n"),
            ));
        }
        Ok(Gqa { heads, kv_heads, head_dim, qkv_bias: false, out_bias: false, qk_norm: QkNorm::No })
    }

    /// The same with or without biases on all four projections.
    pub(crate) fn with_bias(self, bias: bool) -> Gqa {
        Gqa { qkv_bias: bias, out_bias: bias, ..self }
    }

    /// As an attention that keeps every token.
    pub(crate) fn full(&self) -> Attention {
        let Gqa { heads, kv_heads, head_dim, .. } = *self;
        let kind = AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim: head_dim };
        Attention { kind, qk_norm: self.qk_norm != QkNorm::No, rope: true }
    }

    /// As an attention over the last `window` tokens.
    pub(crate) fn sliding(&self, window: u64) -> Attention {
        let Gqa { heads, kv_heads, head_dim, .. } = *self;
        let kind = AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim: head_dim, window };
        Attention { kind, ..self.full() }
    }

    /// Over the last tokens where there is a window.
    pub(crate) fn windowed(&self, window: Option<u64>) -> Attention {
        window.map_or_else(|| self.full(), |w| self.sliding(w))
    }

    /// The four projections (and norms) in `scope`, which ends in `self_attn.`.
    pub(crate) fn tensors(&self, t: &mut Tensors, scope: &Scope, hidden: u64) {
        self.named(t, scope, hidden, ["q_proj", "k_proj", "v_proj", "o_proj"]);
        self.norms(t, scope, ["q_norm", "k_norm"]);
    }

    /// The four projections under the given names.
    pub(crate) fn named(&self, t: &mut Tensors, scope: &Scope, hidden: u64, [q, k, v, o]: [&str; 4]) {
        let (wide, narrow) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let kv = Sharding::KvHeads { kv_heads: self.kv_heads };
        t.linear(scope, q, [wide, hidden], self.qkv_bias, TensorClass::AttentionQ, Sharding::Column);
        t.linear(scope, k, [narrow, hidden], self.qkv_bias, TensorClass::AttentionK, kv);
        t.linear(scope, v, [narrow, hidden], self.qkv_bias, TensorClass::AttentionV, kv);
        t.linear(scope, o, [hidden, wide], self.out_bias, TensorClass::AttentionOut, Sharding::Row);
    }

    /// The norms of q and k under the given names.
    pub(crate) fn norms(&self, t: &mut Tensors, scope: &Scope, [q, k]: [&str; 2]) {
        let (q_width, k_width) = match self.qk_norm {
            QkNorm::No => return,
            QkNorm::PerHead => (self.head_dim, self.head_dim),
            QkNorm::Full => (self.heads * self.head_dim, self.kv_heads * self.head_dim),
        };
        t.norm(scope, q, q_width, false);
        t.norm(scope, k, k_width, false);
    }

    /// One fused projection `name` of q, k and v.
    pub(crate) fn fused(&self, t: &mut Tensors, scope: &Scope, name: &str, hidden: u64) {
        let rows = (self.heads + 2 * self.kv_heads) * self.head_dim;
        let sharding = Sharding::Qkv { heads: self.heads, kv_heads: self.kv_heads, head_dim: self.head_dim };
        t.linear(scope, name, [rows, hidden], self.qkv_bias, TensorClass::AttentionQkv, sharding);
    }
}

/// gate, up and down of a gated feed-forward in `scope`, which ends in `mlp.`.
pub(crate) fn gated(t: &mut Tensors, scope: &Scope, hidden: u64, intermediate: u64, bias: bool) {
    t.linear(scope, "gate_proj", [intermediate, hidden], bias, TensorClass::MlpGate, Sharding::Column);
    t.linear(scope, "up_proj", [intermediate, hidden], bias, TensorClass::MlpUp, Sharding::Column);
    t.linear(scope, "down_proj", [hidden, intermediate], bias, TensorClass::MlpDown, Sharding::Row);
}

/// Gate and up as one matrix, and down, in `scope`.
pub(crate) fn fused_gated(t: &mut Tensors, scope: &Scope, hidden: u64, intermediate: u64) {
    let shape = [2 * intermediate, hidden];
    t.linear(scope, "gate_up_proj", shape, false, TensorClass::MlpGate, Sharding::Column);
    t.linear(scope, "down_proj", [hidden, intermediate], false, TensorClass::MlpDown, Sharding::Row);
}

/// The two matrices of a plain feed-forward under the given names.
pub(crate) fn plain(
    t: &mut Tensors,
    scope: &Scope,
    [up, down]: [&str; 2],
    hidden: u64,
    inner: u64,
    bias: bool,
) {
    t.linear(scope, up, [inner, hidden], bias, TensorClass::MlpUp, Sharding::Column);
    t.linear(scope, down, [hidden, inner], bias, TensorClass::MlpDown, Sharding::Row);
}

/// gate, up and down of an expert that every token passes, in `scope`.
pub(crate) fn shared_expert(t: &mut Tensors, scope: &Scope, hidden: u64, intermediate: u64, bias: bool) {
    let class = TensorClass::SharedExpert;
    t.linear(scope, "gate_proj", [intermediate, hidden], bias, class, Sharding::Column);
    t.linear(scope, "up_proj", [intermediate, hidden], bias, class, Sharding::Column);
    t.linear(scope, "down_proj", [hidden, intermediate], bias, class, Sharding::Row);
}

/// Stacked routed experts, gate and up fused, in `scope`, which ends in `experts.`.
pub(crate) fn experts(t: &mut Tensors, scope: &Scope, hidden: u64, count: u64, intermediate: u64) {
    t.experts(scope, "gate_up_proj", [count, 2 * intermediate, hidden], false, false);
    t.experts(scope, "down_proj", [count, hidden, intermediate], false, true);
}

/// The router `name.weight` of [experts, hidden].
pub(crate) fn router(t: &mut Tensors, scope: &Scope, name: &str, hidden: u64, count: u64) {
    t.linear(scope, name, [count, hidden], false, TensorClass::Router, Sharding::Replicated);
}

/// The token embedding `name.weight`.
pub(crate) fn embedding(t: &mut Tensors, scope: &Scope, name: &str, vocab: u64, hidden: u64) {
    t.linear(scope, name, [vocab, hidden], false, TensorClass::Embedding, Sharding::Vocab);
}

/// The output projection, where it has storage of its own.
pub(crate) fn head(t: &mut Tensors, name: &str, vocab: u64, hidden: u64, tied: bool, bias: bool) {
    let scope = Scope::root("");
    if !tied {
        t.linear(&scope, name, [vocab, hidden], bias, TensorClass::LmHead, Sharding::Vocab);
    } else if bias {
        t.add(&scope, &format!("{name}.bias"), &[vocab], TensorClass::Bias, Sharding::Vocab);
    }
}

/// A dense gated feed-forward.
pub(crate) fn dense(intermediate: u64) -> Mlp {
    Mlp { kind: MlpKind::Dense { intermediate }, gated: true, fused_gate_up: false }
}

/// A layer without cross-attention.
pub(crate) fn layer(attention: Attention, mlp: Mlp) -> Layer {
    Layer { attention, cross_attention: false, mlp }
}

/// The kind of each layer: the first `layers` entries of the list `layer_types`, or `derive`d.
pub(crate) fn layer_types<'a>(
    fields: Fields<'a>,
    name: &str,
    layers: u64,
    derive: impl Fn(u64) -> &'a str,
) -> Result<Vec<&'a str>, Problem> {
    let Some(list) = fields.texts(name)? else { return Ok((0..layers).map(derive).collect()) };
    if (list.len() as u64) < layers {
        let given = Value::from(format!("[… {} …]", list.len()));
        return Err(fields.problem(name, &given, format!("[… {layers} …] (num_hidden_layers)")));
    }
    Ok(crate::model::merge::cut(list, layers))
}

/// `max_position_embeddings`, or the class default.
pub(crate) fn positions(fields: Fields<'_>, names: &str, default: u64) -> Result<u64, Problem> {
    Ok(fields.whole(names, 1, crate::model::fields::MAX_POSITIONS)?.unwrap_or(default))
}

/// A window in tokens where a missing field means `default` and `null` means none.
pub(crate) fn window(fields: Fields<'_>, default: Option<u64>) -> Result<Option<u64>, Problem> {
    fields.optional("sliding_window", MAX_SIZE << 16, default)
}
