//! Settings of other tools, read into fields of the Scenario.
//!
//! A file is known by its content ([`IMPORTS`]). Every key of it ends in a list of [`Imported`]: taken, used,
//! open (`auto`, or settled elsewhere), not modelled, without effect on memory, or unknown.

mod accelerate;
mod accelerate_keys;
mod deepspeed;
mod deepspeed_keys;
mod document;
mod merge;
mod reading;
mod shown;
mod trainer_keys;
mod training_arguments;
mod yaml;

pub use merge::merge;
pub use shown::{imported_json, imported_lines};

use crate::units::{Message, Problem};
use document::Document;
use reading::Reading;
use serde_json::Value;

/// A key of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Dotted path in the file.
    pub key: String,
    /// Its line.
    pub line: Option<u64>,
    /// The value, shortened.
    pub given: String,
}

/// A key that became a field of the Scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The key that says it.
    pub from: Key,
    /// The field.
    pub path: &'static str,
    /// Its value.
    pub value: Value,
    /// The file does not say it; it is the tool's default.
    pub implied: bool,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Id of the reader.
    pub format: &'static str,
    /// Keys that became fields of the Scenario.
    pub taken: Vec<Taken>,
    /// Keys that decide together with another one what a field becomes.
    pub used: Vec<Key>,
    /// Keys that leave a value open: `auto`, or settled by another file or by the model.
    pub open: Vec<Key>,
    /// Keys that change memory, and for which the Scenario has no field.
    pub not_modelled: Vec<Key>,
    /// Keys that do not change memory.
    pub no_memory: Vec<Key>,
    /// Keys that this build does not know.
    pub unknown: Vec<Key>,
    /// Contradictions, values that cannot be used, and what was assumed.
    pub warnings: Vec<Message>,
    /// DeepSpeed runs the step, which changes what a precision means.
    pub deepspeed: bool,
}

/// A kind of file.
pub struct Import {
    /// Its id.
    pub id: &'static str,
    /// Whether a document is one.
    sniff: fn(&Document) -> bool,
    /// Reads it.
    read: fn(&mut Reading<'_>),
}

/// Every kind of file that can be imported. A document is at most one of them.
pub const IMPORTS: &[Import] = &[
    Import { id: "accelerate", sniff: accelerate::sniff, read: accelerate::read },
    Import { id: "training-arguments", sniff: training_arguments::sniff, read: training_arguments::read },
    Import { id: "deepspeed", sniff: deepspeed::sniff, read: deepspeed::read },
];

/// The kinds that `text` looks like; a test holds that there is at most one.
///
/// Errors: as [`import`], but for a document of no known kind.
pub fn kinds(text: &str) -> Result<Vec<&'static str>, Problem> {
    let document = Document::parse(text)?;
    Ok(IMPORTS.iter().filter(|kind| (kind.sniff)(&document)).map(|kind| kind.id).collect())
}

/// Reads a file of settings.
///
/// ```
/// let text = r#"{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}, "stagee": 3}"#;
/// let read = oom_ledger_core::share::import(text).unwrap();
/// assert_eq!(read.format, "deepspeed");
/// assert_eq!((read.taken[0].path, read.taken[0].value.as_u64()), ("job.train.micro_batch", Some(4)));
/// assert_eq!(read.unknown[0].key, "stagee");
/// ```
///
/// Errors: neither JSON nor YAML, with the line; a document of no known kind.
pub fn import(text: &str) -> Result<Imported, Problem> {
    let document = Document::parse(text)?;
    let Some(kind) = IMPORTS.iter().find(|kind| (kind.sniff)(&document)) else {
        let known: Vec<_> = IMPORTS.iter().map(|kind| kind.id).collect();
        return Err(Problem::new("", Message::new("imports.not_known").with("known", known.join(", "))));
    };
    let mut reading = Reading::new(kind.id, &document);
    (kind.read)(&mut reading);
    Ok(reading.finish())
}
