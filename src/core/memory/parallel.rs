//! How a job is spread over devices, how its weights are stored, and what was measured instead.

use crate::model::checkpoint::Summary;
use crate::model::{DType, Quantization};
use serde::{Deserialize, Serialize};

fn one() -> u64 {
    1
}

/// Degrees of parallelism; each 1 when left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// t: tensor parallel.
    #[serde(default = "one")]
    pub tensor: u64,
    /// p: pipeline parallel.
    #[serde(default = "one")]
    pub pipeline: u64,
    /// z: data parallel.
    #[serde(default = "one")]
    pub data: u64,
    /// Expert parallel.
    #[serde(default = "one")]
    pub expert: u64,
    /// Context parallel (decode context parallel in vLLM).
    #[serde(default = "one")]
    pub context: u64,
}

impl Default for Parallel {
    fn default() -> Self {
        Parallel { tensor: 1, pipeline: 1, data: 1, expert: 1, context: 1 }
    }
}

/// How weights are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WeightsSpec {
    /// dtype of unquantised tensors.
    pub dtype: DType,
    /// Scheme, or none.
    pub quantization: Option<Quantization>,
    /// The checkpoint itself, as its header describes it: bytes of its tensors instead of a rule's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Summary>,
}

/// Figures from a log or a measurement that replace modelled terms, in bytes per device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Measured {
    /// Weights as the engine printed them.
    pub weights_bytes: Option<u64>,
    /// KV pool as the engine printed it.
    pub kv_available_bytes: Option<u64>,
    /// Peak of activations during the profile run.
    pub activation_peak_bytes: Option<u64>,
    /// Memory outside the framework's allocator (context, libraries, communication).
    pub non_torch_bytes: Option<u64>,
    /// CUDA graphs.
    pub cuda_graph_bytes: Option<u64>,
    /// Everything on the device at its fullest, as nvidia-smi showed it.
    pub device_used_bytes: Option<u64>,
}
