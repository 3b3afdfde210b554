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
    /// `QuantizedCache`: past tokens in few bits, the last ones as they are.
    Quantized,
    /// `DynamicCache` whose layers wait on the host; two are on the device at a time.
    Offloaded,
    /// `StaticCache` whose layers wait on the host.
    OffloadedStatic,
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
    /// Attention implementation (transformers; llama.cpp: flash or eager); `null`: the engine's choice.
    pub attention: Option<AttentionImpl>,
    /// Positions that get logits (transformers).
    pub logits: LogitsKept,
    /// Cache class (transformers).
    pub cache: CacheImpl,
    /// A mask with at least one padded position (transformers).
    pub padding_mask: bool,
    /// vLLM's `--cpu-offload-gb`, in bytes: weights kept on the host.
    pub cpu_offload_bytes: Option<u64>,
    /// vLLM V0's CPU swap space for each device.
    pub swap_space_bytes: Option<u64>,
    /// KV pool of vLLM as given, in place of the profile's.
    pub kv_cache_memory_bytes: Option<u64>,
    /// Number of KV blocks as given, in place of what fits.
    pub num_gpu_blocks_override: Option<u64>,
    /// Largest batch for which CUDA graphs are captured.
    pub max_cudagraph_capture_size: Option<u64>,
    /// LoRA adapters on the device at once; none: LoRA is off.
    pub max_loras: Option<u64>,
    /// Largest rank of a LoRA adapter.
    pub max_lora_rank: Option<u64>,
    /// vLLM's sleep mode: 1 moves weights to the host, 2 drops them.
    pub sleep_level: Option<u64>,
    /// Images allowed in one prompt.
    pub images_per_prompt: Option<u64>,
    /// Log probabilities asked for each token.
    pub max_logprobs: Option<u64>,
    /// Log probabilities of prompt tokens are asked for.
    pub prompt_logprobs: bool,
    /// Share of free memory for the KV pool (TensorRT-LLM, LMDeploy).
    pub free_gpu_memory_fraction: Option<f64>,
    /// Upper limit on tokens in the KV pool (SGLang, TensorRT-LLM, TGI).
    pub max_total_tokens: Option<u64>,
    /// SGLang: tokens of the sliding-window pool to tokens of the full pool.
    pub swa_full_tokens_ratio: Option<f64>,
    /// SGLang: bytes of the recurrent-state pool to bytes of the KV pool.
    pub mamba_full_memory_ratio: Option<f64>,
    /// SGLang: attention is data parallel, the rest tensor parallel.
    pub dp_attention: bool,
    /// llama.cpp: type of the V cache; `null`: as the K cache.
    pub kv_cache_dtype_v: Option<String>,
    /// llama.cpp: sliding-window layers keep the whole context.
    pub swa_full: bool,
    /// llama.cpp: one KV buffer shared by all sequences; `null`: the build's choice.
    pub kv_unified: Option<bool>,
    /// llama.cpp: shares of the devices, e.g. `3,1`.
    pub tensor_split: Option<String>,
    /// llama.cpp: how layers are spread over devices.
    pub split_mode: Option<String>,
    /// llama.cpp: weights are read, not mapped.
    pub no_mmap: bool,
    /// llama.cpp: the KV cache stays on the host.
    pub no_kv_offload: bool,
    /// llama.cpp: layers whose experts stay on the host.
    pub n_cpu_moe: Option<u64>,
    /// Beams of each sequence (transformers).
    pub num_beams: Option<u64>,
    /// Answers of each prompt (transformers).
    pub num_return_sequences: Option<u64>,
    /// Tokens are drawn, not taken greedily (transformers).
    pub do_sample: bool,
    /// How transformers spreads layers over devices; `null`: evenly in order.
    pub device_map: Option<String>,
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
            attention: None,
            logits: LogitsKept::Last,
            cache: CacheImpl::Dynamic,
            padding_mask: false,
            cpu_offload_bytes: None,
            swap_space_bytes: None,
            kv_cache_memory_bytes: None,
            num_gpu_blocks_override: None,
            max_cudagraph_capture_size: None,
            max_loras: None,
            max_lora_rank: None,
            sleep_level: None,
            images_per_prompt: None,
            max_logprobs: None,
            prompt_logprobs: false,
            free_gpu_memory_fraction: None,
            max_total_tokens: None,
            swa_full_tokens_ratio: None,
            mamba_full_memory_ratio: None,
            dp_attention: false,
            kv_cache_dtype_v: None,
            swa_full: false,
            kv_unified: None,
            tensor_split: None,
            split_mode: None,
            no_mmap: false,
            no_kv_offload: false,
            n_cpu_moe: None,
            num_beams: None,
            num_return_sequences: None,
            do_sample: false,
            device_map: None,
            sequences: 1,
            prompt_tokens: 1024,
            new_tokens: 256,
        }
    }
}
