//! What the core has to tell a person, before a language is chosen.

use super::{Bytes, bytes_human, count};
use serde::Serialize;

/// One value of a [`Message`] or of a working.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A plain count.
    Int(u64),
    /// A byte count.
    Bytes(Bytes),
    /// A ratio or rate.
    Real(f64),
    /// Verbatim text: a name, an option, what the person typed.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(n) => f.write_str(&count(*n)),
            Value::Bytes(b) => f.write_str(&bytes_human(*b)),
            Value::Real(x) => write!(f, "{x}"),
            Value::Text(t) => f.write_str(t),
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Int(n)
    }
}
impl From<Bytes> for Value {
    fn from(b: Bytes) -> Self {
        Value::Bytes(b)
    }
}
impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Value::Real(x)
    }
}
impl From<&str> for Value {
    fn from(t: &str) -> Self {
        Value::Text(t.to_owned())
    }
}
impl From<String> for Value {
    fn from(t: String) -> Self {
        Value::Text(t)
    }
}

/// A sentence by key, with its arguments; `text::message` puts it into a language.
/// The template of key `id` names each argument as `{name}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Key of the template in `text/`.
    pub id: &'static str,
    /// Arguments by name.
    pub args: Vec<(&'static str, Value)>,
}

impl Message {
    /// A message without arguments.
    pub fn new(id: &'static str) -> Message {
        Message { id, args: Vec::new() }
    }

    /// Adds one argument.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Message {
        self.args.push((name, value.into()));
        self
    }
}

/// Input that cannot be used: which field, and a sentence that says what was given, what is accepted
/// and what to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Dotted path of the field in the Scenario document, e.g. `job.serve.max_model_len`; empty for the whole.
    pub field: String,
    /// The sentence.
    pub message: Message,
}

impl Problem {
    /// A problem with `field`.
    pub fn new(field: impl Into<String>, message: Message) -> Problem {
        Problem { field: field.into(), message }
    }

    /// `given` is not what `field` accepts.
    pub fn not_accepted(field: &str, given: impl Into<Value>, accepted: impl Into<Value>) -> Problem {
        let message = Message::new("problem.not_accepted")
            .with("field", field)
            .with("given", given)
            .with("accepted", accepted);
        Problem::new(field, message)
    }
}

impl From<super::Overflow> for Problem {
    fn from(_: super::Overflow) -> Self {
        Problem::new("", Message::new("problem.overflow"))
    }
}
