//! The result document (design.md 5), with its sentences put into a language.

use crate::plan::Estimate;
use crate::text::{Lang, message};
use crate::units::{Message, Problem};
use serde_json::{Map, Value, json};

/// The result of an estimate: warnings and a refusal as `{id, message}`, the term that stops each limit by the
/// limit's name.
pub fn result_json(lang: Lang, answer: &Estimate) -> Value {
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    let sentence = |m: &Message| json!({"id": m.id, "message": message(lang, m)});
    value["warnings"] = answer.warnings.iter().map(sentence).collect();
    if let Some(refusal) = &answer.refusal {
        value["refusal"] = sentence(refusal);
    }
    let stopped: Map<_, _> =
        answer.limits.stopped_by.iter().map(|(name, term)| ((*name).to_owned(), term.id().into())).collect();
    value["limits"]["stopped_by"] = Value::Object(stopped);
    value
}

/// `{"error": {"field", "id", "message"}}`, with the line number where the input has lines. Where the model was
/// read before the problem came up (an engine that is not modelled), its parameter count stands beside it.
pub fn error_json(lang: Lang, problem: &Problem, line: Option<u64>, parameters: Option<u64>) -> Value {
    let mut error = Map::new();
    if let Some(line) = line {
        error.insert("line".to_owned(), line.into());
    }
    error.insert("field".to_owned(), problem.field.clone().into());
    error.insert("id".to_owned(), problem.message.id.into());
    error.insert("message".to_owned(), message(lang, &problem.message).into());
    match parameters {
        Some(parameters) => json!({ "error": error, "parameters": parameters }),
        None => json!({ "error": error }),
    }
}
