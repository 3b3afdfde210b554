//! Every lever: which field it moves, what moving it costs, and the values worth trying.

use super::Variant;
use crate::engines::Engine;
use crate::hardware::{Device, GPUS, Gpu};
use crate::model::Model;
use serde::Serialize;
use serde_json::{Value, json};

/// What a lever costs, cheapest first: suggestions are ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// The same answers at the same speed.
    Nothing,
    /// Less is left for what the engine takes later.
    Margin,
    /// Slower.
    Speed,
    /// Fewer or shorter requests.
    Requests,
    /// Answers change.
    Accuracy,
    /// More or larger devices.
    Hardware,
}

/// One change: the field's path in the Scenario, and its new value.
pub type Change = (&'static str, Value);

/// The values of a lever.
pub enum Steps {
    /// These sets of changes, mildest first.
    Each(Vec<Vec<Change>>),
    /// The largest whole number below the present one that suffices, in multiples.
    Below {
        /// The present value.
        now: u64,
        /// Never below this.
        least: u64,
        /// Multiples people use.
        multiple: u64,
    },
}

/// What a lever's values depend on.
pub struct Context<'a> {
    /// The job as it is.
    pub job: &'a Variant,
    /// Its model.
    pub model: &'a Model,
    /// Its engine.
    pub engine: &'a dyn Engine,
}

/// One lever.
pub struct Lever {
    /// Id: `lever.<id>` is its text, `lever.<id>.cost` what it costs in words.
    pub id: &'static str,
    /// The field it moves, by its path in the Scenario.
    pub field: &'static str,
    /// What it costs.
    pub cost: Cost,
    /// The values worth trying; none where it does not apply.
    pub steps: fn(&Context<'_>) -> Steps,
}

const fn lever(id: &'static str, field: &'static str, cost: Cost, steps: fn(&Context<'_>) -> Steps) -> Lever {
    Lever { id, field, cost, steps }
}

/// Every lever. Where one helps, the table need not know: both directions are tried and the engine's own
/// accounting tells.
pub const LEVERS: &[Lever] = &[
    lever("other_processes", "device.other_processes_bytes", Cost::Nothing, |c| {
        each("device.other_processes_bytes", (c.job.device.other_processes_bytes > 0).then_some(0))
    }),
    lever("more_max_num_seqs", "job.serve.max_num_seqs", Cost::Margin, |c| {
        let asked = c.job.serve.sequences;
        let short = c.job.serve.max_num_seqs.is_some_and(|n| n < asked);
        each("job.serve.max_num_seqs", short.then_some(asked))
    }),
    lever("more_max_model_len", "job.serve.max_model_len", Cost::Margin, |c| {
        let asked = c.job.serve.prompt_tokens.saturating_add(c.job.serve.new_tokens);
        let short = c.job.serve.max_model_len.is_some_and(|n| n < asked);
        each("job.serve.max_model_len", short.then_some(asked))
    }),
    lever("attention", "job.serve.attention", Cost::Nothing, |_| {
        each("job.serve.attention", ["sdpa", "flash"])
    }),
    lever("logits", "job.serve.logits", Cost::Nothing, |_| each("job.serve.logits", ["last"])),
    lever("cache", "job.serve.cache", Cost::Nothing, |_| each("job.serve.cache", ["dynamic", "sliding"])),
    lever("swa_full", "job.serve.swa_full", Cost::Nothing, |_| each("job.serve.swa_full", [false])),
    lever("gpu_memory_utilization_up", "job.serve.gpu_memory_utilization", Cost::Margin, |_| {
        each("job.serve.gpu_memory_utilization", [0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98])
    }),
    lever("gpu_memory_utilization_down", "job.serve.gpu_memory_utilization", Cost::Requests, |_| {
        each("job.serve.gpu_memory_utilization", [0.9, 0.88, 0.85, 0.8, 0.7])
    }),
    lever("mem_fraction_static_up", "job.serve.mem_fraction_static", Cost::Margin, |_| {
        each("job.serve.mem_fraction_static", [0.85, 0.88, 0.9, 0.92, 0.94])
    }),
    lever("mem_fraction_static_down", "job.serve.mem_fraction_static", Cost::Requests, |_| {
        each("job.serve.mem_fraction_static", [0.85, 0.8, 0.75, 0.7, 0.6])
    }),
    lever("free_gpu_memory_fraction_up", "job.serve.free_gpu_memory_fraction", Cost::Margin, |_| {
        each("job.serve.free_gpu_memory_fraction", [0.85, 0.9, 0.93, 0.95])
    }),
    lever("free_gpu_memory_fraction_down", "job.serve.free_gpu_memory_fraction", Cost::Requests, |_| {
        each("job.serve.free_gpu_memory_fraction", [0.8, 0.7, 0.6, 0.5])
    }),
    lever("max_num_batched_tokens", "job.serve.max_num_batched_tokens", Cost::Speed, |c| {
        let now = c.job.serve.max_num_batched_tokens.unwrap_or(16_384);
        let lower = [8192_u64, 4096, 2048, 1024, 512].into_iter().filter(move |n| *n < now);
        each("job.serve.max_num_batched_tokens", lower)
    }),
    lever("ubatch", "job.serve.ubatch", Cost::Speed, |c| {
        let now = c.job.serve.ubatch.unwrap_or(512);
        each("job.serve.ubatch", [256_u64, 128, 64].into_iter().filter(move |n| *n < now))
    }),
    lever("max_cudagraph_capture_size", "job.serve.max_cudagraph_capture_size", Cost::Speed, |c| {
        let now = c.job.serve.max_cudagraph_capture_size.unwrap_or(512);
        let lower = [256_u64, 128, 64, 32, 8].into_iter().filter(move |n| *n < now);
        each("job.serve.max_cudagraph_capture_size", lower)
    }),
    lever("enforce_eager", "job.serve.enforce_eager", Cost::Speed, |_| {
        each("job.serve.enforce_eager", [true])
    }),
    lever("num_speculative_tokens", "job.serve.num_speculative_tokens", Cost::Speed, |c| {
        let on = c.job.serve.num_speculative_tokens > 0;
        each("job.serve.num_speculative_tokens", on.then_some(0))
    }),
    lever("prefix_caching", "job.serve.prefix_caching", Cost::Speed, |_| {
        each("job.serve.prefix_caching", [false])
    }),
    lever("no_kv_offload", "job.serve.no_kv_offload", Cost::Speed, |_| {
        each("job.serve.no_kv_offload", [true])
    }),
    lever("n_cpu_moe", "job.serve.n_cpu_moe", Cost::Speed, |c| {
        let experts = c.model.tensors.iter().any(|t| t.expert);
        let layers = c.model.layers.len() as u64;
        let now = c.job.serve.n_cpu_moe.unwrap_or(0);
        // An eighth of the layers at a time.
        let eighths = (1..=8_u64).map(move |i| (layers * i).div_ceil(8));
        each("job.serve.n_cpu_moe", eighths.filter(move |n| experts && *n > now))
    }),
    lever("gpu_layers", "job.serve.gpu_layers", Cost::Speed, |c| {
        // The output counts as one layer more.
        let all = c.model.layers.len() as u64 + 1;
        below(c.job.serve.gpu_layers.unwrap_or(all).min(all), 0, 1)
    }),
    lever("max_num_seqs", "job.serve.max_num_seqs", Cost::Requests, |c| {
        // llama.cpp has four slots where nothing is said, Ollama one; the others schedule hundreds.
        let default = match c.engine.id() {
            "llama_cpp" => 4,
            "ollama" => 1,
            _ => 2048,
        };
        let now = c.job.serve.max_num_seqs.unwrap_or(default);
        let least = c.job.serve.sequences;
        let lower = [1024_u64, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1].into_iter();
        each("job.serve.max_num_seqs", lower.filter(move |n| *n < now && *n >= least))
    }),
    lever("max_loras", "job.serve.max_loras", Cost::Requests, |c| {
        let now = c.job.serve.max_loras.unwrap_or(0);
        each("job.serve.max_loras", [8_u64, 4, 2, 1].into_iter().filter(move |n| *n < now))
    }),
    lever("images_per_prompt", "job.serve.images_per_prompt", Cost::Requests, |c| {
        let some = c.job.serve.images_per_prompt.is_none_or(|n| n > 0);
        each("job.serve.images_per_prompt", some.then_some(0_u64))
    }),
    lever("max_model_len", "job.serve.max_model_len", Cost::Requests, |c| {
        let serve = &c.job.serve;
        let now = serve.max_model_len.unwrap_or(c.model.max_position_embeddings);
        let request = serve.prompt_tokens.saturating_add(serve.new_tokens);
        // llama.cpp's context is shared by its slots.
        let shared = if c.engine.id() == "llama_cpp" { serve.sequences } else { 1 };
        below(now, request.saturating_mul(shared), 256)
    }),
    lever("sequences", "job.serve.sequences", Cost::Requests, |c| below(c.job.serve.sequences, 1, 1)),
    lever("prompt_tokens", "job.serve.prompt_tokens", Cost::Requests, |c| {
        below(c.job.serve.prompt_tokens, 1, 256)
    }),
    lever("num_beams", "job.serve.num_beams", Cost::Accuracy, |c| {
        let now = c.job.serve.num_beams.unwrap_or(1);
        each("job.serve.num_beams", (1..now).rev())
    }),
    lever("kv_cache_dtype", "job.serve.kv_cache_dtype", Cost::Accuracy, |_| {
        each("job.serve.kv_cache_dtype", ["fp8", "q8_0", "int8", "q4_0", "int4"])
    }),
    lever("quantization", "weights.quantization", Cost::Accuracy, |c| {
        each("weights.quantization", schemes(c).iter().copied())
    }),
    lever("tensor_parallel", "parallel.tensor", Cost::Hardware, |c| {
        let p = c.job.parallel;
        let more = [2_u64, 4, 8, 16].into_iter().filter(|n| *n > p.tensor);
        let needed = |tensor: u64| {
            let world = tensor.saturating_mul(p.pipeline).saturating_mul(p.data);
            world.max(c.job.device.count)
        };
        let set = |n: u64| vec![("parallel.tensor", json!(n)), ("device.count", json!(needed(n)))];
        Steps::Each(more.map(set).collect())
    }),
    lever("device_count", "device.count", Cost::Hardware, |c| {
        // Where an engine spreads layers by itself; elsewhere more devices change nothing, and nothing is said.
        let now = c.job.device.count;
        each("device.count", [2_u64, 3, 4, 8].into_iter().filter(move |n| *n > now))
    }),
    lever("device", "device.preset", Cost::Hardware, |c| each("device.preset", larger(&c.job.device))),
];

/// Larger whole cards of the same maker, the smallest first.
pub(super) fn larger(now: &Device) -> impl Iterator<Item = &'static str> {
    // A part of a card, and memory shared with the host, are no way up.
    let vendor = |g: &Gpu| now.gpu.is_none_or(|own| own.vendor == g.vendor);
    let whole = |g: &Gpu| !g.unified && !g.name.contains("MIG");
    let mut larger: Vec<_> =
        GPUS.iter().filter(|g| g.total_bytes > now.total_bytes && whole(g) && vendor(g)).collect();
    larger.sort_by_key(|g| g.total_bytes);
    larger.into_iter().map(|g| g.id)
}

pub(super) fn each<T: Into<Value>>(field: &'static str, values: impl IntoIterator<Item = T>) -> Steps {
    Steps::Each(values.into_iter().map(|value| vec![(field, value.into())]).collect())
}

pub(super) fn below(now: u64, least: u64, multiple: u64) -> Steps {
    Steps::Below { now, least, multiple }
}

/// Schemes that the engine loads, from most to fewest bytes. A checkpoint that declares a scheme is not stored
/// again in another one, except as GGUF.
fn schemes(c: &Context<'_>) -> &'static [&'static str] {
    match c.engine.id() {
        "llama_cpp" | "ollama" => {
            &["gguf:Q8_0", "gguf:Q6_K", "gguf:Q5_K_M", "gguf:Q4_K_M", "gguf:Q3_K_M", "gguf:Q2_K"]
        }
        _ if c.model.quantization.is_some() => &[],
        "transformers" => &["bnb-int8", "bnb-nf4"],
        _ => &["fp8", "awq-int4"],
    }
}
