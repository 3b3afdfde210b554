//! Dense decoders that normalise the output of each half of a layer: OLMo 2 and 3, EXAONE 4.

use super::llama::{Defaults, LLAMA, Sizes};
use super::parts::{QkNorm, Root, layer_types, window};
use crate::model::Model;
use crate::model::fields::Fields;
use crate::units::Problem;
use serde_json::Value;

const POST_NORMS: &[&str] = &["post_attention_layernorm", "post_feedforward_layernorm"];

const OLMO2: Defaults = Defaults { model_type: "olmo2", vocab: 50304, ..LLAMA };
const OLMO3: Defaults = Defaults { model_type: "olmo3", ..OLMO2 };
const EXAONE4: Defaults =
    Defaults { model_type: "exaone4", vocab: 102_400, intermediate: 16384, kv_heads: Some(32), ..LLAMA };

fn olmo(f: Fields<'_>, defaults: &Defaults) -> Result<Sizes, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.gqa.qk_norm = QkNorm::Full;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    Ok(s)
}

pub(crate) fn olmo2(f: Fields<'_>) -> Result<Model, Problem> {
    let s = olmo(f, &OLMO2)?;
    Ok(s.build(Root::PLAIN, POST_NORMS, false, |_| s.gqa.full()))
}

pub(crate) fn olmo3(f: Fields<'_>) -> Result<Model, Problem> {
    let s = olmo(f, &OLMO3)?;
    sliding_but_every(f, &s, 4, false)
}

pub(crate) fn exaone4(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &EXAONE4)?;
    s.gqa.qk_norm = QkNorm::PerHead;
    // A pattern such as "LLLG" stands for its length.
    let period = match f.value("sliding_window_pattern") {
        Some((_, Value::String(pattern))) => pattern.len() as u64,
        _ => f.whole("sliding_window_pattern", 0, 4096)?.unwrap_or(4),
    };
    sliding_but_every(f, &s, period, true)
}

/// Layers slide except every `period`-th. Full layers of such hybrids may do without rotary position.
fn sliding_but_every(f: Fields<'_>, s: &Sizes, period: u64, nope: bool) -> Result<Model, Problem> {
    let window = window(f, Some(4096))?;
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if period == 0 || (i + 1).is_multiple_of(period) { "full_attention" } else { "sliding_attention" }
    })?;
    Ok(s.build(Root::PLAIN, POST_NORMS, false, |i| {
        let mut attention = s.gqa.windowed(window.filter(|_| kinds[i as usize] == "sliding_attention"));
        attention.rope = !(nope && window.is_some() && kinds[i as usize] == "full_attention");
        attention
    }))
}
