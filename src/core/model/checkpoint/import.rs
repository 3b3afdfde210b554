//! From a checkpoint to the parts of a Scenario: the model's config, and what its weights take.

use super::{Checkpoint, FIELD, Format, Summary, gguf_config};
use crate::model::{DType, Model};
use crate::units::{Bytes, Message, Problem};
use serde_json::Value;

/// What a checkpoint puts into a Scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// For `model.config`.
    pub config: Value,
    /// For `weights.file`.
    pub file: Summary,
    /// For `weights.dtype`: the float format of the file.
    pub dtype: Option<DType>,
    /// For `weights.quantization`: the mix of a GGUF file, e.g. `gguf:Q4_K_M`.
    pub quantization: Option<String>,
    /// What a person should know about the files.
    pub warnings: Vec<Message>,
}

impl Imported {
    /// Puts `checkpoint` and the `config.json` that stands beside it together. A GGUF file brings its own config;
    /// one beside it is used where the file's architecture is not modelled.
    ///
    /// Errors: files are missing and nothing states the total; no config for a safetensors file; a GGUF file of an
    /// architecture that is not modelled. Each says what the weights take as far as they are known.
    pub fn new(mut checkpoint: Checkpoint, config: Option<Value>) -> Result<Imported, Problem> {
        if !checkpoint.missing.is_empty() {
            let shown: Vec<_> = checkpoint.missing.iter().take(3).map(String::as_str).collect();
            let message = Message::new("checkpoint.shards_missing")
                .with("count", checkpoint.missing.len() as u64)
                .with("names", shown.join(", "));
            if checkpoint.declared_bytes.is_none() {
                return Err(Problem::new(FIELD, message.with("weights", Bytes(checkpoint.bytes()?))));
            }
            // The index knows the total; a part of the tensors would count as all of them.
            checkpoint.tensors.clear();
            checkpoint.format = Format::Index;
        }
        let file = Summary::new(&checkpoint)?;
        let weights = file.bytes()?;
        let config = match (checkpoint.format, config) {
            (Format::Gguf, beside) => match (gguf_config(&checkpoint), beside) {
                (Ok(config), _) => config,
                (Err(problem), None) => return Err(problem),
                (Err(_), Some(beside)) => beside,
            },
            (_, Some(config)) => config,
            (_, None) => {
                let message = Message::new("checkpoint.needs_config").with("weights", Bytes(weights));
                return Err(Problem::new("model.config", message));
            }
        };
        Model::from_config("config.json", &config)?;
        let gguf = file.format == Format::Gguf;
        Ok(Imported {
            config,
            dtype: file.float().filter(|_| !gguf),
            quantization: file.kind.as_ref().filter(|_| gguf).map(|kind| format!("gguf:{kind}")),
            file,
            warnings: checkpoint.warnings,
        })
    }
}
