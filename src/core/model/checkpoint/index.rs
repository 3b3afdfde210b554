//! `model.safetensors.index.json`: which tensor stands in which shard, and the bytes of all.
//!
//! Source: `save_pretrained` and `get_checkpoint_shard_files` of transformers.

use super::metadata::{Meta, short};
use super::{Checkpoint, FIELD, Format, Stop, bad, file_message, shown};
use crate::model::parse_json;
use crate::units::Problem;
use serde_json::Value;
use std::collections::BTreeSet;

/// Longest index read, in bytes. That of a model with 90,000 tensors has 9 MiB.
const LONGEST: u64 = 64 << 20;
/// Most shards accepted; the largest public checkpoints have a few hundred.
const MOST_FILES: usize = 10_000;

/// Reads the whole file.
pub(super) fn read(file: &str, prefix: &[u8], length: u64) -> Result<Checkpoint, Stop> {
    if length > LONGEST {
        return Err(Stop::Bad(bad("checkpoint.not_an_index", file)));
    }
    if (prefix.len() as u64) < length {
        return Err(Stop::Need(length));
    }
    let value = parse_json(FIELD, &String::from_utf8_lossy(prefix))?;
    let Some(map) = value.get("weight_map").and_then(Value::as_object) else {
        return Err(Stop::Bad(bad("checkpoint.not_an_index", file)));
    };
    let mut files = BTreeSet::new();
    for shard in map.values() {
        // A name is opened beside the index: nothing else may be reached through it.
        let name = shard.as_str().filter(|n| !n.is_empty() && !n.contains(['/', '\\', '\0']) && *n != "..");
        let Some(name) = name else {
            let message =
                file_message("checkpoint.index_name", file).with("given", shown(&shard.to_string()));
            return Err(Stop::Bad(Problem::new(FIELD, message)));
        };
        if !files.contains(name) {
            files.insert(name.to_owned());
        }
        if files.len() > MOST_FILES {
            return Err(Stop::Bad(bad("checkpoint.not_an_index", file)));
        }
    }
    let mut checkpoint = Checkpoint::new(Format::Index);
    for (key, value) in value.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        let meta = match value {
            Value::Number(n) => n.as_u64().map_or(Meta::Real(n.as_f64().unwrap_or(f64::NAN)), Meta::Whole),
            Value::Bool(b) => Meta::Flag(*b),
            Value::String(text) => Meta::Text(short(text)),
            _ => continue,
        };
        checkpoint.metadata.insert(short(key), meta);
    }
    checkpoint.declared_bytes = checkpoint.metadata.get("total_size").and_then(Meta::whole);
    checkpoint.missing = files.iter().cloned().collect();
    checkpoint.files = checkpoint.missing.clone();
    Ok(checkpoint)
}
