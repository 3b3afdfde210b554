//! Layer 4: every sentence, in English and Chinese. One row per key, so the key sets are equal by
//! construction; `tests/it/text.rs` checks that no text is empty and that placeholders agree.

mod checkpoint;
mod engines;
mod evidence;
mod evidence_kinds;
mod imports;
mod levers;
mod llama_cpp;
mod lmdeploy;
mod model;
mod plan;
mod pooled;
mod problems;
mod report;
mod sglang;
mod site;
mod tensorrt_llm;
mod terms;
mod tgi;
mod trace;
mod training;
mod transformers;
mod vllm;
mod weights;

use crate::units::{Message, Value};
use std::collections::HashMap;
use std::sync::OnceLock;

/// One text: key, English, Chinese.
pub type Row = (&'static str, &'static str, &'static str);

/// Every table of texts, one file per area.
pub const TABLES: &[&[Row]] = &[
    checkpoint::ROWS,
    engines::ROWS,
    evidence::ROWS,
    imports::ROWS,
    evidence_kinds::ROWS,
    levers::ROWS,
    lmdeploy::ROWS,
    llama_cpp::ROWS,
    model::ROWS,
    plan::ROWS,
    pooled::ROWS,
    problems::ROWS,
    report::ROWS,
    sglang::ROWS,
    site::ROWS,
    tensorrt_llm::ROWS,
    terms::ROWS,
    tgi::ROWS,
    trace::ROWS,
    training::ROWS,
    transformers::ROWS,
    vllm::ROWS,
    weights::ROWS,
];

/// A language of the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Simplified Chinese.
    Zh,
}

fn index() -> &'static HashMap<&'static str, &'static Row> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    INDEX.get_or_init(|| TABLES.iter().flat_map(|t| t.iter()).map(|row| (row.0, row)).collect())
}

/// Whether `key` has a text.
pub fn has(key: &str) -> bool {
    index().contains_key(key)
}

/// The text of `key`, or the key itself where there is none (a test holds that there always is one).
pub fn text(lang: Lang, key: &str) -> &str {
    match (index().get(key), lang) {
        (Some(row), Lang::En) => row.1,
        (Some(row), Lang::Zh) => row.2,
        (None, _) => key,
    }
}

/// A control character as the sign for what cannot be shown; any other as it is.
fn visible(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

/// A message in a language: the template of its id with its arguments filled in. An argument that is itself
/// a key, such as `phase.prefill`, is put into the language too.
pub fn message(lang: Lang, message: &Message) -> String {
    let mut out = String::new();
    let mut rest = text(lang, message.id);
    // One pass, so that an argument which looks like a placeholder stays as it was typed.
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find('}').map_or(rest.len(), |at| at + 1);
        let name = rest[..end].trim_start_matches('{').trim_end_matches('}');
        if let Some((_, value)) = message.args.iter().find(|(n, _)| *n == name) {
            match value {
                // What a person typed may hold control characters, which a terminal would obey.
                Value::Text(key) => out.extend(text(lang, key).chars().map(visible)),
                other => out.push_str(&other.to_string()),
            }
            rest = &rest[end..];
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}
