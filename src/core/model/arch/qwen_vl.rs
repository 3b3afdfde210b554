//! Qwen 3 VL and Qwen 3.5: the tower of Qwen 3 before a language model with per-head norms.

use super::llama::{Defaults, QWEN3, qwen3_in};
use super::moe::{QWEN2_MOE, qwen3_moe_in};
use super::parts::Root;
use super::qwen3_next::{qwen3_5_in, qwen3_5_moe_in};
use super::vision::{part, qwen3};
use crate::model::Model;
use crate::model::fields::Fields;
use crate::units::Problem;

const ROOT: Root = Root { model: "model.language_model.", head: "lm_head" };

/// Layers whose features are merged deep: the length of the list, three in the class's default.
fn deepstack(vision: Fields<'_>) -> Result<u64, Problem> {
    Ok(vision.numbers("deepstack_visual_indexes")?.map_or(3, |list| list.len().min(4096) as u64))
}

fn wrap(f: Fields<'_>, mut model: Model, deepstack: u64) -> Result<Model, Problem> {
    let (tensors, encoder) = qwen3(part(f, "vision_config")?, deepstack)?;
    model.tensors.splice(0..0, tensors);
    model.vision = Some(encoder);
    Ok(model)
}

/// The wrapper ties, not the text part.
fn tied(f: Fields<'_>) -> Result<Option<bool>, Problem> {
    Ok(Some(f.flag("tie_word_embeddings", false)?))
}

pub(crate) fn qwen3_vl(f: Fields<'_>) -> Result<Model, Problem> {
    let defaults = Defaults { model_type: "qwen3_vl_text", positions: 128_000, ..QWEN3 };
    let model = qwen3_in(part(f, "text_config")?, ROOT, &defaults, tied(f)?)?;
    wrap(f, model, deepstack(part(f, "vision_config")?)?)
}

pub(crate) fn qwen3_vl_moe(f: Fields<'_>) -> Result<Model, Problem> {
    let defaults = Defaults { model_type: "qwen3_vl_moe_text", positions: 128_000, ..QWEN2_MOE };
    let model = qwen3_moe_in(part(f, "text_config")?, ROOT, &defaults, [60, 4, 1408], tied(f)?)?;
    wrap(f, model, deepstack(part(f, "vision_config")?)?)
}

pub(crate) fn qwen3_5(f: Fields<'_>) -> Result<Model, Problem> {
    wrap(f, qwen3_5_in(part(f, "text_config")?, ROOT, tied(f)?)?, 0)
}

pub(crate) fn qwen3_5_moe(f: Fields<'_>) -> Result<Model, Problem> {
    wrap(f, qwen3_5_moe_in(part(f, "text_config")?, ROOT, tied(f)?)?, 0)
}
