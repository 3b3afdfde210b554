//! The families of texts that are read, one file each.

mod cuda;
mod ggml;
mod host;
mod lmdeploy;
mod nccl;
mod ollama;
mod sglang;
mod tgi;
mod torch_oom;
mod torch_stats;
mod training;
mod trtllm;
mod vllm;
mod vllm_config;
mod xla;

use super::rule::Rule;

/// One family.
#[derive(Clone, Copy)]
pub struct Reader {
    /// Id, as in the JSON's `format`.
    pub id: &'static str,
    /// Its messages.
    pub(crate) rules: &'static [Rule],
}

const fn reader(id: &'static str, rules: &'static [Rule]) -> Reader {
    Reader { id, rules }
}

/// Every family.
pub const READERS: &[Reader] = &[
    reader("pytorch-oom", torch_oom::RULES),
    reader("pytorch-memory-stats", torch_stats::RULES),
    reader("pytorch-snapshot", &[]),
    reader("cuda-error", cuda::RULES),
    reader("nccl", nccl::RULES),
    reader("vllm", vllm::ERRORS),
    reader("vllm-log", vllm::START),
    reader("vllm-log", vllm_config::RULES),
    reader("sglang-log", sglang::RULES),
    reader("tgi-log", tgi::RULES),
    reader("tensorrt-llm-log", trtllm::RULES),
    reader("lmdeploy-log", lmdeploy::RULES),
    reader("llama-cpp", ggml::ERRORS),
    reader("llama-cpp-log", ggml::START),
    reader("ollama-log", ollama::RULES),
    reader("xla", xla::RULES),
    reader("training-log", training::RULES),
    reader("host-kill", host::RULES),
];
