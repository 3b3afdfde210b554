//! A Scenario without its defaults: what a person really chose.

use super::{DeviceRef, Job, ModelRef, SCHEMA, Scenario};
use crate::engines::ServeSettings;
use crate::engines::training::TrainSettings;
use crate::memory::{Measured, Parallel, WeightsSpec};
use serde_json::{Map, Value};

/// Tokens of a load that is left out: prompt and answer of the defaults (a test holds them equal).
pub(super) const DEFAULT_LOAD: u64 = 1024 + 256;

impl Scenario {
    /// Model and device as given, everything else at its default: serving with vLLM.
    pub fn new(model: ModelRef, device: DeviceRef) -> Scenario {
        Scenario {
            schema: SCHEMA,
            model,
            draft_model: None,
            device,
            parallel: Parallel::default(),
            weights: WeightsSpec::default(),
            job: Job::Serve(ServeSettings::default()),
            measured: Measured::default(),
        }
    }

    /// The document without fields that hold their default, keys of a config sorted: equal Scenarios give
    /// equal text. [`Scenario::from_json`] reads it back.
    pub fn to_short_json(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let default = Scenario::new(ModelRef::default(), DeviceRef::default());
        let mut default = serde_json::to_value(default).unwrap_or_default();
        if matches!(self.job, Job::Train(_)) {
            default["job"] = serde_json::json!({"train": TrainSettings::default()});
        }
        if let (Value::Object(map), Value::Object(default)) = (&mut value, &default) {
            for (name, inner) in map.iter_mut() {
                match (name.as_str(), inner) {
                    ("model" | "draft_model", Value::Object(model)) => model.values_mut().for_each(sort),
                    ("schema", _) => {}
                    (_, inner) => strip(inner, default.get(name)),
                }
            }
            map.retain(|name, inner| {
                matches!(name.as_str(), "schema" | "model" | "draft_model" | "device")
                    || inner.as_object().is_none_or(|inner| !inner.is_empty())
            });
        }
        // A short length cuts a load that is left out: here it has to stand, default or not.
        let serve = match &self.job {
            Job::Serve(serve) => serve,
            // A job left out is serving: this one has to stand, however little it says.
            Job::Train(_) => {
                if value["job"]["train"].is_null() {
                    value["job"]["train"] = Map::new().into();
                }
                return value;
            }
        };
        if serve.max_model_len.is_some_and(|n| n < DEFAULT_LOAD) {
            value["job"]["serve"]["prompt_tokens"] = serve.prompt_tokens.into();
            value["job"]["serve"]["new_tokens"] = serve.new_tokens.into();
        }
        value
    }
}

/// Removes from `value` what equals `default`.
fn strip(value: &mut Value, default: Option<&Value>) {
    let (Value::Object(map), Some(Value::Object(default))) = (value, default) else { return };
    for (name, inner) in map.iter_mut() {
        strip(inner, default.get(name));
    }
    map.retain(|name, inner| {
        let emptied = inner.as_object().is_some_and(Map::is_empty);
        !inner.is_null() && !emptied && default.get(name) != Some(inner)
    });
}

fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort);
        }
        Value::Array(all) => all.iter_mut().for_each(sort),
        _ => {}
    }
}
