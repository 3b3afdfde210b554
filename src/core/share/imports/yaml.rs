//! YAML as Python's `yaml.safe_load` reads it, which is what accelerate calls: the scalars of YAML 1.1.

use super::document::{Document, broken, join};
use crate::units::{Message, Problem};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Deepest nesting read.
const DEEPEST: usize = 32;

/// A collection that is not complete yet.
enum Open {
    Map { path: String, map: Map<String, Value>, key: Option<String> },
    List { path: String, items: Vec<Value> },
}

impl Open {
    /// The path of the value that comes next; none inside of a list.
    fn next_path(&self) -> String {
        match self {
            Open::Map { path, key: Some(key), .. } => join(path, key),
            Open::Map { path, .. } | Open::List { path, .. } => path.clone(),
        }
    }
}

/// Reads the first document of `text`.
///
/// Errors: what the parser refuses, an alias, nesting without end, a key that is no text, a root that is no map.
pub(super) fn parse(text: &str) -> Result<Document, Problem> {
    let mut document = Document::default();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| broken(error.marker().line() as u64, error.info()))?;
        let line = span.start.line() as u64;
        let in_list = open.iter().any(|o| matches!(o, Open::List { .. }));
        let done = match event {
            // An alias may stand for a tree that grows without end; accelerate writes none.
            Event::Alias(_) => {
                return Err(Problem::new("", Message::new("imports.alias").with("line", line)));
            }
            Event::MappingStart(..) | Event::SequenceStart(..) if open.len() >= DEEPEST => {
                let message =
                    Message::new("imports.too_deep").with("line", line).with("limit", DEEPEST as u64);
                return Err(Problem::new("", message));
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                if let Some(Open::Map { key: None, .. }) = open.last() {
                    return Err(broken(line, "a key that is no text"));
                }
                let path = open.last().map(Open::next_path).unwrap_or_default();
                open.push(match event {
                    Event::MappingStart(..) => Open::Map { path, map: Map::new(), key: None },
                    _ => Open::List { path, items: Vec::new() },
                });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some(Open::Map { map, .. }) => Value::Object(map),
                Some(Open::List { items, .. }) => Value::Array(items),
                None => continue,
            },
            Event::Scalar(text, style, ..) => {
                if let Some(Open::Map { path, key: key @ None, .. }) = open.last_mut() {
                    if !in_list {
                        document.note(join(path, &text), line);
                    }
                    *key = Some(text.into_owned());
                    continue;
                }
                if style == ScalarStyle::Plain { plain(&text) } else { Value::String(text.into_owned()) }
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(Open::Map { map, key, .. }) => {
                map.insert(key.take().unwrap_or_default(), done);
            }
            Some(Open::List { items, .. }) => items.push(done),
            None => {
                let Value::Object(root) = done else { break };
                document.root = root;
                return Ok(document);
            }
        }
    }
    Err(Problem::new("", Message::new("imports.no_options")))
}

/// A scalar without quotes.
fn plain(text: &str) -> Value {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "" | "~" | "null" => return Value::Null,
        "true" | "yes" | "on" => return Value::Bool(true),
        "false" | "no" | "off" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.replace('_', "");
    if let Ok(whole) = digits.parse::<i64>() {
        return whole.into();
    }
    let number = digits.parse::<f64>().ok().filter(|n| n.is_finite() && digits.contains('.'));
    number.map_or_else(|| text.into(), Value::from)
}
