//! Files of a model that a person drops or chooses: a config.json, and checkpoints, of which only headers are read.

use crate::answer::Session;
use leptos::prelude::*;
use oom_ledger_core::model::checkpoint::{Checkpoint, Header, Imported, read_header, together};
use oom_ledger_core::model::parse_json;
use oom_ledger_core::units::{Bytes, Message, Problem};
use serde_json::Value;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;

/// Largest config.json read: configs are a few kB; more is some other file. Checkpoints may have any size.
const LARGEST: u64 = 32 * Bytes::MIB;
/// What is read of a checkpoint before it says how long its header is.
const FIRST: u64 = 64 << 10;

/// One file, read as far as it matters.
enum Part {
    Config(String),
    Checkpoint(String, Checkpoint),
}

/// Reads `files` and puts them into the form; what cannot be used is said beside it, and the form stays.
pub async fn take(session: Session, files: Vec<web_sys::File>) {
    let ended = match read(files).await {
        Ok((config, parts)) if parts.is_empty() => {
            if let Some(text) = config {
                put_config(session, text);
            }
            Ok(Vec::new())
        }
        Ok((config, parts)) => put_checkpoint(session, config, parts),
        Err(problem) => Err(problem),
    };
    match ended {
        Ok(notes) => session.notes.set(notes),
        Err(problem) => session.link.set(Some(problem)),
    }
}

async fn read(files: Vec<web_sys::File>) -> Result<(Option<String>, Vec<(String, Checkpoint)>), Problem> {
    let (mut config, mut parts) = (None, Vec::new());
    for file in files {
        match part(&file).await? {
            Part::Config(text) => config = Some(text),
            Part::Checkpoint(name, checkpoint) => parts.push((name, checkpoint)),
        }
    }
    Ok((config, parts))
}

/// A config alone takes the place of the model, and of the weights of another file.
fn put_config(session: Session, text: String) {
    session.steps.update(|n| *n += 1);
    session.link.set(None);
    session.form.update(|form| {
        form.take_config(None);
        form.take_config(Some(text));
    });
}

fn put_checkpoint(
    session: Session,
    config: Option<String>,
    parts: Vec<(String, Checkpoint)>,
) -> Result<Vec<Message>, Problem> {
    // Weights may come after the config that they belong to.
    let typed = config.or_else(|| session.form.with_untracked(|form| form.config.clone()));
    let config = typed.map(|text| parse_json("model.config", &text)).transpose()?;
    let imported = Imported::new(together(parts)?, config)?;
    let file = serde_json::to_value(&imported.file).unwrap_or_default();
    let dtype = imported.dtype.map(oom_ledger_core::model::DType::id);
    session.steps.update(|n| *n += 1);
    session.link.set(None);
    session.form.update(|form| {
        form.config = serde_json::to_string_pretty(&imported.config).ok();
        form.file = Some(file);
        form.set("weights.quantization", imported.quantization.as_deref().unwrap_or_default());
        if let Some(dtype) = dtype {
            form.set("weights.dtype", dtype);
        }
    });
    Ok(imported.warnings)
}

/// What `file` is, by name first: only a config is read whole.
async fn part(file: &web_sys::File) -> Result<Part, Problem> {
    let (name, length) = (file.name(), file.size() as u64);
    let lower = name.to_ascii_lowercase();
    let refuse = |id| {
        let message = Message::new(id).with("file", name.clone()).with("most", Bytes(LARGEST));
        Problem::new("model.config", message)
    };
    let checkpoint = [".gguf", ".safetensors", ".index.json"].iter().any(|end| lower.ends_with(end));
    if checkpoint {
        return Ok(Part::Checkpoint(name.clone(), header(file, &name, length).await?));
    }
    if length > LARGEST {
        return Err(refuse("site.file_too_large"));
    }
    let text = JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string());
    let text = text.ok_or_else(|| refuse("site.file_unreadable"))?;
    // An index under another name.
    let index = text.contains("\"weight_map\"")
        && serde_json::from_str::<Value>(&text).is_ok_and(|value| value.get("weight_map").is_some());
    if index {
        return Ok(Part::Checkpoint(name.clone(), header(file, &name, length).await?));
    }
    Ok(Part::Config(text))
}

/// The header of a checkpoint, slice by slice.
async fn header(file: &web_sys::File, name: &str, length: u64) -> Result<Checkpoint, Problem> {
    let unreadable = || {
        let message = Message::new("site.file_unreadable").with("file", name).with("most", Bytes(LARGEST));
        Problem::new("model.config", message)
    };
    let (mut bytes, mut wanted) = (Vec::new(), FIRST.min(length));
    loop {
        let have = bytes.len() as u64;
        let slice = file.slice_with_f64_and_f64(have as f64, wanted as f64).map_err(|_| unreadable())?;
        let buffer = JsFuture::from(slice.array_buffer()).await.map_err(|_| unreadable())?;
        let buffer = js_sys::Uint8Array::new(buffer.unchecked_ref::<js_sys::ArrayBuffer>());
        if u64::from(buffer.length()) != wanted.saturating_sub(have) {
            return Err(unreadable());
        }
        bytes.extend(buffer.to_vec());
        match read_header(name, &bytes, length)? {
            Header::Whole(checkpoint) => return Ok(checkpoint),
            Header::Need(more) => wanted = more,
        }
    }
}
