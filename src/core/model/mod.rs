//! Layer 1: what a model is. A Hugging Face `config.json` becomes tensors by name, shape and layer.

mod dtype;
mod presets;
mod quantization;
mod types;

pub use dtype::{DType, KvDType};
pub use presets::{PRESETS, Preset, preset};
pub use quantization::Quantization;
pub use types::{
    Attention, AttentionKind, Layer, Mlp, MlpKind, Model, RecurrentState, Sharding, TensorClass, TensorGroup,
    VisionEncoder,
};
