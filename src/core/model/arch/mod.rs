//! One row per architecture: which configs it reads, and the builder of its tensors.

mod deepseek;
mod falcon;
mod gemma;
mod gpt;
mod granite_hybrid;
mod jamba;
mod kindred;
mod layer_normed;
mod llama;
mod llama4;
mod mamba;
mod minimax;
mod moe;
mod nemotron_h;
mod parts;
mod phi;
mod post_norm;
mod published;
mod qwen3_next;
mod qwen_vl;
mod starcoder;
mod t5;
mod vision;
mod whisper;
mod wrappers;

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
    row("baichuan", &["BaichuanForCausalLM", "BaiChuanForCausalLM"], published::baichuan),
    row("bloom", &["BloomForCausalLM"], gpt::bloom),
    row("cohere", &["CohereForCausalLM"], kindred::cohere),
    row("cohere2", &["Cohere2ForCausalLM"], kindred::cohere2),
    row("deepseek_v2", &["DeepseekV2ForCausalLM"], deepseek::v2),
    row("deepseek_v3", &["DeepseekV3ForCausalLM"], deepseek::v3),
    row("ernie4_5", &["Ernie4_5ForCausalLM"], kindred::ernie),
    row("exaone4", &["Exaone4ForCausalLM"], post_norm::exaone4),
    row("falcon", &["FalconForCausalLM"], falcon::falcon),
    row("gemma", &["GemmaForCausalLM"], gemma::gemma),
    row("gemma2", &["Gemma2ForCausalLM"], gemma::gemma2),
    row("gemma3", &["Gemma3ForConditionalGeneration"], wrappers::gemma3),
    row("gemma3_text", &["Gemma3ForCausalLM"], gemma::gemma3_text),
    row("glm", &["GlmForCausalLM"], kindred::glm),
    row("glm4", &["Glm4ForCausalLM"], kindred::glm4),
    row("glm4_moe", &["Glm4MoeForCausalLM"], moe::glm4_moe),
    row("glm4_moe_lite", &["Glm4MoeLiteForCausalLM"], deepseek::glm4_moe_lite),
    row("gpt2", &["GPT2LMHeadModel"], gpt::gpt2),
    row("gpt_neox", &["GPTNeoXForCausalLM"], gpt::gpt_neox),
    row("gpt_oss", &["GptOssForCausalLM"], moe::gpt_oss),
    row("gptj", &["GPTJForCausalLM"], gpt::gptj),
    row("granite", &["GraniteForCausalLM"], kindred::granite),
    row("granitemoe", &["GraniteMoeForCausalLM"], kindred::granite_moe),
    row("granitemoehybrid", &["GraniteMoeHybridForCausalLM"], granite_hybrid::granite_hybrid),
    row("hunyuan_v1_dense", &["HunYuanDenseV1ForCausalLM"], kindred::hunyuan_dense),
    row("internlm2", &["InternLM2ForCausalLM"], published::internlm2),
    row("internlm3", &["InternLM3ForCausalLM"], llama::internlm3),
    row("jamba", &["JambaForCausalLM"], jamba::jamba),
    row("kimi_k2", &["DeepseekV3ForCausalLM"], deepseek::v3),
    row("llama", &["LlamaForCausalLM"], llama::llama),
    row("llama4", &["Llama4ForConditionalGeneration"], llama4::with_vision),
    row("llama4_text", &["Llama4ForCausalLM"], llama4::text),
    row("llava", &["LlavaForConditionalGeneration"], wrappers::llava),
    row("minimax", &["MiniMaxForCausalLM", "MiniMaxText01ForCausalLM"], minimax::minimax),
    row("minimax_m2", &["MiniMaxM2ForCausalLM"], moe::minimax_m2),
    row("ministral3", &["Ministral3ForCausalLM"], kindred::ministral3),
    row("mistral", &["MistralForCausalLM"], llama::mistral),
    row("mistral3", &["Mistral3ForConditionalGeneration"], wrappers::mistral3),
    row("mixtral", &["MixtralForCausalLM"], moe::mixtral),
    row("mpt", &["MptForCausalLM", "MPTForCausalLM"], falcon::mpt),
    row("nemotron", &["NemotronForCausalLM"], layer_normed::nemotron),
    row("nemotron_h", &["NemotronHForCausalLM"], nemotron_h::nemotron_h),
    row("olmo", &["OlmoForCausalLM"], kindred::olmo),
    row("olmo2", &["Olmo2ForCausalLM"], post_norm::olmo2),
    row("olmo3", &["Olmo3ForCausalLM"], post_norm::olmo3),
    row("olmoe", &["OlmoeForCausalLM"], kindred::olmoe),
    row("opt", &["OPTForCausalLM"], gpt::opt),
    row("phi", &["PhiForCausalLM"], gpt::phi),
    row("phi3", &["Phi3ForCausalLM"], phi::phi3),
    row("qwen2", &["Qwen2ForCausalLM"], llama::qwen2),
    row("qwen2_5_vl", &["Qwen2_5_VLForConditionalGeneration"], wrappers::qwen2_5_vl),
    row("qwen2_moe", &["Qwen2MoeForCausalLM"], moe::qwen2_moe),
    row("qwen3", &["Qwen3ForCausalLM"], llama::qwen3),
    row("qwen3_5", &["Qwen3_5ForConditionalGeneration"], qwen_vl::qwen3_5),
    row("qwen3_5_moe", &["Qwen3_5MoeForConditionalGeneration"], qwen_vl::qwen3_5_moe),
    row("qwen3_5_moe_text", &["Qwen3_5MoeForCausalLM"], qwen3_next::qwen3_5_moe),
    row("qwen3_5_text", &["Qwen3_5ForCausalLM"], qwen3_next::qwen3_5),
    row("qwen3_moe", &["Qwen3MoeForCausalLM"], moe::qwen3_moe),
    row("qwen3_next", &["Qwen3NextForCausalLM"], qwen3_next::qwen3_next),
    row("qwen3_vl", &["Qwen3VLForConditionalGeneration"], qwen_vl::qwen3_vl),
    row("qwen3_vl_moe", &["Qwen3VLMoeForConditionalGeneration"], qwen_vl::qwen3_vl_moe),
    row("seed_oss", &["SeedOssForCausalLM"], kindred::seed_oss),
    row("smollm3", &["SmolLM3ForCausalLM"], kindred::smollm3),
    row("stablelm", &["StableLmForCausalLM"], layer_normed::stablelm),
    row("starcoder2", &["Starcoder2ForCausalLM"], starcoder::starcoder2),
    row("t5", &["T5ForConditionalGeneration"], t5::t5),
    row("whisper", &["WhisperForConditionalGeneration"], whisper::whisper),
];
