//! Finds a figure in a result by its dotted path.

use serde_json::Value;

/// The value at `path` in a result document, e.g. `kv.blocks` or `terms.weights.bytes`: an element of an array
/// is named by its `id`.
///
/// ```
/// use oom_ledger_core::share::lookup;
/// let result = serde_json::json!({"terms": [{"id": "weights", "bytes": 5}]});
/// assert_eq!(lookup(&result, "terms.weights.bytes").unwrap(), 5);
/// assert!(lookup(&result, "terms.logits.bytes").is_none());
/// ```
pub fn lookup<'a>(result: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(result, |at, name| match at {
        Value::Object(map) => map.get(name),
        Value::Array(all) => all.iter().find(|item| item.get("id").is_some_and(|id| id == name)),
        _ => None,
    })
}
