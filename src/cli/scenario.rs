//! From files and flags to a Scenario.

use crate::args::Fields;
use crate::{Failure, checkpoint};
use oom_ledger_core::hardware::gpu;
use oom_ledger_core::model::{PRESETS, parse_json, preset};
use oom_ledger_core::share::{Kind, field};
use oom_ledger_core::text::{Lang, message};
use oom_ledger_core::units::{Problem, parse_bytes, parse_count};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;

/// The text of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|all| bytes = all)
    };
    read.map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))?;
    // A broken character then shows up as broken JSON, with its place.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A problem as a failure.
pub fn refuse(lang: Lang, problem: &Problem) -> Failure {
    let sentence = message(lang, &problem.message);
    if problem.field.is_empty() || sentence.contains(&problem.field) {
        Failure::Input(sentence)
    } else {
        Failure::Input(format!("{}: {sentence}", problem.field))
    }
}

/// What the flags put into a document: looked up once, applied to each.
pub struct Overlay(Vec<(String, Value)>);

impl Overlay {
    /// Reads the flags; what was imported lies under them.
    pub fn new(lang: Lang, fields: &Fields, imported: &[(String, Value)]) -> Result<Overlay, Failure> {
        let mut all = imported.to_vec();
        if let Some(given) = &fields.model {
            let path = Path::new(given);
            // What is left of another model's checkpoint must not stand beside this one.
            all.push(("weights.file".to_owned(), Value::Null));
            if preset(given).is_none() && checkpoint::is_one(path) {
                all.extend(checkpoint::fields(lang, path)?);
            } else {
                let (name, value) = model(lang, given)?;
                all.push(("model".to_owned(), json!({ name: value })));
            }
        }
        if let Some(given) = &fields.gpu {
            let (name, value) = device(given);
            let other = if name == "preset" { "total_bytes" } else { "preset" };
            all.push((format!("device.{other}"), Value::Null));
            all.push((format!("device.{name}"), value));
        }
        for (path, text) in fields.pairs() {
            all.push((path.to_owned(), typed(path, text).map_err(|p| refuse(lang, &p))?));
        }
        for pair in &fields.set {
            let Some((path, text)) = pair.split_once('=') else {
                let sentence = format!("--set \"{pair}\": accepted: PATH=VALUE, e.g. job.serve.sequences=16");
                return Err(Failure::Input(sentence));
            };
            all.push((path.to_owned(), typed(path, text).map_err(|p| refuse(lang, &p))?));
        }
        Ok(Overlay(all))
    }

    /// Whether no flag is given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the flags into a document.
    pub fn apply(&self, doc: &mut Value) {
        for (path, value) in &self.0 {
            put(doc, path, value.clone());
        }
        let degrees = ["tensor", "pipeline", "data"].map(|name| {
            doc.pointer(&format!("/parallel/{name}")).map_or(Some(1), Value::as_u64).unwrap_or(1)
        });
        // A degree given by a flag says how many devices there are, unless something else does.
        if self.0.iter().any(|(path, _)| path.starts_with("parallel."))
            && doc.pointer("/device/count").is_none_or(Value::is_null)
            && let Some(world) = degrees.iter().try_fold(1u64, |a, b| a.checked_mul(*b))
            && world > 1
        {
            put(doc, "device.count", world.into());
        }
    }
}

/// Sets the value at a path, making objects on the way; what stands there and is no object is left to the
/// core to refuse.
fn put(doc: &mut Value, path: &str, value: Value) {
    let mut at = doc;
    for name in path.split('.') {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let Some(map) = at.as_object_mut() else { return };
        at = map.entry(name).or_insert(Value::Null);
    }
    *at = value;
}

/// A value as typed, by what its field accepts.
fn typed(path: &str, text: &str) -> Result<Value, Problem> {
    if text == "null" {
        return Ok(Value::Null);
    }
    Ok(match field(path) {
        Some(Kind::Whole(..)) if path.ends_with("_bytes") => parse_bytes(path, text)?.0.into(),
        Some(kind @ Kind::Whole(..)) => {
            parse_count(path, text).map_err(|_| Problem::not_accepted(path, text, kind.accepted()))?.into()
        }
        Some(Kind::Share | Kind::Ratio) => {
            let number = text.trim().parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            number.map_or_else(|| text.into(), Value::Number)
        }
        Some(Kind::Flag) => text.parse::<bool>().map_or_else(|_| text.into(), Value::Bool),
        Some(Kind::Config | Kind::File | Kind::Object(_)) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
        }
        // The core refuses what it does not know, and names the nearest field.
        Some(Kind::Text | Kind::Choice(_) | Kind::Names) | None => text.into(),
    })
}

/// A preset by its id or Hugging Face id, or the config in a file.
fn model(lang: Lang, given: &str) -> Result<(&'static str, Value), Failure> {
    if preset(given).is_some() {
        return Ok(("preset", given.into()));
    }
    let mut path = Path::new(given).to_path_buf();
    if path.is_dir() {
        path.push("config.json");
    }
    if path.is_file() {
        let config = parse_json("model.config", &read(&path)?).map_err(|p| refuse(lang, &p))?;
        return Ok(("config", config));
    }
    let named = PRESETS.iter().find(|p| {
        let hf_id = p.document().ok().and_then(|doc| Some(doc.get("hf_id")?.as_str()?.to_owned()));
        hf_id.is_some_and(|id| id.eq_ignore_ascii_case(given))
    });
    if let Some(found) = named {
        return Ok(("preset", found.id.into()));
    }
    if path.extension().is_some_and(|e| e == "json") {
        return Err(Failure::Input(format!("model: there is no file {given}")));
    }
    // The core refuses it, and names the nearest presets.
    Ok(("preset", given.into()))
}

/// A device by its id, or a size.
fn device(given: &str) -> (&'static str, Value) {
    match parse_bytes("device.total_bytes", given) {
        Ok(bytes) if gpu(given).is_none() => ("total_bytes", bytes.0.into()),
        _ => ("preset", given.into()),
    }
}
