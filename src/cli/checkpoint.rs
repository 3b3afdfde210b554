//! Checkpoints on disk: which files belong together, and their headers, however large they are.

use crate::Failure;
use crate::scenario::{read, refuse};
use oom_ledger_core::model::checkpoint::{Checkpoint, Header, Imported, Shard, read_header, together};
use oom_ledger_core::model::parse_json;
use oom_ledger_core::text::{Lang, message};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What is read of a file before it says how long its header is.
const FIRST: u64 = 64 << 10;

/// Whether a path is read as a checkpoint: a folder that holds one, or a file that is no plain JSON.
pub fn is_one(path: &Path) -> bool {
    if path.is_dir() {
        return !in_folder(path).is_empty();
    }
    path.is_file() && (!has_end(path, ".json") || has_end(path, ".index.json"))
}

/// The fields of a Scenario that the checkpoint at `path` gives, by path.
///
/// Errors: no checkpoint there, a header that cannot be used, an architecture that is not modelled.
pub fn fields(lang: Lang, path: &Path) -> Result<Vec<(String, Value)>, Failure> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let files = if path.is_dir() { in_folder(path) } else { beside(path) };
    if let [first, .., last] = files.as_slice()
        && has_end(first, ".gguf")
        && Shard::parse(&name(first)).is_none_or(|shard| !shard.all().any(|n| n == name(last)))
    {
        let names: Vec<_> = files.iter().map(|file| name(file)).collect();
        let sentence = format!(
            "model: {} holds several GGUF files; name one of them: {}",
            path.display(),
            names.join(", ")
        );
        return Err(Failure::Input(sentence));
    }
    let mut parts = Vec::new();
    let mut at = 0;
    let mut queue = files;
    while let Some(file) = queue.get(at).cloned() {
        at += 1;
        let header = header(lang, &file)?;
        // An index names its files; those that are there are read with it.
        for listed in &header.files {
            let listed = folder.join(listed);
            if listed.is_file() && !queue.contains(&listed) && !has_end(&listed, ".bin") {
                queue.push(listed);
            }
        }
        parts.push((name(&file), header));
    }
    let refused = |problem| refuse(lang, &problem);
    let config = folder.join("config.json");
    let config = if config.is_file() {
        Some(parse_json("model.config", &read(&config)?).map_err(refused)?)
    } else {
        None
    };
    let imported = together(parts).and_then(|whole| Imported::new(whole, config)).map_err(refused)?;
    for warning in &imported.warnings {
        let _ = writeln!(std::io::stderr().lock(), "oom-ledger: {}", message(lang, warning));
    }
    let file = serde_json::to_value(&imported.file).unwrap_or_default();
    let mut all = vec![
        ("model".to_owned(), json!({ "config": imported.config })),
        ("weights.file".to_owned(), file),
        ("weights.quantization".to_owned(), imported.quantization.map_or(Value::Null, Value::from)),
    ];
    if let Some(dtype) = imported.dtype {
        all.push(("weights.dtype".to_owned(), dtype.id().into()));
    }
    Ok(all)
}

/// The header of one file.
fn header(lang: Lang, path: &Path) -> Result<Checkpoint, Failure> {
    let broken = |error: std::io::Error| Failure::Input(format!("cannot read {}: {error}", path.display()));
    let mut file = File::open(path).map_err(broken)?;
    let length = file.metadata().map_err(broken)?.len();
    let (mut bytes, mut wanted) = (Vec::new(), FIRST.min(length));
    loop {
        let missing = wanted.saturating_sub(bytes.len() as u64);
        if (&mut file).take(missing).read_to_end(&mut bytes).map_err(broken)? as u64 != missing {
            return Err(Failure::Input(format!("cannot read {}: it grew shorter meanwhile", path.display())));
        }
        match read_header(&name(path), &bytes, length).map_err(|problem| refuse(lang, &problem))? {
            Header::Whole(checkpoint) => return Ok(checkpoint),
            Header::Need(more) => wanted = more,
        }
    }
}

/// The files that a file's name makes part of the same checkpoint; those that are there.
fn beside(path: &Path) -> Vec<PathBuf> {
    match Shard::parse(&name(path)) {
        Some(shard) => shard.all().map(|n| path.with_file_name(n)).filter(|p| p.is_file()).collect(),
        None => vec![path.to_owned()],
    }
}

/// The files of the checkpoint in a folder: an index, else shards of one name, else all of a kind.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let index = folder.join("model.safetensors.index.json");
    if index.is_file() {
        return vec![index];
    }
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    all.sort();
    let of = |end: &str| all.iter().filter(|path| has_end(path, end)).cloned().collect::<Vec<_>>();
    let mut tensors = of(".safetensors");
    if tensors.is_empty() {
        let mut gguf = of(".gguf");
        // A projector for images goes with a model; it is none.
        gguf.retain(|path| !name(path).starts_with("mmproj"));
        return gguf;
    }
    // Some folders hold the same weights a second time, consolidated or as an adapter.
    if let Some(model) = tensors.iter().find(|path| name(path) == "model.safetensors") {
        return vec![model.clone()];
    }
    if let Some(shard) = tensors.iter().find(|path| Shard::parse(&name(path)).is_some()) {
        return beside(&shard.clone());
    }
    tensors.retain(|path| !name(path).starts_with("adapter"));
    tensors
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

fn has_end(path: &Path, end: &str) -> bool {
    name(path).to_ascii_lowercase().ends_with(end)
}
