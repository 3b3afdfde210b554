//! Whether the Scenario or the checkpoint decides how weights are stored.

use crate::memory::WeightsSpec;
use crate::model::{Model, Quantization};
use crate::units::Message;

/// The scheme that applies, and what a person should know about where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective<'a> {
    /// The scheme; `None` where every tensor keeps the dtype.
    pub quantization: Option<&'a Quantization>,
    /// Why, where the Scenario and the checkpoint do not simply agree.
    pub note: Option<Message>,
}

/// The quantisation that applies: the Scenario's where it names one, else what the checkpoint's own
/// `quantization_config` declares (that is what an engine loads), else none.
///
/// Formula: spec ?? checkpoint ?? none.
/// Accuracy: exact.
/// Source: engines load a checkpoint as its `quantization_config` says when no scheme is asked for.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::{WeightsSpec, weights::effective_quantization};
/// use oom_ledger_core::model::{Model, Quantization};
/// let config = serde_json::json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
///     "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
///     "vocab_size": 1000, "quantization_config": {"quant_method": "awq", "bits": 4}});
/// let model = Model::from_config("mine", &config).unwrap();
/// let spec = WeightsSpec::default();
/// let effective = effective_quantization(&model, &spec);
/// assert_eq!(effective.quantization, Some(&Quantization::AwqInt4));
/// assert!(effective.note.is_some());
/// ```
pub fn effective_quantization<'a>(model: &'a Model, spec: &'a WeightsSpec) -> Effective<'a> {
    let note = |id, scheme: &Quantization| Some(Message::new(id).with("scheme", scheme.id()));
    match (&spec.quantization, &model.quantization) {
        // The file itself says how its tensors are stored; it needs no rule for what a scheme would make of them.
        (asked, own) if spec.file.is_some() && (asked.is_none() || asked == own) => {
            Effective { quantization: own.as_ref(), note: None }
        }
        (Some(asked), Some(own)) if asked != own => Effective {
            quantization: Some(asked),
            note: Some(
                Message::new("weights.quantization_replaces")
                    .with("scheme", asked.id())
                    .with("declared", own.id()),
            ),
        },
        (Some(asked), _) => {
            let nothing = asked == &Quantization::Mxfp4 && !model.tensors.iter().any(|g| g.expert);
            let note = if nothing { note("weights.experts_only", asked) } else { None };
            Effective { quantization: Some(asked), note }
        }
        (None, Some(own)) => {
            Effective { quantization: Some(own), note: note("weights.quantization_declared", own) }
        }
        (None, None) => Effective { quantization: None, note: None },
    }
}
