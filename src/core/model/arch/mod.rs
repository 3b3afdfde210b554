//! One row per architecture: which configs it reads, and the builder of its tensors.

mod llama;
mod parts;

use super::Model;
use super::fields::Fields;
use crate::units::Problem;

/// One supported architecture.
pub struct Architecture {
    /// `model_type` of its config.
    pub model_type: &'static str,
    /// HF classes that build exactly these tensors; the first is assumed where the config names none.
    pub classes: &'static [&'static str],
    pub(super) build: for<'a> fn(Fields<'a>) -> Result<Model, Problem>,
}

impl std::fmt::Debug for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Architecture").field("model_type", &self.model_type).finish_non_exhaustive()
    }
}

const fn row(
    model_type: &'static str,
    classes: &'static [&'static str],
    build: for<'a> fn(Fields<'a>) -> Result<Model, Problem>,
) -> Architecture {
    Architecture { model_type, classes, build }
}

/// Every supported architecture, sorted by `model_type`.
pub const ARCHITECTURES: &[Architecture] = &[
    row("internlm3", &["InternLM3ForCausalLM"], llama::llama),
    row("llama", &["LlamaForCausalLM"], llama::llama),
    row("mistral", &["MistralForCausalLM"], llama::mistral),
    row("qwen2", &["Qwen2ForCausalLM"], llama::qwen2),
    row("qwen3", &["Qwen3ForCausalLM"], llama::qwen3),
];
