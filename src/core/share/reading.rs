//! What a memory log says, as a document and as lines.

use super::SCHEMA;
use crate::text::{Lang, message};
use crate::trace::{Quantity, Refusal, Timeline, Verdict, Warning};
use serde_json::{Value, json};

fn warning(lang: Lang, warning: &Warning) -> Value {
    json!({ "line": warning.line, "message": message(lang, &warning.message) })
}

fn mib(bytes: Option<u64>) -> Option<f64> {
    bytes.map(|b| b as f64 / 1_048_576.0)
}

fn round(value: Option<f64>) -> Value {
    value.filter(|v| v.is_finite()).map_or(Value::Null, |v| json!((v * 1000.0).round() / 1000.0))
}

/// What the samples of a series count, as an id.
fn quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Used => "used",
        Quantity::Process => "process",
        Quantity::Allocated => "allocated",
        Quantity::Reserved => "reserved",
        Quantity::Share => "share",
    }
}

/// The result document of a log (design.md 5, `read`).
pub fn reading_json(lang: Lang, timeline: &Timeline, verdicts: &[Verdict]) -> Value {
    let series: Vec<Value> = timeline
        .series
        .iter()
        .zip(verdicts)
        .map(|(series, verdict)| {
            let share = series.quantity == Quantity::Share;
            json!({
                "gpu": series.gpu,
                "name": series.name,
                "quantity": quantity(series.quantity),
                "shape": verdict.shape.id(),
                "flags": verdict.flags.iter().map(|f| f.id()).collect::<Vec<_>>(),
                "confidence": verdict.confidence,
                "why": message(lang, &verdict.why),
                "growth_mib_per_min": round(verdict.growth_mib_per_min),
                "minutes_to_full": round(verdict.minutes_to_full),
                "total_mib": round(mib(series.total.or(series.reachable).filter(|_| !share))),
                "samples": series.samples.len(),
                "runs": verdict.runs,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "format": timeline.format,
        "warnings": timeline.warnings.iter().map(|w| warning(lang, w)).collect::<Vec<_>>(),
        "evidence": {},
        "series": series,
    })
}

/// The result document of a file that is refused.
pub fn refusal_json(lang: Lang, refusal: &Refusal) -> Value {
    json!({
        "schema": SCHEMA,
        "format": refusal.format,
        "warnings": [{ "line": null, "message": message(lang, &refusal.message) }],
        "evidence": {},
        "series": [],
    })
}

/// The lines of a log for a terminal.
pub fn reading_lines(lang: Lang, timeline: &Timeline, verdicts: &[Verdict]) -> Vec<String> {
    let mut out = vec![timeline.format.to_owned()];
    for (series, verdict) in timeline.series.iter().zip(verdicts) {
        let flags: Vec<&str> = verdict.flags.iter().map(|f| f.id()).collect();
        let flags = if flags.is_empty() { String::new() } else { format!(" [{}]", flags.join(", ")) };
        let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let gpu: String = series.gpu.chars().map(visible).collect();
        out.push(format!("  {gpu}: {}{flags}", verdict.shape.id()));
        out.push(format!("      {}", message(lang, &verdict.why)));
        if let Some(rate) = verdict.growth_mib_per_min {
            let full = verdict.minutes_to_full.map_or(String::new(), |m| format!(", {m:.0} min to full"));
            out.push(format!("      {rate:.3} MiB/min{full}"));
        }
    }
    for warning in timeline.warnings.iter().take(20) {
        let at = warning.line.map_or(String::new(), |line| format!("{line}: "));
        out.push(format!("  ! {at}{}", message(lang, &warning.message)));
    }
    out
}
