//! The serving half of the Scenario document: engine options under their own names.

use serde::{Deserialize, Serialize};

/// Which attention runs (transformers engine).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionImpl {
    /// Scores materialised.
    Eager,
    /// `scaled_dot_product_attention`.
    Sdpa,
    /// Flash attention.
    #[default]
    Flash,
}

/// For which positions logits are computed (transformers engine).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogitsKept {
    /// The last position of each sequence (`generate`).
    #[default]
    Last,
    /// Every position (a plain forward).
    All,
}

/// Which cache class is used (transformers engine).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheImpl {
    /// `DynamicCache`: grows by concatenation.
    #[default]
    Dynamic,
    /// `StaticCache`: allocated for the whole length beforehand.
    Static,
    /// Sliding layers keep a ring of the window; full layers grow.
    Sliding,
    /// No cache (`use_cache=False`).
    None,
}

/// Engine options of a serving job. `None` means: the default of that engine and version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeSettings {
    /// Engine id.
    pub engine: String,
    /// Version as logs print it, e.g. `0.10.1`, `0.8.5.post1 (V0)`; `null`: the newest modelled.
    pub engine_version: Option<String>,
    /// `auto`, `fp16`, `bf16`, `fp8`, `fp8_e4m3`, `fp8_e5m2`, `int8`, `q8_0`, …
    pub kv_cache_dtype: String,
    /// Tokens of a KV block; `null`: the engine's choice.
    pub block_size: Option<u64>,
    /// Longest request; `null`: the model's own maximum.
    pub max_model_len: Option<u64>,
    /// Share of device total that vLLM may use.
    pub gpu_memory_utilization: Option<f64>,
    /// SGLang's static share.
    pub mem_fraction_static: Option<f64>,
    /// Sequences scheduled at once.
    pub max_num_seqs: Option<u64>,
    /// Tokens of one scheduler step.
    pub max_num_batched_tokens: Option<u64>,
    /// No CUDA graphs.
    pub enforce_eager: bool,
    /// Speculative tokens per step.
    pub num_speculative_tokens: u64,
    /// Prefix caching.
    pub prefix_caching: bool,
    /// llama.cpp's physical batch.
    pub ubatch: Option<u64>,
    /// llama.cpp's layers on the GPU.
    pub gpu_layers: Option<u64>,
    /// Attention implementation (transformers).
    pub attention: AttentionImpl,
    /// Positions that get logits (transformers).
    pub logits: LogitsKept,
    /// Cache class (transformers).
    pub cache: CacheImpl,
    /// A mask with at least one padded position (transformers).
    pub padding_mask: bool,
    /// B: sequences alive at once.
    pub sequences: u64,
    /// Prompt tokens of each.
    pub prompt_tokens: u64,
    /// New tokens of each.
    pub new_tokens: u64,
}

impl Default for ServeSettings {
    fn default() -> Self {
        ServeSettings {
            engine: "vllm".to_owned(),
            engine_version: None,
            kv_cache_dtype: "auto".to_owned(),
            block_size: None,
            max_model_len: None,
            gpu_memory_utilization: None,
            mem_fraction_static: None,
            max_num_seqs: None,
            max_num_batched_tokens: None,
            enforce_eager: false,
            num_speculative_tokens: 0,
            prefix_caching: true,
            ubatch: None,
            gpu_layers: None,
            attention: AttentionImpl::Flash,
            logits: LogitsKept::Last,
            cache: CacheImpl::Dynamic,
            padding_mask: false,
            sequences: 1,
            prompt_tokens: 1024,
            new_tokens: 256,
        }
    }
}
