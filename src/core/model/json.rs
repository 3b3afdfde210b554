//! Reads JSON as Python writes it: `NaN` and `Infinity` appear in real configs.

use crate::units::{Message, Problem};
use serde_json::Value;

/// Longest config accepted, in bytes. The longest public ones are well below 1 MiB.
const MAX_LENGTH: usize = 64 << 20;

/// The JSON value of `text`; bare `NaN` and `Infinity`, which Python's writer emits, become `null`.
///
/// Errors: line and column of the first character that is not JSON, under `field`.
///
/// ```
/// use oom_ledger_core::model::parse_json;
/// let value = parse_json("model.config", r#"{"time_step_limit": [0.0, Infinity]}"#).unwrap();
/// assert!(value["time_step_limit"][1].is_null());
/// assert!(parse_json("model.config", "{\"hidden_size\": 40").is_err());
/// ```
pub fn parse_json(field: &str, text: &str) -> Result<Value, Problem> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(Problem::new(field, Message::new("model.json_empty")));
    }
    if text.len() > MAX_LENGTH {
        let message = Message::new("model.json_too_long").with("given", text.len() as u64);
        return Err(Problem::new(field, message.with("accepted", MAX_LENGTH as u64)));
    }
    serde_json::from_str(text)
        .or_else(|first| serde_json::from_str(&without_constants(text)).map_err(|_| first))
        .map_err(|error| {
            // serde_json appends " at line 1 column 2"; the message has its own place for both.
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            let message = Message::new("model.json_broken")
                .with("line", error.line() as u64)
                .with("column", error.column() as u64)
                .with("what", what);
            Problem::new(field, message)
        })
}

/// `text` with Python's number constants outside of strings replaced by `null`.
fn without_constants(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if rest.starts_with('"') {
            let length = string_length(rest);
            out.push_str(&rest[..length]);
            length
        } else if let Some(word) = ["NaN", "Infinity", "-Infinity"].iter().find(|w| rest.starts_with(**w)) {
            out.push_str("null");
            word.len()
        } else {
            out.push_str(&rest[..1]);
            1
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// Bytes of the JSON string that `text` begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
