//! The settings that vLLM prints at start: the engine's config and the arguments.
//!
//! Sources: `vllm/engine/llm_engine.py` (`Initializing an LLM engine`), `vllm/config` (`VllmConfig.__str__`),
//! `vllm/entrypoints/utils.py` (`log_non_default_args`), `vllm/entrypoints/openai/api_server.py`.

use crate::evidence::number::Unit::{Bytes, Count, Flag, Real, Word};
use crate::evidence::rule::{Rule, Take};

/// The engine's config, one long line.
const CONFIG: &[Take] = &[
    Take::after("engine_version", "engine (v", Word),
    Take::after("model", "config: model=", Word),
    Take::after("dtype", "dtype=torch.", Word),
    Take::after("max_model_len", "max_seq_len=", Count),
    Take::after("tp", "tensor_parallel_size=", Count),
    Take::after("pp", "pipeline_parallel_size=", Count),
    Take::after("dp", "data_parallel_size=", Count),
    Take::after("quantization", ", quantization=", Word),
    Take::after("kv_cache_dtype", "kv_cache_dtype=", Word),
    Take::after("enforce_eager", "enforce_eager=", Flag),
];

/// Arguments as Python prints a namespace or a dictionary; either spelling.
const ARGUMENTS: &[Take] = &[
    Take::after("model", "'model_tag': ", Word),
    Take::after("model", "'model': ", Word),
    Take::after("model", " model=", Word),
    Take::after("dtype", "'dtype': ", Word),
    Take::after("dtype", ", dtype=", Word),
    Take::after("max_model_len", "max_model_len': ", Count),
    Take::after("max_model_len", "max_model_len=", Count),
    Take::after("tp", "tensor_parallel_size': ", Count),
    Take::after("tp", "tensor_parallel_size=", Count),
    Take::after("pp", "pipeline_parallel_size': ", Count),
    Take::after("pp", "pipeline_parallel_size=", Count),
    Take::after("dp", "'data_parallel_size': ", Count),
    Take::after("dp", ", data_parallel_size=", Count),
    Take::after("gpu_memory_utilization", "gpu_memory_utilization': ", Real),
    Take::after("gpu_memory_utilization", "gpu_memory_utilization=", Real),
    Take::after("max_num_seqs", "max_num_seqs': ", Count),
    Take::after("max_num_seqs", "max_num_seqs=", Count),
    Take::after("max_num_batched_tokens", "max_num_batched_tokens': ", Count),
    Take::after("max_num_batched_tokens", "max_num_batched_tokens=", Count),
    Take::after("block_size", "'block_size': ", Count),
    Take::after("block_size", ", block_size=", Count),
    Take::after("kv_cache_dtype", "kv_cache_dtype': ", Word),
    Take::after("kv_cache_dtype", "kv_cache_dtype=", Word),
    Take::after("quantization", "'quantization': ", Word),
    Take::after("quantization", ", quantization=", Word),
    Take::after("enforce_eager", "enforce_eager': ", Flag),
    Take::after("enforce_eager", "enforce_eager=", Flag),
    Take::after("kv_cache_memory", "kv_cache_memory_bytes': ", Bytes),
    Take::after("kv_cache_memory", "kv_cache_memory_bytes=", Bytes),
];

/// The same as a shell command.
const COMMAND: &[Take] = &[
    Take::after("max_model_len", "--max-model-len=", Count),
    Take::after("max_model_len", "--max-model-len", Count),
    Take::after("tp", "--tensor-parallel-size=", Count),
    Take::after("tp", "--tensor-parallel-size", Count),
    Take::after("tp", "-tp ", Count),
    Take::after("pp", "--pipeline-parallel-size", Count),
    Take::after("gpu_memory_utilization", "--gpu-memory-utilization=", Real),
    Take::after("gpu_memory_utilization", "--gpu-memory-utilization", Real),
    Take::after("max_num_seqs", "--max-num-seqs=", Count),
    Take::after("max_num_seqs", "--max-num-seqs", Count),
    Take::after("max_num_batched_tokens", "--max-num-batched-tokens=", Count),
    Take::after("max_num_batched_tokens", "--max-num-batched-tokens", Count),
    Take::after("kv_cache_dtype", "--kv-cache-dtype=", Word),
    Take::after("kv_cache_dtype", "--kv-cache-dtype", Word),
    Take::after("quantization", "--quantization=", Word),
    Take::after("quantization", "--quantization", Word),
    Take::after("dtype", "--dtype=", Word),
    Take::after("dtype", "--dtype", Word),
    Take::after("block_size", "--block-size", Count),
];

/// Settings.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("Initializing an LLM engine")
        .engine("vllm")
        .reach(3000)
        .takes(CONFIG)
        .more(|w, f| core(w, f, "V0")),
    Rule::new("Initializing a V0 LLM engine")
        .engine("vllm")
        .reach(3000)
        .takes(CONFIG)
        .more(|w, f| core(w, f, "V0")),
    Rule::new("Initializing a V1 LLM engine")
        .engine("vllm")
        .reach(3000)
        .takes(CONFIG)
        .more(|w, f| core(w, f, "V1")),
    Rule::new("non-default args: {").engine("vllm").reach(3000).takes(ARGUMENTS),
    Rule::new("args: Namespace(")
        .engine("vllm")
        .needs(&["gpu_memory_utilization="])
        .reach(6000)
        .takes(ARGUMENTS),
    Rule::new("vllm serve ").engine("vllm").reach(900).takes(COMMAND).more(served),
    Rule::new("vllm.entrypoints.openai.api_server --")
        .engine("vllm")
        .reach(900)
        .takes(COMMAND)
        .more(model_flag),
];

use crate::evidence::found::Found;
use crate::evidence::window::Window;

/// Which of the two engine cores started.
fn core(window: &Window, found: &mut Found, which: &str) {
    found.fact(window, 0, "engine_core", crate::evidence::Figure::Text(which.to_owned()));
}

/// `vllm serve MODEL`.
fn served(window: &Window, found: &mut Found) {
    let at = window.find("vllm serve", 0, window.len()).map_or(0, |(_, e)| e);
    match window.figure(at, Word) {
        Some((crate::evidence::Figure::Text(name), _)) if !name.starts_with('-') && name.contains('/') => {
            found.fact(window, at, "model", crate::evidence::Figure::Text(name));
        }
        _ => model_flag(window, found),
    }
}

fn model_flag(window: &Window, found: &mut Found) {
    for marker in ["--model=", "--model "] {
        if let Some((_, at)) = window.find(marker, 0, window.len())
            && let Some((figure, _)) = window.figure(at, Word)
        {
            found.fact(window, at, "model", figure);
            return;
        }
    }
}
