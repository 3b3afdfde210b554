//! From the key and value pairs of a GGUF header to the `config.json` that describes the same model.
//!
//! Source: `set_gguf_parameters` of the classes in convert_hf_to_gguf.py, and `load_hparams` in llama-model.cpp, of
//! <https://github.com/ggml-org/llama.cpp>.

use super::families::{FAMILIES, Family};
use super::{Checkpoint, FIELD, FileTensor, Meta};
use crate::model::Model;
use crate::model::fields::{MAX_LAYERS, MAX_SIZE};
use crate::units::{Bytes, Message, Problem};
use serde_json::{Map, Value, json};

/// How far the elements of a file may be from those of the model made of its metadata, in parts of a thousand:
/// tables (rope_freqs), biases and norms that converters add or leave out are below 1, a wrong width or a missing
/// part of a layer is above 10.
const TOLERANCE: u64 = 5;

/// Reads keys under the name of the architecture.
pub(super) struct Keys<'a> {
    checkpoint: &'a Checkpoint,
    arch: &'a str,
    pub(super) layers: u64,
}

impl<'a> Keys<'a> {
    pub(super) fn value(&self, name: &str) -> Option<&'a Meta> {
        self.checkpoint.metadata.get(&format!("{}.{name}", self.arch))
    }

    /// A number; of a list with one entry per layer, the largest: layers without a part have 0.
    pub(super) fn whole(&self, name: &str) -> Option<u64> {
        let value = self.value(name)?;
        value.whole().or_else(|| value.numbers()?.iter().copied().max())
    }

    /// The list of one number per layer, cut to the layers of the model.
    pub(super) fn list(&self, name: &str) -> Option<Vec<u64>> {
        let all = self.value(name)?.numbers()?;
        Some(all.iter().copied().take(usize::try_from(self.layers).unwrap_or(usize::MAX)).collect())
    }

    pub(super) fn real(&self, name: &str) -> Option<f64> {
        self.value(name)?.real()
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name)?.text()
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&'a FileTensor> {
        self.checkpoint.tensors.iter().find(|t| t.name == name)
    }

    /// Whether any layer has that tensor.
    pub(super) fn any(&self, leaf: &str) -> bool {
        self.checkpoint.tensors.iter().any(|t| {
            let rest = t.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
            rest.is_some_and(|(_, rest)| rest == leaf)
        })
    }

    /// Whether layer `index` has that tensor.
    pub(super) fn layer_has(&self, index: u64, leaf: &str) -> bool {
        self.tensor(&format!("blk.{index}.{leaf}")).is_some()
    }
}

/// The `config.json` of the model in a GGUF file, and the id of its mix where it is one known here.
///
/// Errors: the architecture is not modelled, or the tensors are not those of the model that the metadata
/// describes; either says what the weights take all the same.
pub fn gguf_config(checkpoint: &Checkpoint) -> Result<Value, Problem> {
    let arch = checkpoint.metadata.get("general.architecture").and_then(Meta::text).unwrap_or_default();
    let weights = checkpoint.bytes()?;
    let unknown = |id: &'static str| {
        let accepted: Vec<_> = FAMILIES.iter().map(|family| family.arch).collect();
        let message = Message::new(id).with("given", arch.chars().take(40).collect::<String>());
        let message = message.with("weights", Bytes(weights)).with("accepted", accepted.join(", "));
        Problem::new(FIELD, message)
    };
    let Some(family) = FAMILIES.iter().find(|family| family.arch == arch) else {
        return Err(unknown("checkpoint.arch_unknown"));
    };
    let mut keys = Keys { checkpoint, arch, layers: 0 };
    let needed = |name: &str, most: u64| {
        keys.whole(name).filter(|n| (1..=most).contains(n)).ok_or_else(|| {
            let given = keys.value(name).map_or_else(|| "-".to_owned(), |v| format!("{v:?}"));
            let given: String = given.chars().take(60).collect();
            let message = Message::new("checkpoint.key").with("key", format!("{arch}.{name}"));
            Problem::new(FIELD, message.with("given", given).with("accepted", format!("1 … {most}")))
        })
    };
    let blocks = needed("block_count", MAX_LAYERS)?;
    let hidden = needed("embedding_length", MAX_SIZE)?;
    // Layers that predict further tokens stand at the end and are not part of the stack.
    keys.layers = blocks.saturating_sub(keys.whole("nextn_predict_layers").unwrap_or(0)).max(1);
    let mut map = common(&keys, family, hidden);
    (family.more)(&keys, &mut map);
    let config = Value::Object(map);
    let model = Model::from_config("", &config)?;
    if differs(&model, checkpoint, &keys) {
        return Err(unknown("checkpoint.arch_differs"));
    }
    Ok(config)
}

/// Fields that most families share.
fn common(keys: &Keys<'_>, family: &Family, hidden: u64) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Option<u64>| {
        if let Some(value) = value {
            map.insert(name.to_owned(), value.into());
        }
    };
    let rows = keys.tensor("token_embd.weight").and_then(|t| {
        let (_, rows) = t.shape.split_last()?;
        Some(rows.iter().product()).filter(|n| *n > 0)
    });
    let words = keys.checkpoint.metadata.get("tokenizer.ggml.tokens").and_then(Meta::length);
    let heads = keys.whole("attention.head_count");
    put("hidden_size", Some(hidden));
    put("num_hidden_layers", Some(keys.layers));
    put("vocab_size", rows.or_else(|| keys.whole("vocab_size")).or(words));
    put("num_attention_heads", heads);
    put("num_key_value_heads", keys.whole("attention.head_count_kv").or(heads));
    put("head_dim", keys.whole("attention.key_length"));
    put("intermediate_size", keys.whole("feed_forward_length"));
    put("max_position_embeddings", keys.whole("context_length"));
    put("sliding_window", keys.whole("attention.sliding_window").filter(|n| *n > 0));
    put("num_experts_per_tok", keys.whole("expert_used_count"));
    map.insert("model_type".to_owned(), family.model_type.into());
    map.insert("tie_word_embeddings".to_owned(), keys.tensor("output.weight").is_none().into());
    map.insert("attention_bias".to_owned(), keys.any("attn_q.bias").into());
    map.insert("mlp_bias".to_owned(), keys.any("ffn_up.bias").into());
    if let Some(scaling) = scaling(keys) {
        map.insert("rope_scaling".to_owned(), scaling);
    }
    map
}

/// How positions are stretched: it sizes the rotary tables.
fn scaling(keys: &Keys<'_>) -> Option<Value> {
    if keys.value("rope.dimension_sections").is_some() {
        return Some(json!({"type": "mrope", "mrope_section": []}));
    }
    let original = keys.whole("rope.scaling.original_context_length");
    let long = keys.tensor("rope_factors_long.weight").is_some();
    let kind = if long { "longrope" } else { keys.text("rope.scaling.type").filter(|t| *t != "none")? };
    let factor = keys.real("rope.scaling.factor").filter(|f| f.is_finite());
    let mut map = Map::new();
    map.insert("rope_type".to_owned(), kind.into());
    if let Some(factor) = factor {
        map.insert("factor".to_owned(), factor.into());
    }
    if let Some(original) = original {
        map.insert("original_max_position_embeddings".to_owned(), original.into());
    }
    Some(Value::Object(map))
}

/// Whether the elements of the file's tensors are not those of the model.
fn differs(model: &Model, checkpoint: &Checkpoint, keys: &Keys<'_>) -> bool {
    let of_stack = |tensor: &&FileTensor| {
        let index = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split('.').next());
        index.and_then(|n| n.parse::<u64>().ok()).is_none_or(|n| n < keys.layers)
    };
    let elements = |shape: &[u64]| shape.iter().fold(1u64, |product, dim| product.saturating_mul(*dim));
    let file = checkpoint
        .tensors
        .iter()
        .filter(of_stack)
        .fold(0u64, |sum, tensor| sum.saturating_add(elements(&tensor.shape)));
    let apart = u128::from(file.abs_diff(model.parameters)) * 1000;
    apart > u128::from(model.parameters) * u128::from(TOLERANCE)
}
