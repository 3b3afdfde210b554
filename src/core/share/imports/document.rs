//! A file as a tree of values whose keys know their lines: JSON or YAML.

use super::yaml;
use crate::units::{Message, Problem};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Longest file read: such files have a few KiB, and a list of options has no megabyte.
const LONGEST: usize = 1 << 20;

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    /// Its options.
    pub(super) root: Map<String, Value>,
    /// Where each key stands, by dotted path.
    pub(super) lines: BTreeMap<String, u64>,
    /// Keys that stand twice in the same object, with the line of the later one, which counts.
    pub(super) twice: Vec<(String, u64)>,
}

/// `inner` below `outer`.
pub(super) fn join(outer: &str, inner: &str) -> String {
    if outer.is_empty() { inner.to_owned() } else { format!("{outer}.{inner}") }
}

impl Document {
    /// Reads JSON or YAML.
    ///
    /// Errors: neither, with the line; too long; not a list of options by name.
    pub(super) fn parse(text: &str) -> Result<Document, Problem> {
        let text = text.trim_start_matches('\u{feff}');
        if text.len() > LONGEST {
            return Err(Problem::new("", Message::new("imports.too_long").with("limit", LONGEST as u64)));
        }
        if !text.trim_start().starts_with('{') {
            return yaml::parse(text);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(root)) => {
                let mut document = Document { root, ..Document::default() };
                document.find_keys(text);
                Ok(document)
            }
            Ok(_) => Err(Problem::new("", Message::new("imports.no_options"))),
            Err(error) => Err(broken(error.line() as u64, &error.to_string())),
        }
    }

    /// Notes a key where it stands.
    pub(super) fn note(&mut self, path: String, line: u64) {
        if self.lines.insert(path.clone(), line).is_some() {
            self.twice.push((path, line));
        }
    }

    /// The part of the document below `key`, as a document of its own.
    pub(super) fn part(&self, key: &str) -> Option<Document> {
        let root = self.root.get(key)?.as_object()?.clone();
        let outer = format!("{key}.");
        let lines =
            self.lines.iter().filter_map(|(path, line)| Some((path.strip_prefix(&outer)?.to_owned(), *line)));
        Some(Document { root, lines: lines.collect(), twice: Vec::new() })
    }

    /// The value at a dotted path.
    pub(super) fn at(&self, path: &str) -> Option<&Value> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let mut value = self.root.get(first)?;
        for name in rest.into_iter().flat_map(|rest| rest.split('.')) {
            value = value.as_object()?.get(name)?;
        }
        Some(value)
    }

    /// The lines of the keys of `text`, which is known to be JSON. Keys inside of lists are left out.
    fn find_keys(&mut self, text: &str) {
        // Path of the object or list, whether it is an object, whether a key comes next.
        let mut open: Vec<(String, bool, bool)> = Vec::new();
        let (mut line, mut value_path, mut skip_to) = (1u64, String::new(), 0);
        for (at, c) in text.char_indices() {
            if at < skip_to {
                continue;
            }
            match c {
                '\n' => line += 1,
                '"' => {
                    let end = string_end(text, at);
                    skip_to = end;
                    let in_list = open.iter().any(|(_, object, _)| !object);
                    if let Some((path, true, expected @ true)) = open.last_mut() {
                        *expected = false;
                        let raw = text.get(at..end).unwrap_or_default();
                        let key = serde_json::from_str::<String>(raw).unwrap_or_default();
                        value_path = join(path, &key);
                        if !in_list {
                            self.note(value_path.clone(), line);
                        }
                    }
                }
                '{' | '[' => open.push((std::mem::take(&mut value_path), c == '{', true)),
                '}' | ']' => {
                    open.pop();
                }
                ',' => {
                    if let Some((_, _, expected)) = open.last_mut() {
                        *expected = true;
                    }
                }
                _ => {}
            }
        }
    }
}

/// What cannot be read, with its line.
pub(super) fn broken(line: u64, what: &str) -> Problem {
    Problem::new("", Message::new("imports.broken").with("line", line).with("what", what))
}

/// Where the string that starts at `start` ends: the byte after its closing quote.
fn string_end(text: &str, start: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
