//! Suggestions as rows and as JSON: page, command line and Markdown show the same.

use crate::plan::{Suggestion, Suggestions};
use crate::text::{Lang, message, text};
use crate::units::{Bytes, Message, bytes_human, bytes_signed};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One suggestion in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdviceRow {
    /// What is done.
    pub what: String,
    /// The option with the value before and after.
    pub setting: String,
    /// Bytes it frees.
    pub frees: String,
    /// What that comes to.
    pub after: String,
    /// What it costs.
    pub cost: String,
    /// It suffices alone.
    pub enough: bool,
}

/// The rows, in the order of the suggestions.
pub fn advice_rows(lang: Lang, suggestions: &Suggestions) -> Vec<AdviceRow> {
    suggestions.levers.iter().map(|s| row(lang, s)).collect()
}

fn row(lang: Lang, s: &Suggestion) -> AdviceRow {
    let t = |key: &str| text(lang, key).to_owned();
    let missing = |bytes: i64| {
        let bytes = bytes_human(Bytes(bytes.unsigned_abs()));
        let id = if s.margin_bytes < 0 { "lever.not_enough" } else { "lever.spare" };
        message(lang, &Message::new(id).with("bytes", bytes))
    };
    let after = match s.no_effect {
        Some(_) => reason(lang, s),
        None if s.enough => format!("{} · {}", t("lever.enough"), missing(s.margin_bytes)),
        None => missing(s.margin_bytes),
    };
    AdviceRow {
        what: t(&format!("lever.{}", s.id)),
        setting: setting(s),
        frees: bytes_human(Bytes(s.frees_bytes)),
        after,
        cost: t(&format!("lever.{}.cost", s.id)),
        enough: s.enough,
    }
}

/// Why a change frees nothing.
fn reason(lang: Lang, s: &Suggestion) -> String {
    let Some(phase) = s.no_effect else { return String::new() };
    let id = match (s.frees_bytes, s.adds_bytes) {
        (0, 0) => "lever.no_effect",
        (0, _) => "lever.adds",
        _ => "lever.negligible",
    };
    let said = Message::new(id).with("phase", format!("phase.{}", phase.id()));
    message(lang, &said.with("bytes", Bytes(s.adds_bytes)))
}

/// `--option before → after`, with what a training step changes beside it.
fn setting(s: &Suggestion) -> String {
    // A switch that is turned on is its name alone, as on a command line.
    if s.to == "true" {
        return s.option.to_owned();
    }
    let mut said = if s.from.is_empty() {
        format!("{} → {}", s.option, s.to)
    } else {
        format!("{} {} → {}", s.option, s.from, s.to)
    };
    // Writing to a String cannot fail.
    for (path, value) in s.set.iter().skip(1).filter(|_| s.option.starts_with("job.train.")) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(said, ", {path} → {value}");
    }
    said
}

/// What is missing, and what suffices together, as sentences.
pub fn advice_lines(lang: Lang, suggestions: &Suggestions) -> Vec<String> {
    let mut lines = Vec::new();
    if suggestions.option_stops {
        lines.push(text(lang, "lever.option_stops").to_owned());
    }
    if suggestions.missing_bytes > 0 {
        let bytes = bytes_signed(i128::from(suggestions.missing_bytes));
        lines.push(message(lang, &Message::new("lever.missing").with("bytes", bytes)));
    }
    let named = |i: &usize| suggestions.levers.get(*i).map(setting);
    let together: Vec<_> = suggestions.together.iter().filter_map(named).collect();
    if !together.is_empty() {
        lines.push(message(lang, &Message::new("lever.together").with("options", together.join(" + "))));
    }
    if suggestions.levers.iter().all(|s| s.no_effect.is_some()) {
        let id = if suggestions.missing_bytes > 0 { "lever.none" } else { "lever.nothing_missing" };
        lines.push(text(lang, id).to_owned());
    }
    lines
}

/// The suggestions as JSON, with their sentences.
pub fn advice_json(lang: Lang, suggestions: &Suggestions) -> Value {
    let rows = advice_rows(lang, suggestions);
    let levers: Vec<Value> = suggestions
        .levers
        .iter()
        .zip(rows)
        .map(|(s, row)| {
            let mut value = serde_json::to_value(s).unwrap_or_default();
            value["what"] = row.what.into();
            value["cost_in_words"] = row.cost.into();
            if s.no_effect.is_some() {
                value["reason"] = row.after.into();
            }
            value["set"] = s.set.iter().map(|(path, to)| ((*path).to_owned(), to.clone())).collect();
            value
        })
        .collect();
    let together: Vec<_> =
        suggestions.together.iter().filter_map(|i| suggestions.levers.get(*i)).map(|s| s.id).collect();
    json!({"missing_bytes": suggestions.missing_bytes, "levers": levers, "together": together})
}
