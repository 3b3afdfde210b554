//! `--import`: settings of other tools, laid under the flags.

use crate::Failure;
use crate::scenario::{read, refuse};
use oom_ledger_core::share::{Imported, import, imported_json, imported_lines, merge};
use oom_ledger_core::text::{Lang, message};
use oom_ledger_core::units::Message;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// The imported files of one command.
pub struct Imports {
    files: Vec<(String, Imported)>,
    /// What they set.
    pub fields: Vec<(String, Value)>,
    warnings: Vec<Message>,
}

impl Imports {
    /// Reads the files.
    pub fn new(lang: Lang, paths: &[PathBuf]) -> Result<Imports, Failure> {
        let mut files = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            let imported = import(&read(path)?).map_err(|problem| match refuse(lang, &problem) {
                Failure::Input(sentence) => Failure::Input(format!("{name}: {sentence}")),
                other @ Failure::Write(_) => other,
            })?;
            files.push((name, imported));
        }
        let all: Vec<Imported> = files.iter().map(|(_, imported)| imported.clone()).collect();
        let (fields, warnings) = merge(&all);
        Ok(Imports { files, fields, warnings })
    }

    /// Says on standard error what was read.
    pub fn tell(&self, lang: Lang) {
        let mut out = std::io::stderr().lock();
        for (name, imported) in &self.files {
            let named = Message::new("imports.file_named").with("file", name.as_str());
            let _ = writeln!(out, "{}", message(lang, &named.with("format", imported.format)));
            for line in imported_lines(lang, imported) {
                let _ = writeln!(out, "  {line}");
            }
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "{}", message(lang, warning));
        }
    }

    /// Puts the same into a result document, where there is something to say.
    pub fn put_into(&self, lang: Lang, result: &mut Value) {
        if self.files.is_empty() {
            return;
        }
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|(name, imported)| {
                let mut value = imported_json(lang, imported);
                value["file"] = name.as_str().into();
                value
            })
            .collect();
        let sentence = |m: &Message| json!({"id": m.id, "message": message(lang, m)});
        let warnings: Vec<Value> = self.warnings.iter().map(sentence).collect();
        result["imported"] = json!({"files": files, "warnings": warnings});
    }
}
