//! From a config to a [`Model`]: find the architecture, build its tensors, check and sum them.

use super::arch::{ARCHITECTURES, Architecture};
use super::fields::Fields;
use super::merge::{TEXT_CONFIGS, merged};
use super::quantization_config::{declared_dtype, declared_quantization};
use super::{MlpKind, Model, parse_json};
use crate::units::{Message, Overflow, Problem};
use serde_json::{Map, Value};

/// Most parameters accepted: bytes and per-token products of them stay in 64 bits.
const MAX_PARAMETERS: u64 = 1 << 53;

impl Model {
    /// The model that a Hugging Face `config.json` describes.
    ///
    /// ```
    /// use oom_ledger_core::model::Model;
    /// let config = serde_json::json!({
    ///     "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    ///     "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    ///     "num_key_value_heads": 8, "vocab_size": 128256
    /// });
    /// assert_eq!(Model::from_config("mine", &config).unwrap().parameters, 8_030_261_248);
    /// ```
    ///
    /// Errors: not a model's config, an architecture that is not modelled, or a field out of range; each names
    /// the field, what was given and what is accepted.
    pub fn from_config(name: &str, config: &Value) -> Result<Model, Problem> {
        Model::from_config_with(name, config, &Map::new())
    }

    /// Like [`Model::from_config`], with fields of the config replaced, e.g. `{"num_hidden_layers": 4}`.
    pub fn from_config_with(
        name: &str,
        config: &Value,
        overrides: &Map<String, Value>,
    ) -> Result<Model, Problem> {
        let Some(map) = config.as_object() else {
            return Err(Problem::new("model.config", Message::new("model.not_an_object")));
        };
        if overrides.is_empty() {
            return build(name, map);
        }
        build(name, &merged(map, overrides))
    }

    /// Like [`Model::from_config`], from the text of the file.
    pub fn from_config_text(name: &str, text: &str) -> Result<Model, Problem> {
        Model::from_config(name, &parse_json("model.config", text)?)
    }
}

fn build(name: &str, map: &Map<String, Value>) -> Result<Model, Problem> {
    let fields = Fields::new(map, "");
    let (architecture, class) = find(fields)?;
    let mut model = (architecture.build)(fields)?;
    name.clone_into(&mut model.name);
    class.clone_into(&mut model.class);
    let inner = TEXT_CONFIGS
        .iter()
        .find_map(|key| map.get(*key)?.as_object())
        .map(|m| Fields::new(m, "text_config."));
    model.dtype = declared_dtype(fields).or_else(|| inner.and_then(declared_dtype));
    model.quantization = declared_quantization(fields)?;
    sum(&mut model)?;
    let part = TEXT_CONFIGS.iter().find_map(|key| map.get(*key)?.as_object());
    model.rotary_table_elements = super::rotary::table_elements(&model, map, part);
    model.longest_positions = super::rotary::longest(&model, map, part);
    model.rotary_factor_tables = super::rotary::factor_tables(map, part);
    model.rotary_dim = super::rotary::rotated(&model, map, part);
    model.activation = super::activation::activation(&model.model_type, map, part);
    model.dropout = super::dropout::dropout(&model.model_type, map, part);
    model.notes = notes(&model, fields, inner);
    Ok(model)
}

/// Fields without which a config describes a model only through its class's defaults.
const ESSENTIAL: &[&str] = &[
    "hidden_size|n_embd|n_embed|d_model",
    "num_hidden_layers|n_layer|n_layers|num_layers|decoder_layers|hybrid_override_pattern|layers_block_type",
    "num_attention_heads|n_head|n_heads|num_heads|decoder_attention_heads",
    "vocab_size",
];

fn notes(model: &Model, fields: Fields<'_>, inner: Option<Fields<'_>>) -> Vec<Message> {
    let written = |names: &str| fields.has(names) || inner.is_some_and(|part| part.has(names));
    let missing: Vec<_> = ESSENTIAL
        .iter()
        .filter(|names| !written(names))
        .filter_map(|names| names.split('|').next())
        .collect();
    let mut notes = Vec::new();
    if !missing.is_empty() {
        let message = Message::new("model.note_defaults");
        notes.push(message.with("fields", missing.join(", ")).with("class", model.class.clone()));
    }
    if model.mtp_layers > 0 {
        notes.push(Message::new("model.note_mtp").with("layers", model.mtp_layers));
    }
    notes
}

/// The row of the architecture: by class where the config names one, else by `model_type`.
fn find(fields: Fields<'_>) -> Result<(&'static Architecture, &str), Problem> {
    let model_type = fields.text("model_type");
    let classes = fields.texts("architectures")?.unwrap_or_default();
    if let Some(class) = classes.first() {
        if let Some(row) = ARCHITECTURES.iter().find(|row| row.classes.contains(class)) {
            return Ok((row, class));
        }
        let of_type = ARCHITECTURES.iter().find(|row| Some(row.model_type) == model_type);
        return Err(match of_type {
            Some(row) => other_class(class, row),
            None => unsupported("architectures", class, map_hint(fields)),
        });
    }
    let Some(model_type) = model_type else {
        return Err(Problem::new("model.config.model_type", not_a_model(fields)));
    };
    ARCHITECTURES
        .iter()
        .find(|row| row.model_type == model_type)
        .map(|row| (row, row.classes.first().copied().unwrap_or_default()))
        .ok_or_else(|| unsupported("model_type", model_type, map_hint(fields)))
}

/// What kind of file this is, where its fields give it away.
fn map_hint(fields: Fields<'_>) -> &'static str {
    let any = |names: &str| fields.value(names).is_some();
    if any("_diffusers_version") {
        "diffusers"
    } else if any("tokenizer_class|added_tokens_decoder|chat_template") && !any("hidden_size|n_embd|d_model")
    {
        "tokenizer"
    } else if any("base_model_name_or_path|peft_type") {
        "peft"
    } else if any("weight_map") {
        "index"
    } else if any("image_processor_type|feature_extractor_type|processor_class")
        && !any("hidden_size|d_model")
    {
        "preprocessor"
    } else if any("transformers_version") && any("do_sample|temperature|top_p") && !any("hidden_size") {
        "generation"
    } else {
        ""
    }
}

fn not_a_model(fields: Fields<'_>) -> Message {
    match map_hint(fields) {
        "diffusers" => Message::new("model.is_diffusers"),
        "tokenizer" => Message::new("model.is_tokenizer"),
        "peft" => Message::new("model.is_adapter"),
        "index" => Message::new("model.is_index"),
        "preprocessor" => Message::new("model.is_preprocessor"),
        "generation" => Message::new("model.is_generation"),
        _ => Message::new("model.no_model_type"),
    }
}

fn unsupported(field: &str, given: &str, hint: &str) -> Problem {
    let given: String = given.chars().take(80).collect();
    let id = if hint == "diffusers" { "model.is_diffusers" } else { "model.unsupported" };
    let accepted: Vec<_> = ARCHITECTURES.iter().map(|row| row.model_type).collect();
    let message = Message::new(id).with("given", given).with("accepted", accepted.join(", "));
    Problem::new(format!("model.config.{field}"), message)
}

/// A class with another head, or another copy of the code, of a model type that is supported.
fn other_class(given: &str, row: &Architecture) -> Problem {
    let message = Message::new("model.unsupported_class")
        .with("given", given.chars().take(80).collect::<String>())
        .with("model_type", row.model_type)
        .with("accepted", row.classes.join(", "));
    Problem::new("model.config.architectures", message)
}

/// Sums parameters and those active per token; every product is checked here.
fn sum(model: &mut Model) -> Result<(), Problem> {
    let moe = model.layers.iter().find_map(|layer| match layer.mlp.kind {
        MlpKind::Moe { experts, top_k, .. } => Some((u128::from(experts), u128::from(top_k))),
        _ => None,
    });
    let (mut total, mut active) = (0u128, 0u128);
    for group in &model.tensors {
        let mut elements = u128::from(group.count);
        for dim in &group.shape {
            elements = elements.checked_mul(u128::from(*dim)).ok_or(Overflow)?;
        }
        total = total.saturating_add(elements);
        active = active.saturating_add(match moe {
            Some((experts, top_k)) if group.expert => elements / experts.max(1) * top_k.min(experts),
            _ => elements,
        });
        if total > u128::from(MAX_PARAMETERS) {
            return Err(Overflow.into());
        }
    }
    model.parameters = total as u64;
    model.active_parameters = active as u64;
    Ok(())
}
