//! Options with the defaults of the version and of the device, checked.

use super::fraction::{Reserve, fraction};
use super::version::{Choice, Version};
use crate::engines::Inputs;
use crate::memory::kv_cache::kv_dtype;
use crate::model::{AttentionKind, KvDType};
use crate::units::{Bytes, Message, Problem};

/// KV formats of SGLang; `nvfp4` is its `fp4_e2m1`: two values a byte and a scale for every 16.
const ACCEPTED: &[&str] = &["bf16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "nvfp4"];

/// Settings of a run, all known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) version: Version,
    /// f: share of the memory that is free before weights are loaded.
    pub(super) fraction: f64,
    /// The person set it.
    pub(super) explicit_fraction: bool,
    /// Longest request.
    pub(super) context: u64,
    pub(super) explicit_context: bool,
    /// Tokens of a page.
    pub(super) page: u64,
    /// Requests at once, where given.
    pub(super) requests: Option<u64>,
    /// Tokens of a prefill chunk on one rank.
    pub(super) chunk: u64,
    /// Largest batch of a captured decode graph; 0: no graphs.
    pub(super) graphs: u64,
    /// Token counts for which prefill is captured.
    pub(super) buckets: u64,
    /// Ranks that share attention.
    pub(super) attention_ranks: u64,
    /// Groups of ranks that run attention for requests of their own.
    pub(super) groups: u64,
    pub(super) radix: bool,
    pub(super) speculative: u64,
    pub(super) kv: KvDType,
    pub(super) window_ratio: f64,
    pub(super) state_ratio: f64,
}

/// Whole MiB that nvidia-smi prints as total, which the defaults go by.
fn smi_mib(inputs: &Inputs<'_>) -> u64 {
    match inputs.device.gpu {
        Some(gpu) if gpu.total_bytes == inputs.device.total_bytes => gpu.smi_total_mib,
        _ => inputs.device.total_bytes / Bytes::MIB,
    }
}

impl Settings {
    /// Reads and checks.
    ///
    /// Errors: names the field that SGLang would not accept.
    pub(super) fn new(inputs: &Inputs<'_>) -> Result<Settings, Problem> {
        let serve = inputs.serve;
        let version = Version::parse(serve.engine_version.as_deref());
        let kv = kv_dtype(&serve.kv_cache_dtype, inputs.weights.dtype)?;
        let auto = matches!(serve.kv_cache_dtype.trim().to_ascii_lowercase().as_str(), "auto" | "");
        if !auto && !ACCEPTED.contains(&kv.id) {
            let accepted = format!("auto, {}", ACCEPTED.join(", "));
            return Err(Problem::not_accepted("job.serve.kv_cache_dtype", kv.id, accepted));
        }
        let context = match serve.max_model_len {
            Some(0) => return Err(Problem::not_accepted("job.serve.max_model_len", 0, "1, 2, …")),
            Some(n) => n,
            None if inputs.model.max_position_embeddings > 0 => inputs.model.max_position_embeddings,
            None => {
                return Err(Problem::new("job.serve.max_model_len", Message::new("sglang.length_unknown")));
            }
        };
        let page = serve.block_size.unwrap_or_else(|| default_page(inputs, version));
        let chunk = serve.max_num_batched_tokens.unwrap_or_else(|| default_chunk(version, smi_mib(inputs)));
        if !(1..=1 << 20).contains(&page) || (version.pages() && !chunk.is_multiple_of(page)) {
            let accepted = format!("1 … 1048576, a divisor of the prefill chunk {chunk}");
            return Err(Problem::not_accepted("job.serve.block_size", page, accepted));
        }
        let groups = attention_groups(inputs)?;
        let graphs = if serve.enforce_eager { 0 } else { graphs(inputs, version) };
        let mla = latent(inputs);
        let drafts = serve.num_speculative_tokens > 0 || inputs.draft.is_some();
        let captures = version.captures_prefill()
            && !(serve.enforce_eager || drafts || serve.dp_attention || inputs.parallel.pipeline > 1);
        let buckets = if captures { buckets(if mla { chunk.min(2048) } else { chunk }) } else { 0 };
        let reserve = Reserve {
            smi_mib: smi_mib(inputs),
            ranks: inputs.parallel.tensor.saturating_mul(inputs.parallel.pipeline),
            tensor: inputs.parallel.tensor,
            chunk,
            graphs: if serve.enforce_eager && !version.graphs_stop_at_seats() {
                graphs_default(inputs, version)
            } else {
                graphs
            },
            buckets,
            groups: if serve.dp_attention { groups } else { 0 },
            mla,
            drafts,
            vision: inputs.model.vision.map(|v| (v.layers, v.hidden_size)),
        };
        let fraction = match serve.mem_fraction_static {
            // Written so that NaN is refused.
            Some(f) if f > 0.0 && f <= 1.0 => f,
            Some(f) => return Err(Problem::not_accepted("job.serve.mem_fraction_static", f, "0 < f ≤ 1")),
            None => fraction(version, &reserve),
        };
        for (field, value) in [
            ("job.serve.max_num_seqs", serve.max_num_seqs),
            ("job.serve.max_num_batched_tokens", serve.max_num_batched_tokens),
            ("job.serve.max_total_tokens", serve.max_total_tokens),
        ] {
            if value == Some(0) {
                return Err(Problem::not_accepted(field, 0, "1, 2, …"));
            }
        }
        Ok(Settings {
            version,
            fraction,
            explicit_fraction: serve.mem_fraction_static.is_some(),
            context,
            explicit_context: serve.max_model_len.is_some(),
            page,
            requests: serve.max_num_seqs,
            chunk: if serve.dp_attention { (chunk / groups).max(1) } else { chunk },
            graphs,
            buckets,
            attention_ranks: inputs.parallel.tensor.max(1) / groups,
            groups,
            radix: serve.prefix_caching,
            speculative: serve.num_speculative_tokens,
            kv,
            window_ratio: serve.swa_full_tokens_ratio.unwrap_or(0.8),
            state_ratio: serve.mamba_full_memory_ratio.unwrap_or(0.9),
        })
    }
}

/// Whether the model caches latents.
pub(super) fn latent(inputs: &Inputs<'_>) -> bool {
    inputs.model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Mla { .. }))
}

/// One token; 64 where the default kernels of data-centre Blackwell ask for it.
fn default_page(inputs: &Inputs<'_>, version: Version) -> u64 {
    let blackwell = inputs.device.gpu.is_some_and(|g| (100..110).contains(&g.arch));
    if blackwell && version.paged_blackwell() { 64 } else { 1 }
}

/// Tokens of a prefill chunk by size of the device.
fn default_chunk(version: Version, smi_mib: u64) -> u64 {
    match version.choice() {
        Choice::ByRanks | Choice::ByRanksAndSize => {
            if smi_mib < 25_000 && version.small_chunks() {
                2048
            } else {
                8192
            }
        }
        Choice::ReserveBySize => match smi_mib {
            0..35_840 => 2048,
            35_840..163_840 => 8192,
            _ => 16_384,
        },
        Choice::ReserveByWork => match smi_mib {
            20_480..35_840 if version.larger_small_devices() => 4096,
            0..35_840 => 2048,
            35_840..61_440 => 4096,
            61_440..163_840 => 8192,
            _ => 16_384,
        },
    }
}

fn graphs(inputs: &Inputs<'_>, version: Version) -> u64 {
    let serve = inputs.serve;
    serve.max_cudagraph_capture_size.unwrap_or_else(|| {
        let default = graphs_default(inputs, version);
        match serve.max_num_seqs {
            Some(n) if version.graphs_stop_at_seats() => default.min(n),
            _ => default,
        }
    })
}

/// Largest captured decode batch by size of the device and ranks.
fn graphs_default(inputs: &Inputs<'_>, version: Version) -> u64 {
    let few = inputs.parallel.tensor < 4;
    let pick = |below_four: u64, from_four: u64| if few { below_four } else { from_four };
    let mib = smi_mib(inputs);
    match version.choice() {
        Choice::ByRanks | Choice::ByRanksAndSize => match mib {
            0..25_000 => pick(8, 80),
            98_304.. => 256,
            _ => 160,
        },
        Choice::ReserveBySize => match mib {
            0..35_840 => pick(8, 80),
            35_840..92_160 => 160,
            92_160..160_000 => 256,
            _ => 512,
        },
        Choice::ReserveByWork => match mib {
            0..20_480 => 8,
            20_480..35_840 if version.larger_small_devices() => pick(48, 160),
            20_480..35_840 if version.graphs_to_24() => pick(24, 80),
            20_480..35_840 => pick(16, 80),
            35_840..61_440 => pick(32, 160),
            61_440..163_840 => pick(256, 512),
            _ => 512,
        },
    }
}

/// Captured token counts of prefill up to `most` (`generate_prefill_cuda_graph_batch_sizes`).
fn buckets(most: u64) -> u64 {
    let steps = |from: u64, to: u64, step: u64| {
        let to = to.min(most);
        if to < from { 0 } else { (to - from) / step + 1 }
    };
    steps(4, 32, 4)
        + steps(48, 256, 16)
        + steps(288, 512, 32)
        + steps(576, 1024, 64)
        + steps(1280, 4096, 256)
        + steps(4608, most, 512)
}

/// Groups of ranks with requests of their own: `--dp-size` under data-parallel attention, every rank where the
/// degree is left at one.
fn attention_groups(inputs: &Inputs<'_>) -> Result<u64, Problem> {
    let (tensor, data) = (inputs.parallel.tensor.max(1), inputs.parallel.data.max(1));
    if !inputs.serve.dp_attention {
        return Ok(1);
    }
    let groups = if data > 1 { data } else { tensor };
    if tensor.is_multiple_of(groups) {
        return Ok(groups);
    }
    let divisors: Vec<_> = (1..=tensor.min(64)).filter(|d| tensor.is_multiple_of(*d)).collect();
    let accepted = divisors.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    Err(Problem::not_accepted("parallel.data", data, accepted))
}

#[cfg(test)]
mod tests {
    use super::buckets;

    /// sgl-project/sglang#39713 counts 58 pieces for a chunk of 8192 tokens.
    #[test]
    fn pieces_of_a_chunk() {
        assert_eq!(buckets(8192), 58);
        assert_eq!(buckets(3), 0);
        assert_eq!(buckets(32), 8);
    }
}
