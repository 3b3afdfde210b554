//! What the transformers class of a model does in its forward pass, as far as memory sees it.
//! Read from the modelling code of transformers 5.24; decided by `model_type`, which names that code.

use crate::engines::{AttentionImpl, ServeSettings};
use crate::model::{AttentionKind, Model, TensorClass};

/// How a normalisation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum Norm {
    /// RMSNorm: fp32 copy, normalised copy cast back, then the weight (Llama and most others).
    Rms,
    /// RMSNorm with the weight applied in fp32 before the cast (OLMo 2, gpt-oss).
    RmsWeightFp32,
    /// RMSNorm with `1 + weight`, all in fp32 (Gemma).
    Gemma,
    /// LayerNorm: one fused kernel.
    Fused,
}

/// Where the norms of a layer sit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum Placement {
    /// Before attention and before the feed-forward.
    Pre,
    /// After each, before the residual is added (OLMo 2, EXAONE 4).
    Post,
    /// Before and after each (Gemma 2 and 3).
    Sandwich,
    /// One or two norms, then attention and feed-forward side by side (Falcon).
    Parallel {
        /// Norms of the layer.
        norms: u64,
    },
}

/// How positions are rotated in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum Rope {
    /// Not at all.
    None,
    /// `q * cos + rotate_half(q) * sin`.
    Half,
    /// The same with cos and sin in fp32, then cast back (OLMo 2).
    HalfFp32,
    /// The same on a part of the head, joined with the rest (Phi-3).
    HalfJoined,
    /// Two halves rotated apart and joined (gpt-oss, DeepSeek V3).
    Split,
    /// Complex multiplication in fp32 (DeepSeek V2, Llama 4).
    Complex,
}

/// How softmax and scores run in eager attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum Softmax {
    /// fp32, then cast back.
    Fp32,
    /// In the model's dtype, the unmasked scores still held (Falcon).
    ModelDtypeHoldingScores,
}

/// How q and k are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum QkNorm {
    /// Each right after its projection, per head or over the full width.
    Interleaved,
    /// Both after all three projections (Gemma 3).
    AfterProjections,
}

/// The class.
#[derive(Clone, Copy, Debug)]
pub(in crate::engines) struct Class {
    pub(in crate::engines) norm: Norm,
    pub(in crate::engines) placement: Placement,
    pub(in crate::engines) rope: Rope,
    pub(in crate::engines) softmax: Softmax,
    pub(in crate::engines) qk_norm: QkNorm,
    /// q, k and v come out of one matrix whose output stays alive through attention.
    pub(in crate::engines) fused_qkv: bool,
    /// The embedding is multiplied by a scale, a new tensor.
    pub(in crate::engines) scaled_embedding: bool,
    /// sdpa gets a mask even where the causal flag would do (Falcon).
    pub(in crate::engines) always_masked: bool,
    /// The layer returns its attention weights, so one layer's survive into the next (Falcon, MPT).
    pub(in crate::engines) returns_weights: bool,
    /// Routing weights stay in fp32 through the experts' combination.
    pub(in crate::engines) fp32_combine: bool,
    /// The router runs in fp32 on a cast of its input.
    pub(in crate::engines) fp32_router: bool,
    /// Experts have biases and a clamped activation (gpt-oss).
    pub(in crate::engines) biased_experts: bool,
    /// Every expert sees every token (Llama 4).
    pub(in crate::engines) dense_experts: bool,
    /// Small buffers registered beside the parameters (rotary frequencies), each one 512-byte block.
    pub(in crate::engines) buffers: u64,
    /// Tables of cos and sin alive through the pass: one per kind of rotary embedding.
    pub(in crate::engines) rope_tables: u64,
    /// The class has no sdpa: soft-capped scores, a sink column, or position biases (MPT).
    pub(in crate::engines) without_sdpa: bool,
    /// The class is known: its stages were checked against traces.
    pub(in crate::engines) traced: bool,
}

/// Classes whose stages were checked against traces of the real code.
const TRACED: &[&str] = &[
    "deepseek_v2",
    "deepseek_v3",
    "exaone4",
    "falcon",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "glm4_moe",
    "gpt_oss",
    "internlm3",
    "llama",
    "minimax_m2",
    "mistral",
    "mixtral",
    "mpt",
    "olmo2",
    "olmo3",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "starcoder2",
];

impl Class {
    pub(in crate::engines) fn of(model: &Model) -> Class {
        let kind = model.model_type.as_str();
        let norm = match kind {
            "gemma" | "gemma2" | "gemma3" | "gemma3_text" | "qwen3_next" => Norm::Gemma,
            "olmo2" | "olmo3" | "gpt_oss" => Norm::RmsWeightFp32,
            "falcon" | "starcoder2" | "mpt" | "gpt2" => Norm::Fused,
            _ => Norm::Rms,
        };
        let placement = match kind {
            "gemma2" | "gemma3" | "gemma3_text" => Placement::Sandwich,
            "olmo2" | "olmo3" | "exaone4" => Placement::Post,
            "falcon" => falcon_placement(model),
            _ => Placement::Pre,
        };
        let rotated = model.layers.iter().any(|l| l.attention.rope);
        let rope = match kind {
            _ if !rotated => Rope::None,
            "olmo2" | "olmo3" => Rope::HalfFp32,
            "phi3" => Rope::HalfJoined,
            "gpt_oss" | "deepseek_v3" | "kimi_k2" => Rope::Split,
            "deepseek_v2" | "llama4" | "llama4_text" => Rope::Complex,
            _ => Rope::Half,
        };
        let two_tables = matches!(kind, "gemma3" | "gemma3_text" | "olmo3") && kinds_of_attention(model) > 1;
        let gemma3 = matches!(kind, "gemma3" | "gemma3_text");
        Class {
            norm,
            placement,
            rope,
            softmax: if kind == "falcon" { Softmax::ModelDtypeHoldingScores } else { Softmax::Fp32 },
            qk_norm: if gemma3 { QkNorm::AfterProjections } else { QkNorm::Interleaved },
            fused_qkv: model.tensors.iter().any(|t| t.class == TensorClass::AttentionQkv),
            scaled_embedding: matches!(kind, "gemma" | "gemma2" | "gemma3" | "gemma3_text"),
            always_masked: kind == "falcon",
            returns_weights: matches!(kind, "falcon" | "mpt"),
            fp32_combine: !matches!(
                kind,
                "qwen3_moe" | "qwen2_moe" | "qwen3_next" | "gpt_oss" | "llama4" | "llama4_text"
            ),
            fp32_router: matches!(kind, "deepseek_v2" | "deepseek_v3" | "kimi_k2" | "glm4_moe"),
            biased_experts: kind == "gpt_oss",
            dense_experts: matches!(kind, "llama4" | "llama4_text"),
            buffers: match kind {
                _ if !rotated => 0,
                "gemma3" | "gemma3_text" => 1 + 2 * kinds_of_attention(model) as u64,
                "gemma2" | "gemma" => 3,
                _ => 2,
            },
            rope_tables: if rope == Rope::None {
                0
            } else if two_tables {
                2
            } else {
                1
            },
            without_sdpa: model.attention_softcap || model.attention_sinks || kind == "mpt",
            traced: TRACED.contains(&kind),
        }
    }
}

impl Class {
    /// The kernel that really runs: some classes have no sdpa.
    pub(in crate::engines) fn attention(&self, serve: &ServeSettings) -> AttentionImpl {
        match serve.attention.unwrap_or_default() {
            AttentionImpl::Sdpa if self.without_sdpa => AttentionImpl::Eager,
            other => other,
        }
    }
}

fn kinds_of_attention(model: &Model) -> usize {
    let sliding = model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Sliding { .. }));
    let full = model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Full { .. }));
    usize::from(sliding) + usize::from(full)
}

/// Falcon's variants differ in the norms their layers own.
fn falcon_placement(model: &Model) -> Placement {
    let has = |name: &str| model.tensors.iter().any(|t| t.name.contains(name));
    if has("post_attention_layernorm") {
        Placement::Pre
    } else if has("ln_attn") {
        Placement::Parallel { norms: 2 }
    } else {
        Placement::Parallel { norms: 1 }
    }
}
