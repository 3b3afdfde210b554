//! Reads a Scenario document, and says what is wrong with one that cannot be read.

use super::Scenario;
use super::fields::{Field, Kind, SCENARIO, places};
use super::nearest::nearest;
use super::short::DEFAULT_LOAD;
use crate::model::checkpoint::Summary;
use crate::model::{Quantization, parse_json};
use crate::units::{Message, Problem};
use serde_json::{Map, Value};

/// The newest version of the Scenario document that this build reads.
pub const SCHEMA: u32 = 1;

impl Scenario {
    /// The Scenario in `text`.
    ///
    /// `schema` left out means 1, whatever the newest is, so that an old document keeps its meaning; `job`
    /// left out means serving with every default. `null` means left out. Values are checked by
    /// [`Scenario::resolve`]; here only names and types are.
    ///
    /// ```
    /// use oom_ledger_core::share::Scenario;
    /// let text = r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"}}"#;
    /// assert_eq!(Scenario::from_json_str(text).unwrap().device.count, 1);
    /// let slip = r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"presett": "h100-80gb"}}"#;
    /// assert_eq!(Scenario::from_json_str(slip).unwrap_err().field, "device.presett");
    /// ```
    ///
    /// Errors: broken JSON with line and column; an unknown field with the nearest accepted one; a wrong type
    /// with the field's path; a newer schema; a model's `config.json` given in place of a Scenario.
    pub fn from_json_str(text: &str) -> Result<Scenario, Problem> {
        Scenario::from_json(Scenario::value_from_str(text)?)
    }

    /// The JSON in `text`, not yet looked at: for a caller that puts fields into it before
    /// [`Scenario::from_json`].
    ///
    /// Errors: broken JSON with line and column.
    pub fn value_from_str(text: &str) -> Result<Value, Problem> {
        parse_json("", text).map_err(|mut problem| {
            problem.message.id = match problem.message.id {
                "model.json_empty" => "scenario.empty",
                "model.json_broken" => "scenario.broken",
                other => other,
            };
            problem
        })
    }

    /// The Scenario in a JSON value; as [`Scenario::from_json_str`].
    pub fn from_json(mut value: Value) -> Result<Scenario, Problem> {
        let Some(map) = value.as_object_mut() else {
            return Err(Problem::new("", Message::new("scenario.not_an_object")));
        };
        if let Some(problem) = another_document(map) {
            return Err(problem);
        }
        check_schema(map)?;
        check_object("", map, SCENARIO)?;
        for needed in ["model", "device"] {
            if !map.contains_key(needed) {
                let message = Message::new("scenario.missing").with("field", needed);
                let accepted = super::fields::field(needed).map(Kind::accepted).unwrap_or_default();
                return Err(Problem::new(needed, message.with("accepted", accepted)));
            }
        }
        map.entry("schema").or_insert_with(|| 1.into());
        let job = map.entry("job").or_insert_with(|| Value::Object(Map::new()));
        if let Some(job) = job.as_object_mut() {
            if job.contains_key("train") {
                if job.contains_key("serve") {
                    return Err(Problem::new("job", Message::new("scenario.two_jobs")));
                }
                return typed(value);
            }
            let serve = job.entry("serve").or_insert_with(|| Value::Object(Map::new()));
            shorten_default_load(serve);
        }
        typed(value)
    }
}

/// The types of a checked document.
fn typed(value: Value) -> Result<Scenario, Problem> {
    serde_json::from_value(value).map_err(|error| {
        // The table of fields is stricter than the types; a test holds that this cannot be reached.
        Problem::new("", Message::new("scenario.unreadable").with("what", error.to_string()))
    })
}

/// A load that nobody gave must not be what a short `max_model_len` refuses: it is cut to that length, in the
/// defaults' own proportion of four tokens read to one written.
fn shorten_default_load(serve: &mut Value) {
    let Some(serve) = serve.as_object_mut() else { return };
    let longest = serve.get("max_model_len").and_then(Value::as_u64);
    let given = serve.contains_key("prompt_tokens") || serve.contains_key("new_tokens");
    if let Some(longest) = longest.filter(|n| !given && *n < DEFAULT_LOAD) {
        let new = longest / 5;
        serve.insert("prompt_tokens".to_owned(), (longest - new).into());
        serve.insert("new_tokens".to_owned(), new.into());
    }
}

/// What the document is, where it is another kind that people have at hand.
fn another_document(map: &Map<String, Value>) -> Option<Problem> {
    if map.contains_key("model") || map.contains_key("job") {
        return None;
    }
    let any = |names: &[&str]| names.iter().any(|name| map.contains_key(*name));
    let id = if any(&["model_type", "architectures", "hidden_size", "n_embd", "d_model", "text_config"]) {
        "scenario.is_config"
    } else if any(&["terms", "phases", "verdict"]) {
        "scenario.is_result"
    } else {
        return None;
    };
    Some(Problem::new("", Message::new(id)))
}

fn check_schema(map: &Map<String, Value>) -> Result<(), Problem> {
    match map.get("schema") {
        None | Some(Value::Null) => Ok(()),
        Some(value) => match value.as_u64() {
            Some(given) if given == u64::from(SCHEMA) => Ok(()),
            Some(given) if given > u64::from(SCHEMA) => {
                let message = Message::new("scenario.newer").with("given", given);
                Err(Problem::new("schema", message.with("accepted", u64::from(SCHEMA))))
            }
            _ => Err(Problem::not_accepted("schema", quoted(value), SCHEMA.to_string())),
        },
    }
}

fn check_object(path: &str, map: &mut Map<String, Value>, fields: &[Field]) -> Result<(), Problem> {
    for (name, value) in map.iter_mut() {
        let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            return Err(unknown(&here, name, fields));
        };
        check_value(&here, value, field.kind)?;
    }
    map.retain(|_, value| !value.is_null());
    Ok(())
}

fn check_value(path: &str, value: &mut Value, kind: Kind) -> Result<(), Problem> {
    let fine = match (kind, &mut *value) {
        (_, Value::Null)
        | (Kind::Config, Value::Object(_))
        | (Kind::Flag, Value::Bool(_))
        | (Kind::Names, Value::String(_)) => true,
        (Kind::Object(fields), Value::Object(map)) => return check_object(path, map, fields),
        (Kind::File, value) => return Summary::from_json(value).map(|_| ()),
        (Kind::Whole(..), Value::Number(number)) => number.is_u64(),
        (Kind::Share | Kind::Ratio, Value::Number(number)) => number.as_f64().is_some_and(f64::is_finite),
        (Kind::Text, Value::String(text)) => return check_text(path, text),
        (Kind::Names, Value::Array(all)) => all.iter().all(Value::is_string),
        (Kind::Choice(all), Value::String(text)) => all.contains(&text.as_str()),
        _ => false,
    };
    if fine { Ok(()) } else { Err(Problem::not_accepted(path, quoted(value), kind.accepted())) }
}

/// Names that the types themselves know.
fn check_text(path: &str, text: &str) -> Result<(), Problem> {
    if path == "weights.quantization" && Quantization::from_id(text).is_none() {
        let mut names: Vec<_> = Quantization::NAMED.iter().map(|(name, _)| *name).collect();
        names.push("gguf:Q4_K_M");
        return Err(Problem::not_accepted(path, cut(text), format!("null, {}", names.join(", "))));
    }
    Ok(())
}

fn unknown(path: &str, name: &str, fields: &[Field]) -> Problem {
    let accepted: Vec<_> = fields.iter().map(|field| field.name).collect();
    let (id, near) = if let Some(near) = nearest(name, accepted.iter().copied()) {
        ("scenario.unknown_near", near.to_owned())
    } else if let Some(place) = places(name).into_iter().next() {
        ("scenario.unknown_place", place)
    } else {
        ("scenario.unknown", String::new())
    };
    let mut message = Message::new(id).with("field", cut(path)).with("accepted", accepted.join(", "));
    if !near.is_empty() {
        message = message.with("near", near);
    }
    Problem::new(cut(path), message)
}

/// A value as quoted in a sentence.
fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
        other => cut(&other.to_string()),
    }
}

/// At most 80 characters of what was given.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
