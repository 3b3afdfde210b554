//! Number formats of weights and caches.

use serde::{Deserialize, Serialize};

/// Number format of weights and activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// 32-bit float.
    Fp32,
    /// IEEE half precision.
    Fp16,
    /// bfloat16.
    #[default]
    Bf16,
}

impl DType {
    /// e: bytes per element.
    pub const fn bytes(self) -> u64 {
        match self {
            DType::Fp32 => 4,
            DType::Fp16 | DType::Bf16 => 2,
        }
    }

    /// The id used in the Scenario document.
    pub const fn id(self) -> &'static str {
        match self {
            DType::Fp32 => "fp32",
            DType::Fp16 => "fp16",
            DType::Bf16 => "bf16",
        }
    }
}

/// Number format of a KV cache, as a block of `elements` stored in `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvDType {
    /// Id as engines name it: `fp16`, `fp8_e4m3`, `q8_0`, `int8`, …
    pub id: &'static str,
    /// Elements of one storage block (1 for plain formats, 32 for ggml's).
    pub elements: u64,
    /// Bytes of one storage block, scales included.
    pub bytes: u64,
}
