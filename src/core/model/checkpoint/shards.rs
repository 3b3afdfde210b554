//! Checkpoints in several files: what belongs together, and what is missing.

use super::{Checkpoint, FIELD, Format, Meta, file_message, shown};
use crate::units::{Message, Problem};
use std::collections::HashSet;

/// Most shards accepted; the largest public checkpoints have a few hundred.
const MOST_FILES: u64 = 10_000;

/// A file name of the form `stem-00002-of-00005.safetensors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    stem: String,
    /// Which one, from 1.
    pub number: u64,
    /// Of how many.
    pub count: u64,
    digits: usize,
    extension: String,
}

impl Shard {
    /// Reads a file name; `None` where it names no shard.
    ///
    /// ```
    /// use oom_ledger_core::model::checkpoint::Shard;
    /// let shard = Shard::parse("model-00002-of-00003.safetensors").unwrap();
    /// assert_eq!((shard.number, shard.count), (2, 3));
    /// assert_eq!(shard.sibling(3), "model-00003-of-00003.safetensors");
    /// assert!(Shard::parse("model.safetensors").is_none());
    /// ```
    pub fn parse(name: &str) -> Option<Shard> {
        let (base, extension) = name.rsplit_once('.')?;
        let (rest, count) = base.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let digits = |text: &str| (4..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(count) || number.len() != count.len() || !digits(number) {
            return None;
        }
        let (number, parsed) = (number.parse().ok()?, count.parse().ok()?);
        let (stem, extension) = (stem.to_owned(), extension.to_owned());
        (number >= 1 && number <= parsed && parsed <= MOST_FILES).then_some(Shard {
            stem,
            number,
            count: parsed,
            digits: count.len(),
            extension,
        })
    }

    /// The name of shard `number` of the same checkpoint.
    pub fn sibling(&self, number: u64) -> String {
        let Shard { stem, count, digits, extension, .. } = self;
        format!("{stem}-{number:0digits$}-of-{count:0digits$}.{extension}")
    }

    /// The names of all its shards.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.count).map(|n| self.sibling(n))
    }
}

/// One checkpoint of the files given, each with its name: an index, shards, or a single file.
///
/// Errors: no file, files of different kinds, or of different checkpoints.
pub fn together(parts: Vec<(String, Checkpoint)>) -> Result<Checkpoint, Problem> {
    let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let expected = expected(&parts);
    let gguf = parts.iter().filter(|(_, part)| part.format == Format::Gguf).count();
    if gguf > 0 && gguf < parts.len() {
        let message = file_message("checkpoint.mixed", &shown(&names.join(", ")));
        return Err(Problem::new(FIELD, message));
    }
    let split = parts.iter().find_map(|(_, p)| p.metadata.get("split.count")?.whole()).filter(|n| *n > 1);
    let split_tensors =
        parts.iter().find_map(|(_, p)| p.metadata.get("split.tensors.count").and_then(Meta::whole));
    let (mut whole, mut seen) = (None::<Checkpoint>, HashSet::new());
    let mut declared = None;
    let mut twice = 0u64;
    for (name, part) in parts {
        declared = declared.or(part.declared_bytes);
        let whole = whole.get_or_insert_with(|| Checkpoint::new(part.format));
        if whole.format == Format::Index {
            whole.format = part.format;
        }
        // An index lists the files; one that is no part of it belongs to another checkpoint.
        if part.format != Format::Index && !expected.is_empty() && !expected.contains(&name) {
            let message = file_message("checkpoint.stranger", &shown(&name));
            return Err(Problem::new(FIELD, message.with("expected", shown(&expected.join(", ")))));
        }
        for tensor in part.tensors {
            if seen.insert(tensor.name.clone()) {
                whole.tensors.push(tensor);
            } else {
                twice += 1;
            }
        }
        for (key, value) in part.metadata {
            whole.metadata.entry(key).or_insert(value);
        }
        whole.warnings.extend(part.warnings);
    }
    let Some(mut whole) = whole else {
        return Err(Problem::new(FIELD, Message::new("checkpoint.none")));
    };
    if twice > 0 {
        whole.warnings.push(Message::new("checkpoint.twice").with("count", twice));
    }
    whole.declared_bytes = declared;
    whole.missing = expected.iter().filter(|file| !names.contains(file)).cloned().collect();
    whole.files = expected;
    // A split file says so under any name; under another than its own its siblings cannot be named.
    if whole.files.is_empty()
        && let Some(expected) = split
        && expected != names.len() as u64
    {
        let message = Message::new("checkpoint.split_files").with("given", names.len() as u64);
        whole.warnings.push(message.with("expected", expected));
    } else if let Some(count) = split_tensors
        && whole.missing.is_empty()
        && count != whole.tensors.len() as u64
    {
        let message = Message::new("checkpoint.split_count").with("given", whole.tensors.len() as u64);
        whole.warnings.push(message.with("expected", count));
    }
    Ok(whole)
}

/// The files that make the checkpoint: those of the index, or the shards that a name counts.
fn expected(parts: &[(String, Checkpoint)]) -> Vec<String> {
    if let Some((_, index)) = parts.iter().find(|(_, part)| part.format == Format::Index) {
        return index.files.clone();
    }
    let shard = parts.iter().find_map(|(name, _)| Shard::parse(name)).filter(|s| s.count > 1);
    shard.map(|shard| shard.all().collect()).unwrap_or_default()
}
