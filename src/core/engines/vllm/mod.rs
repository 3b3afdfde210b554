//! vLLM: what its workers take from a device, by version. V1 from 0.8, V0 before.
//!
//! A share of device total is the budget. A profile run finds the activation peak; the rest of the budget becomes
//! the KV pool, in blocks shared by groups of layers. Files: `version` (which rules), `settings` (defaults),
//! `profile`, `graphs`, `costs` (what is subtracted), `host` (what lies beside the device), `kv_groups` (blocks), `refusal`, `rows` and `ledger` (the
//! answer), `surface` (the answer at many points).

mod beside;
mod costs;
mod graphs;
mod host;
mod kv_groups;
mod ledger;
mod notes;
mod profile;
mod ranks;
mod refusal;
mod rows;
mod settings;
mod surface;
mod version;

use super::{Detail, Engine, EngineOption, Inputs, Surface, option};
use crate::memory::Ledger;
use crate::units::Problem;

/// vLLM.
pub(super) struct Vllm;

/// Options that matter, with their defaults in the newest version.
const OPTIONS: &[EngineOption] = &[
    option("max_model_len", "--max-model-len", "the model's own"),
    option("gpu_memory_utilization", "--gpu-memory-utilization", "0.92 (0.9 before 0.22)"),
    option("kv_cache_dtype", "--kv-cache-dtype", "auto"),
    option("block_size", "--block-size", "16 (64 for latent kernels)"),
    option("max_num_seqs", "--max-num-seqs", "1024 from 70 GiB, else 256"),
    option("max_num_batched_tokens", "--max-num-batched-tokens", "8192 from 70 GiB, else 2048"),
    option("enforce_eager", "--enforce-eager", "off"),
    option("num_speculative_tokens", "--speculative-config", "0"),
    option("prefix_caching", "--enable-prefix-caching", "on"),
    option("kv_cache_memory_bytes", "--kv-cache-memory-bytes", "from the profile run"),
    option("num_gpu_blocks_override", "--num-gpu-blocks-override", "what the pool holds"),
    option("max_cudagraph_capture_size", "--max-cudagraph-capture-size", "512, or twice max_num_seqs"),
    option("max_loras", "--max-loras", "off (1 with --enable-lora)"),
    option("max_lora_rank", "--max-lora-rank", "16"),
    option("cpu_offload_bytes", "--cpu-offload-gb", "0"),
    option("swap_space_bytes", "--swap-space", "4 GiB (V0 only)"),
    option("sleep_level", "--enable-sleep-mode", "off"),
    option("images_per_prompt", "--limit-mm-per-prompt", "the model's own"),
    option("max_logprobs", "logprobs", "off"),
    option("prompt_logprobs", "prompt_logprobs", "off"),
    option("engine_version", "vllm --version", "0.29"),
];

impl Engine for Vllm {
    fn id(&self) -> &'static str {
        "vllm"
    }
    fn name(&self) -> &'static str {
        "vLLM"
    }
    fn options(&self) -> &'static [EngineOption] {
        OPTIONS
    }
    fn ledger(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        ledger::ledger(inputs, Detail::Whole)
    }
    fn figures(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        ledger::ledger(inputs, Detail::Figures)
    }
    fn margin(&self, inputs: &Inputs<'_>) -> Result<i128, Problem> {
        ledger::margin(inputs)
    }
    fn surface(&self, inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
        surface::surface(inputs)
    }
}
