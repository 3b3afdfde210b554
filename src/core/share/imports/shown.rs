//! What was imported, as lines of text and as JSON.

use super::merge::shown;
use super::{Imported, Key};
use crate::text::{Lang, message};
use crate::units::Message;
use serde_json::{Value, json};

impl Imported {
    /// The lists of keys that became no field, by the name that JSON gives them.
    fn lists(&self) -> [(&'static str, &'static str, &[Key]); 5] {
        [
            ("unknown", "imports.unknown", &self.unknown),
            ("not_modelled", "imports.not_modelled", &self.not_modelled),
            ("open", "imports.open", &self.open),
            ("used", "imports.used", &self.used),
            ("no_memory", "imports.no_memory", &self.no_memory),
        ]
    }
}

/// One line for each key that became a field, each list of the others, and each warning.
pub fn imported_lines(lang: Lang, imported: &Imported) -> Vec<String> {
    let mut lines = Vec::new();
    for taken in &imported.taken {
        let id = if taken.implied { "imports.implied" } else { "imports.taken" };
        let line = Message::new(id)
            .with("key", placed(lang, &taken.from))
            .with("path", taken.path)
            .with("value", shown(&taken.value));
        lines.push(message(lang, &line));
    }
    for (_, id, keys) in imported.lists() {
        if !keys.is_empty() {
            let names: Vec<_> = keys.iter().map(|key| placed(lang, key)).collect();
            lines.push(message(lang, &Message::new(id).with("keys", names.join(", "))));
        }
    }
    lines.extend(imported.warnings.iter().map(|warning| message(lang, warning)));
    lines
}

/// A key with its line.
fn placed(lang: Lang, key: &Key) -> String {
    match key.line {
        Some(line) => {
            message(lang, &Message::new("imports.key").with("key", key.key.as_str()).with("line", line))
        }
        None => key.key.clone(),
    }
}

/// The same as JSON.
pub fn imported_json(lang: Lang, imported: &Imported) -> Value {
    let key = |key: &Key| json!({"key": key.key, "line": key.line, "given": key.given});
    let mut value = json!({"format": imported.format});
    value["taken"] = imported
        .taken
        .iter()
        .map(|taken| {
            let mut row = key(&taken.from);
            row["path"] = taken.path.into();
            row["value"] = taken.value.clone();
            row["implied"] = taken.implied.into();
            row
        })
        .collect();
    for (name, _, keys) in imported.lists() {
        value[name] = keys.iter().map(key).collect();
    }
    let sentence = |m: &Message| json!({"id": m.id, "message": message(lang, m)});
    value["warnings"] = imported.warnings.iter().map(sentence).collect();
    value
}
