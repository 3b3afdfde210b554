//! Where a config drops activations at random while training.

use super::types::Dropout;
use serde_json::{Map, Value};

/// Field names of one place, and the model types whose class drops there by default.
type Place = (&'static [&'static str], &'static [&'static str]);

const ATTENTION: Place = (&["attention_dropout", "attn_pdrop", "attn_dropout"], &["gpt2"]);
const RESIDUAL: Place =
    (&["residual_dropout", "resid_pdrop", "hidden_dropout", "resid_dropout", "dropout"], &["gpt2", "opt"]);
const EMBEDDING: Place = (&["embedding_dropout", "embd_pdrop", "embed_dropout"], &["gpt2"]);

/// The dropouts of a config whose probability is not zero. A field left out means the class's default: 0.1 for
/// GPT-2 and OPT, 0 elsewhere.
pub(super) fn dropout(
    model_type: &str,
    map: &Map<String, Value>,
    inner: Option<&Map<String, Value>>,
) -> Dropout {
    let active = |(names, on): Place| {
        let given =
            names.iter().find_map(|n| inner.and_then(|m| m.get(*n)).or_else(|| map.get(*n))?.as_f64());
        given.map_or(on.contains(&model_type), |p| p > 0.0)
    };
    Dropout { attention: active(ATTENTION), residual: active(RESIDUAL), embedding: active(EMBEDDING) }
}
