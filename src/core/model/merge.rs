//! Puts overriding fields into a config, where the config holds them.

use super::fields::MAX_LAYERS;
use serde_json::{Map, Value};

/// Objects in which wrappers keep the language model's fields.
pub(crate) const TEXT_CONFIGS: &[&str] = &["text_config", "llm_config", "language_config"];

/// `config` with each field of `overrides` replaced. In a wrapper config, a field goes where it is already
/// written; one that is written nowhere goes to the language model's part.
pub(crate) fn merged(config: &Map<String, Value>, overrides: &Map<String, Value>) -> Map<String, Value> {
    let mut out = config.clone();
    let inner_name = TEXT_CONFIGS.iter().copied().find(|name| out.get(*name).is_some_and(Value::is_object));
    for (key, value) in overrides {
        let outer = out.contains_key(key) || inner_name.is_none();
        let inner = inner_name.and_then(|name| out.get_mut(name)).and_then(Value::as_object_mut);
        if let Some(inner) = inner
            && (!outer || inner.contains_key(key))
        {
            put(inner, key, value);
        }
        if outer {
            put(&mut out, key, value);
        }
    }
    out
}

fn put(map: &mut Map<String, Value>, key: &str, value: &Value) {
    match (map.get_mut(key), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (k, v) in new {
                put(old, k, v);
            }
        }
        _ => {
            map.insert(key.to_owned(), value.clone());
        }
    }
}

/// The first `layers` entries of a per-layer list, as transformers cuts it for a smaller depth.
pub(crate) fn cut<T>(mut list: Vec<T>, layers: u64) -> Vec<T> {
    list.truncate(layers.min(MAX_LAYERS) as usize);
    list
}
