//! Cos/sin tables of rotary embeddings, as serving engines keep them: one row per position, per kind of layer.

use super::{AttentionKind, Model};
use serde_json::{Map, Value};

/// Elements of the cos/sin tables that a serving engine keeps beside the weights.
///
/// A table covers the positions that the scaling stretches to (linear and dynamic: declared positions times the
/// factor; yarn: the original positions times the factor; longrope: both; mrope: four times), each with as many elements as the
/// rotary dim. A model whose sliding layers have their own base (Gemma 3) keeps an unscaled table for them.
pub(super) fn table_elements(
    model: &Model,
    map: &Map<String, Value>,
    inner: Option<&Map<String, Value>>,
) -> u64 {
    let value = |key: &str| value(map, inner, key);
    let widest = |sliding: bool| {
        widest(model, map, inner, |kind| matches!(kind, AttentionKind::Sliding { .. }) == sliding)
    };
    let positions = model.max_position_embeddings;
    let original = value("original_max_position_embeddings").and_then(Value::as_u64);
    let stretched =
        stretched(positions, value("rope_scaling").or_else(|| value("rope_parameters")), original);
    let (full, sliding) = (widest(false), widest(true));
    // OLMo 3 stretches its full layers only.
    if value("rope_local_base_freq").is_some() || model.model_type.starts_with("olmo3") {
        return stretched.saturating_mul(full).saturating_add(positions.saturating_mul(sliding));
    }
    if full == sliding || full == 0 || sliding == 0 {
        return stretched.saturating_mul(full.max(sliding));
    }
    stretched.saturating_mul(full.saturating_add(sliding))
}

/// The longest length that the config allows: linear and dynamic scaling multiply the positions by the factor, yarn
/// the original ones; the other kinds state the length reached (`_get_and_verify_max_len` of vLLM).
pub(super) fn longest(model: &Model, map: &Map<String, Value>, inner: Option<&Map<String, Value>>) -> u64 {
    let value = |key: &str| value(map, inner, key);
    let positions = model.max_position_embeddings;
    let scaling = value("rope_scaling").or_else(|| value("rope_parameters"));
    let kind = scaling.and_then(|s| s.get("rope_type").or_else(|| s.get("type"))).and_then(Value::as_str);
    match kind {
        Some("linear" | "dynamic" | "yarn" | "deepseek_yarn") => {
            let original = value("original_max_position_embeddings").and_then(Value::as_u64);
            stretched(positions, scaling, original).max(positions)
        }
        _ => positions,
    }
}

/// Elements of a head that rotary embedding turns: the widest of the model's layers.
pub(super) fn rotated(model: &Model, map: &Map<String, Value>, inner: Option<&Map<String, Value>>) -> u64 {
    widest(model, map, inner, |_| true)
}

/// Tables of factors by which frequencies are scaled one by one.
pub(super) fn factor_tables(map: &Map<String, Value>, inner: Option<&Map<String, Value>>) -> u64 {
    let scaling = value(map, inner, "rope_scaling").or_else(|| value(map, inner, "rope_parameters"));
    let kind = scaling.and_then(|s| s.get("rope_type").or_else(|| s.get("type"))).and_then(Value::as_str);
    match kind {
        Some("llama3") => 1,
        Some("longrope" | "su") => 2,
        _ => 0,
    }
}

/// A field of the language part, or of the whole.
fn value<'m>(
    map: &'m Map<String, Value>,
    inner: Option<&'m Map<String, Value>>,
    key: &str,
) -> Option<&'m Value> {
    let given = |m: &'m Map<String, Value>| m.get(key).filter(|v| !v.is_null());
    inner.and_then(given).or_else(|| given(map))
}

/// The widest rotary dim of the layers that `wanted` names.
fn widest(
    model: &Model,
    map: &Map<String, Value>,
    inner: Option<&Map<String, Value>>,
    wanted: impl Fn(&AttentionKind) -> bool,
) -> u64 {
    let value = |key: &str| value(map, inner, key);
    // Since transformers 5 the share stands inside `rope_parameters`.
    let nested = value("rope_parameters").and_then(|p| p.get("partial_rotary_factor"));
    let share = ["partial_rotary_factor", "rotary_pct", "rope_pct"]
        .iter()
        .find_map(|k| value(k)?.as_f64())
        .or_else(|| nested?.as_f64())
        .filter(|s| *s > 0.0 && *s <= 1.0)
        .unwrap_or(1.0);
    let given = value("rotary_dim").and_then(Value::as_u64);
    let dim = |kind: &AttentionKind| match *kind {
        AttentionKind::Full { head_dim, .. }
        | AttentionKind::Sliding { head_dim, .. }
        | AttentionKind::Chunked { head_dim, .. } => {
            given.filter(|d| *d <= head_dim).unwrap_or((head_dim as f64 * share) as u64)
        }
        AttentionKind::Mla { qk_rope_head_dim, .. } => qk_rope_head_dim,
        AttentionKind::Recurrent(_) | AttentionKind::None => 0,
    };
    let kinds = model.layers.iter().filter(|l| l.attention.rope).map(|l| l.attention.kind);
    kinds.filter(wanted).map(|kind| dim(&kind)).max().unwrap_or(0)
}

/// Positions of the table under a `rope_scaling`.
fn stretched(positions: u64, scaling: Option<&Value>, original: Option<u64>) -> u64 {
    let Some(scaling) = scaling else { return positions };
    let factor =
        scaling.get("factor").and_then(Value::as_f64).filter(|f| f.is_finite() && *f >= 1.0).unwrap_or(1.0);
    let original = scaling.get("original_max_position_embeddings").and_then(Value::as_u64).or(original);
    let times = |n: u64, by: f64| (n as f64 * by) as u64;
    if scaling.get("mrope_section").is_some() {
        return positions.saturating_mul(4);
    }
    match scaling.get("rope_type").or_else(|| scaling.get("type")).and_then(Value::as_str) {
        Some("linear" | "dynamic") => times(positions, factor),
        Some("yarn" | "deepseek_yarn") => times(original.unwrap_or(positions), factor),
        // A short and a long table (Phi 3).
        Some("longrope" | "su") => positions.saturating_add(original.unwrap_or(positions)),
        _ => positions,
    }
}
