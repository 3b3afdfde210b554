//! Vision-language wrappers: a tower and a projector before a language model.

use super::gemma::gemma3_in;
use super::kindred::ministral3_in;
use super::llama::{Defaults, LLAMA, QWEN2, llama_in, mistral_in, qwen2_in};
use super::parts::Root;
use super::vision::{Tower, clip, part, pixtral, qwen2_5, siglip};
use crate::model::Model;
use crate::model::fields::{Fields, MAX_SIZE};
use crate::model::tensors::Scope;
use crate::units::Problem;
use serde_json::Value;

const ROOT: Root = Root { model: "model.language_model.", head: "lm_head" };

const QWEN2_5_VL: Defaults = Defaults {
    model_type: "qwen2_5_vl",
    vocab: 152_064,
    hidden: 8192,
    intermediate: 29568,
    layers: 80,
    heads: 64,
    kv_heads: Some(8),
    positions: 32768,
    ..LLAMA
};

pub(crate) fn gemma3(f: Fields<'_>) -> Result<Model, Problem> {
    let tied = f.flag("tie_word_embeddings", true)?;
    let mut model = gemma3_in(part(f, "text_config")?, ROOT, Some(tied))?;
    let tokens = f.whole("mm_tokens_per_image", 1, MAX_SIZE)?.unwrap_or(256);
    let (mut t, encoder) = siglip(part(f, "vision_config")?, "model.vision_tower.", Some(tokens))?;
    let projector = Scope::root("model.multi_modal_projector.");
    let mut tower = Tower { t: &mut t };
    tower.add(&projector, "mm_input_projection_weight", &[encoder.hidden_size, model.hidden_size]);
    tower.add(&projector, "mm_soft_emb_norm.weight", &[encoder.hidden_size]);
    model.tensors.splice(0..0, t.groups);
    model.vision = Some(encoder);
    Ok(model)
}

pub(crate) fn llava(f: Fields<'_>) -> Result<Model, Problem> {
    let text = part(f, "text_config")?;
    let tied = f.flag("tie_word_embeddings", false)? || text.flag("tie_word_embeddings", false)?;
    let mut model = match text.text("model_type").unwrap_or("llama") {
        "llama" => llama_in(text, ROOT, Some(tied))?,
        "mistral" => mistral_in(text, ROOT, Some(tied))?,
        "qwen2" => qwen2_in(text, ROOT, &QWEN2, Some(tied))?,
        other => return Err(text.problem("model_type", &Value::from(other), "llama, mistral, qwen2")),
    };
    let vision = part(f, "vision_config")?;
    let (mut t, encoder) = match vision.text("model_type").unwrap_or("clip_vision_model") {
        "clip_vision_model" => clip(vision, "model.vision_tower.")?,
        "siglip_vision_model" => siglip(vision, "model.vision_tower.", None)?,
        other => {
            let accepted = "clip_vision_model, siglip_vision_model";
            return Err(vision.problem("model_type", &Value::from(other), accepted));
        }
    };
    // Several feature layers are concatenated before the projector.
    let features = match f.value("vision_feature_layer") {
        Some((_, Value::Array(list))) => list.len().clamp(1, 64) as u64,
        _ => 1,
    };
    let bias = f.flag("multimodal_projector_bias", true)?;
    let (projector, hidden) = (Scope::root("model.multi_modal_projector."), model.hidden_size);
    let mut tower = Tower { t: &mut t };
    tower.column(&projector, "linear_1", [hidden, encoder.hidden_size * features], bias);
    tower.row(&projector, "linear_2", [hidden, hidden], bias);
    model.tensors.splice(0..0, t.groups);
    model.vision = Some(encoder);
    Ok(model)
}

/// Mistral Small 3.1 and later: Pixtral's tower, a merger of patches, a projector.
pub(crate) fn mistral3(f: Fields<'_>) -> Result<Model, Problem> {
    let text = part(f, "text_config")?;
    if text.is_empty() {
        return Err(f.problem("text_config", &Value::Null, "{\"model_type\": \"mistral\", …}"));
    }
    let tied = f.flag("tie_word_embeddings", true)?;
    let mut model = match text.text("model_type").unwrap_or("mistral") {
        "mistral" => mistral_in(text, ROOT, Some(tied))?,
        "ministral3" => ministral3_in(text, ROOT, Some(tied))?,
        other => return Err(text.problem("model_type", &Value::from(other), "mistral, ministral3")),
    };
    let merge = f.whole("spatial_merge_size", 1, 256)?.unwrap_or(2);
    let vision = part(f, "vision_config")?;
    let (mut t, mut encoder) = pixtral(vision, "model.vision_tower.")?;
    encoder.tokens_per_image = encoder.patches / (merge * merge);
    let features = match f.value("vision_feature_layer") {
        Some((_, Value::Array(list))) => list.len().clamp(1, 64) as u64,
        _ => 1,
    };
    let bias = f.flag("multimodal_projector_bias", false)?;
    let (projector, hidden, width) =
        (Scope::root("model.multi_modal_projector."), model.hidden_size, encoder.hidden_size);
    let mut tower = Tower { t: &mut t };
    tower.add(&projector, "norm.weight", &[width]);
    tower.add(&projector, "patch_merger.merging_layer.weight", &[width, width * merge * merge]);
    tower.column(&projector, "linear_1", [hidden, width * features], bias);
    tower.row(&projector, "linear_2", [hidden, hidden], bias);
    model.tensors.splice(0..0, t.groups);
    model.vision = Some(encoder);
    Ok(model)
}

/// Qwen 2.5 VL writes the language model's fields flat, newer files in `text_config`.
pub(crate) fn qwen2_5_vl(f: Fields<'_>) -> Result<Model, Problem> {
    let text = if f.object("text_config").is_some() { part(f, "text_config")? } else { f };
    let tied = f.flag("tie_word_embeddings", false)? || text.flag("tie_word_embeddings", false)?;
    let mut model = qwen2_in(text, ROOT, &QWEN2_5_VL, Some(tied))?;
    let (tensors, encoder) = qwen2_5(part(f, "vision_config")?)?;
    model.tensors.splice(0..0, tensors);
    model.vision = Some(encoder);
    Ok(model)
}
