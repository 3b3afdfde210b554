//! Layer 1: what a model is. A Hugging Face `config.json` becomes tensors by name, shape and layer.

mod activation;
mod arch;
pub mod checkpoint;
mod dropout;
mod dtype;
mod fields;
pub(crate) mod ggml;
mod json;
mod merge;
mod parse;
mod presets;
mod quantization;
mod quantization_config;
mod rotary;
mod tensors;
mod types;

pub use arch::{ARCHITECTURES, Architecture};
pub use dtype::{DType, KvDType};
pub use json::parse_json;
pub use presets::{PRESETS, Preset, preset};
pub use quantization::Quantization;
pub use types::{
    Activation, Attention, AttentionKind, Dropout, Layer, Mlp, MlpKind, Model, RecurrentState, Sharding,
    TensorClass, TensorGroup, VisionEncoder,
};
