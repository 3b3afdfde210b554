//! What training adds to a class: older decoders whose modelling code serving does not tell apart.
//! Read from the modelling code of transformers 5.24; decided by `model_type`, which names that code.

use crate::engines::transformers::class::{Class, Norm, Placement, Rope, Softmax};
use crate::model::Model;

/// How q, k and v are taken from one fused product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FusedQkv {
    /// Slices: views whose gradients are each as large as the whole.
    Slices,
    /// `split` before the heads are told apart: views whose gradients are joined once (GPT-2).
    Split,
    /// The heads first, then `chunk` inside each (GPT-NeoX).
    Chunked,
    /// By index: copies (Falcon with one key head).
    Picked,
    /// By index, then copied to every query head (Falcon's new decoder).
    Spread,
}

/// In which order a parallel layer sums attention, feed-forward and residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    /// The feed-forward's output takes attention's in place (Falcon).
    InPlace,
    /// Feed-forward and attention, then the residual.
    Blocks,
    /// Residual and attention, then the feed-forward (Cohere).
    Residual,
}

/// A normalisation that only a few classes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnNorm {
    /// fp32, the mean taken off twice, then the weight (Cohere).
    Centred,
    /// `layer_norm` in fp32 without weights (OLMo).
    Bare,
}

/// What a class does beyond [`Class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) qkv: FusedQkv,
    pub(super) sum: Sum,
    /// A table of positions is added to the embedding.
    pub(super) positions: bool,
    /// Softmax runs in the dtype of the scores.
    pub(super) low_softmax: bool,
    /// Normalisation, where the class's is one of its own.
    pub(super) norm: Option<OwnNorm>,
}

/// Classes whose training step was compared with a counted one.
const TRACED: &[&str] =
    &["gpt2", "gpt_neox", "phi", "stablelm", "gemma", "smollm3", "granite", "cohere", "cohere2", "olmo"];

/// The class of a model, refined, with its style.
pub(super) fn style(model: &Model) -> (Class, Style) {
    let mut class = Class::of(model);
    let kind = model.model_type.as_str();
    if matches!(kind, "gpt2" | "gpt_neox" | "gptj" | "phi" | "stablelm" | "opt" | "bloom") {
        class.norm = Norm::Fused;
    }
    match kind {
        "gpt_neox" => class.placement = Placement::Parallel { norms: 2 },
        "phi" | "gptj" | "cohere" | "cohere2" => class.placement = Placement::Parallel { norms: 1 },
        "glm4" => class.placement = Placement::Sandwich,
        _ => {}
    }
    if matches!(kind, "cohere" | "cohere2") && class.rope == Rope::Half {
        class.rope = Rope::HalfFp32;
    }
    class.traced |= TRACED.contains(&kind);
    let qkv = match kind {
        _ if model.hf_caches_all_heads => FusedQkv::Spread,
        _ if class.always_masked => FusedQkv::Picked,
        "gpt2" => FusedQkv::Split,
        "gpt_neox" => FusedQkv::Chunked,
        _ => FusedQkv::Slices,
    };
    let sum = match kind {
        "falcon" => Sum::InPlace,
        "cohere" | "cohere2" => Sum::Residual,
        _ => Sum::Blocks,
    };
    let style = Style {
        qkv,
        sum,
        positions: matches!(kind, "gpt2" | "opt"),
        low_softmax: kind == "gpt2" || class.softmax == Softmax::ModelDtypeHoldingScores,
        norm: match kind {
            "cohere" | "cohere2" => Some(OwnNorm::Centred),
            "olmo" => Some(OwnNorm::Bare),
            _ => None,
        },
    };
    (class, style)
}
