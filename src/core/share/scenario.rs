//! The one input document (design.md 4): permalink, command line, worker and tests use this type.

use crate::engines::training::{TrainInputs, TrainSettings};
use crate::engines::{Inputs, ServeSettings, engine};
use crate::hardware::Device;
use crate::memory::{Measured, Parallel, WeightsSpec};
use crate::model::Model;
use crate::plan::{
    Axis, Estimate, Series, Suggestions, estimate, estimate_training, series, suggest, suggest_training,
    training_series,
};
use crate::units::Problem;
use serde::{Deserialize, Serialize};

/// The input document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of this document; this build reads 1.
    pub schema: u32,
    /// Which model.
    pub model: ModelRef,
    /// The draft model of speculative decoding, or the assistant of assisted generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_model: Option<ModelRef>,
    /// Which device.
    pub device: DeviceRef,
    /// Parallelism.
    #[serde(default)]
    pub parallel: Parallel,
    /// Storage of weights.
    #[serde(default)]
    pub weights: WeightsSpec,
    /// What runs.
    pub job: Job,
    /// Figures that replace modelled terms.
    #[serde(default)]
    pub measured: Measured,
}

/// A preset id or a whole config, with fields to replace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelRef {
    /// Id of a shipped model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// A Hugging Face `config.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<serde_json::Value>,
    /// Fields of the config to replace, e.g. `{"num_hidden_layers": 4}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A device id or a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceRef {
    /// Id of a known device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Or its total, in bytes as the driver reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Devices in use.
    pub count: u64,
    /// Bytes other processes hold on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_processes_bytes: Option<u64>,
}

impl Default for DeviceRef {
    fn default() -> Self {
        DeviceRef { preset: None, total_bytes: None, count: 1, other_processes_bytes: None }
    }
}

/// What runs on the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// There is one in a document; a box would cost every reader more than the bytes.
#[allow(clippy::large_enum_variant)]
pub enum Job {
    /// Serving.
    Serve(ServeSettings),
    /// Training.
    Train(TrainSettings),
}

/// A Scenario whose names have been looked up and whose values have been checked.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The model.
    pub model: Model,
    /// The draft model.
    pub draft: Option<Model>,
    /// The device.
    pub device: Device,
    /// Parallelism.
    pub parallel: Parallel,
    /// Storage of weights.
    pub weights: WeightsSpec,
    /// Engine options; the defaults for a training job.
    pub serve: ServeSettings,
    /// Settings of a training job.
    pub train: Option<TrainSettings>,
    /// Figures that replace modelled terms.
    pub measured: Measured,
}

impl Resolved {
    /// The whole answer for this job.
    ///
    /// Errors: what engine or trainer does not accept, with the field.
    pub fn estimate(&self) -> Result<Estimate, Problem> {
        match self.train_inputs() {
            Some(inputs) => estimate_training(&inputs),
            None => estimate(&self.inputs()),
        }
    }

    /// What could be changed so that this job fits; none where its engine is not known.
    pub fn suggestions(&self) -> Option<Suggestions> {
        match self.train_inputs() {
            Some(inputs) => Some(suggest_training(&inputs)),
            None => Some(suggest(engine(&self.serve.engine).ok()?, &self.inputs())),
        }
    }

    /// Memory against `axis` for this job, in about `samples` samples.
    ///
    /// Errors: what engine or trainer does not accept, with the field.
    pub fn series(&self, axis: Axis, samples: usize) -> Result<Series, Problem> {
        match self.train_inputs() {
            Some(inputs) => training_series(&inputs, axis, samples),
            None => series(&self.inputs(), axis, samples),
        }
    }

    /// The view of a training job; none where the job is serving.
    pub fn train_inputs(&self) -> Option<TrainInputs<'_>> {
        let train = self.train.as_ref()?;
        Some(TrainInputs {
            model: &self.model,
            device: &self.device,
            parallel: self.parallel,
            weights: &self.weights,
            train,
            measured: self.measured,
        })
    }

    /// The view an engine takes.
    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            model: &self.model,
            device: &self.device,
            parallel: self.parallel,
            weights: &self.weights,
            serve: &self.serve,
            measured: self.measured,
            draft: self.draft.as_ref(),
        }
    }
}

/// The whole answer for a Scenario.
pub fn run(scenario: &Scenario) -> Result<Estimate, Problem> {
    scenario.resolve()?.estimate()
}
