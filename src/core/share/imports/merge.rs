//! Several files of one job become one list of fields.

use super::{Imported, Taken};
use crate::units::Message;
use serde_json::{Value, json};

const PRECISION: &str = "job.train.precision";

/// The fields that `files` set, in the order of the files, and where they disagree. What a file says goes before
/// what is only a tool's default; of two files that disagree, the later one counts.
///
/// ```
/// use oom_ledger_core::share::{import, merge};
/// let trainer = import(r#"{"output_dir": "x", "per_device_train_batch_size": 2, "bf16": true}"#).unwrap();
/// let zero = import(r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}"#).unwrap();
/// let (fields, _) = merge(&[trainer, zero]);
/// // Under DeepSpeed, bf16 is bf16 parameters beside fp32 master weights.
/// assert!(fields.contains(&("job.train.precision".to_owned(), "bf16-master".into())));
/// ```
pub fn merge(files: &[Imported]) -> (Vec<(String, Value)>, Vec<Message>) {
    let mut kept: Vec<Taken> = Vec::new();
    let mut messages = Vec::new();
    let deepspeed = files.iter().any(|file| file.deepspeed);
    let all: Vec<Taken> = files.iter().flat_map(|file| file.taken.iter().cloned()).collect();
    for mut taken in all {
        if deepspeed
            && taken.path == PRECISION
            && matches!(taken.value.as_str(), Some("bf16-mixed" | "fp16-mixed"))
        {
            let message = Message::new("imports.under_deepspeed").with("key", taken.from.key.as_str());
            messages.push(message.with("given", shown(&taken.value)));
            taken.value = json!("bf16-master");
        }
        let Some(before) = kept.iter_mut().find(|k| k.path == taken.path) else {
            kept.push(taken);
            continue;
        };
        if taken.implied && !before.implied {
            continue;
        }
        if !taken.implied && !before.implied && before.value != taken.value {
            let message = Message::new("imports.conflict")
                .with("path", taken.path)
                .with("first", before.from.key.as_str())
                .with("first_value", shown(&before.value))
                .with("second", taken.from.key.as_str())
                .with("second_value", shown(&taken.value));
            messages.push(message);
        }
        *before = taken;
    }
    (kept.into_iter().map(|taken| (taken.path.to_owned(), taken.value)).collect(), messages)
}

/// A value as a person reads it.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
