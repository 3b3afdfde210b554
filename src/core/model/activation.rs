//! Which activation a feed-forward runs, as far as memory sees it.

use super::types::Activation;
use serde_json::{Map, Value};

const NAMES: &[&str] = &["activation_function", "hidden_activation", "hidden_act", "ffn_act_fn"];

/// The activation of a config; a field left out means the class's default.
pub(super) fn activation(
    model_type: &str,
    map: &Map<String, Value>,
    inner: Option<&Map<String, Value>>,
) -> Activation {
    let given = NAMES.iter().find_map(|n| inner.and_then(|m| m.get(*n)).or_else(|| map.get(*n))?.as_str());
    let default = match model_type {
        "gpt2" | "gptj" | "phi" => "gelu_new",
        "opt" => "relu",
        "nemotron" | "nemotron_h" => "relu2",
        _ => "silu",
    };
    match given.unwrap_or(default) {
        "gelu_new" => Activation::GeluNew,
        "relu" => Activation::Relu,
        "relu2" => Activation::ReluSquared,
        _ => Activation::Fused,
    }
}
