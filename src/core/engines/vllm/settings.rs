//! Options with the defaults of the version, checked.

use super::version::Version;
use crate::engines::Inputs;
use crate::memory::kv_cache::kv_dtype;
use crate::model::{AttentionKind, KvDType};
use crate::units::{Bytes, Message, Problem};

/// KV formats of vLLM; the others of the table belong to llama.cpp.
const ACCEPTED: &[&str] = &[
    "fp32",
    "float32",
    "fp16",
    "float16",
    "half",
    "bf16",
    "bfloat16",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "fp8_inc",
    "int8",
    "nvfp4",
    "fp8_ds_mla",
];

/// Settings of a run, all known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) version: Version,
    /// u: share of device total.
    pub(super) utilization: f64,
    /// Tokens of a block before pages are unified.
    pub(super) block: u64,
    /// Longest request.
    pub(super) max_len: u64,
    /// Longest that the model's config allows; 0 where it states none.
    pub(super) of_model: u64,
    /// The person set it.
    pub(super) explicit_len: bool,
    /// Sequences of one step.
    pub(super) max_seqs: u64,
    /// What it would be on the other kind of device, where only a size is known.
    pub(super) fewest_seqs: u64,
    /// Tokens that the attention kernel wants in steps.
    pub(super) kernel_block: u64,
    /// Tokens of one step where set; the default may follow the length.
    batched: Option<u64>,
    /// At least 70 GiB and no A100: larger default batches.
    large: bool,
    pub(super) eager: bool,
    pub(super) speculative: u64,
    pub(super) prefix_caching: bool,
    pub(super) kv: KvDType,
}

impl Settings {
    /// Reads and checks.
    ///
    /// Errors: names the field that vLLM would not accept.
    pub(super) fn new(inputs: &Inputs<'_>) -> Result<Settings, Problem> {
        let serve = inputs.serve;
        let version = Version::parse(serve.engine_version.as_deref());
        let utilization = serve.gpu_memory_utilization.unwrap_or(version.utilization());
        if !(utilization > 0.0 && utilization <= 1.0) {
            let field = "job.serve.gpu_memory_utilization";
            return Err(Problem::not_accepted(field, utilization, "0 < u ≤ 1"));
        }
        let kv = kv_dtype(&serve.kv_cache_dtype, inputs.weights.dtype)?;
        if !ACCEPTED.contains(&kv.id) {
            let accepted = format!("auto, {}", ACCEPTED.join(", "));
            return Err(Problem::not_accepted("job.serve.kv_cache_dtype", kv.id, accepted));
        }
        let arch = inputs.device.gpu.map(|g| g.arch);
        let large = inputs.device.total_bytes >= 70 * Bytes::GIB && arch != Some(80);
        let max_len = match serve.max_model_len {
            Some(0) => return Err(Problem::not_accepted("job.serve.max_model_len", 0, "1, 2, …")),
            Some(n) => n,
            None if inputs.model.max_position_embeddings > 0 => inputs.model.max_position_embeddings,
            None => return Err(Problem::new("job.serve.max_model_len", Message::new("vllm.length_unknown"))),
        };
        for (field, value) in [
            ("job.serve.max_num_seqs", serve.max_num_seqs),
            ("job.serve.max_num_batched_tokens", serve.max_num_batched_tokens),
        ] {
            if value == Some(0) {
                return Err(Problem::not_accepted(field, 0, "1, 2, …"));
            }
        }
        let default_seqs = if version.v1 && large { 1024 } else { 256 };
        let unknown = inputs.device.gpu.is_none();
        let settings = Settings {
            fewest_seqs: serve.max_num_seqs.unwrap_or(if unknown { 256 } else { default_seqs }),
            kernel_block: kernel_block(inputs, version),
            version,
            utilization,
            block: block(inputs, version)?,
            max_len,
            of_model: inputs.model.longest_positions,
            explicit_len: serve.max_model_len.is_some(),
            max_seqs: serve.max_num_seqs.unwrap_or(default_seqs),
            batched: serve.max_num_batched_tokens,
            large,
            eager: serve.enforce_eager,
            speculative: serve.num_speculative_tokens,
            prefix_caching: serve.prefix_caching,
            kv,
        };
        check_context(inputs)?;
        check_experts(inputs)?;
        check_step(serve.max_num_batched_tokens, serve.max_num_seqs)?;
        Ok(settings)
    }

    /// Tokens of one step when the engine is started for requests of `len` tokens.
    ///
    /// V1 reads prompts in chunks: 2048 tokens, 8192 on devices of 70 GiB and more (A100 excepted) for its
    /// server. V0 read whole prompts up to 32,768 tokens, and in chunks beyond (512; 2048 from 0.6.5).
    pub(super) fn batched(&self, len: u64) -> u64 {
        match self.batched {
            Some(n) => n,
            None if self.version.v1 => {
                let default = if self.large { 8192 } else { 2048 };
                default.min(self.max_seqs.saturating_mul(len))
            }
            None if len > 32_768 && self.version.release >= (0, 6, 5) => 2048,
            None if len > 32_768 && self.version.release >= (0, 5, 1) => 512,
            None => len.max(2048),
        }
    }
}

/// Tokens of a block: set, or 16; the latent kernels of Hopper and data-centre Blackwell take 64.
fn block(inputs: &Inputs<'_>, version: Version) -> Result<u64, Problem> {
    if let Some(n) = inputs.serve.block_size {
        if n == 0 || n > 1 << 20 {
            return Err(Problem::not_accepted("job.serve.block_size", n, "1 … 1048576; 16, 32, 64, 128"));
        }
        return Ok(n);
    }
    Ok(kernel_block(inputs, version))
}

/// What the attention kernel needs.
fn kernel_block(inputs: &Inputs<'_>, version: Version) -> u64 {
    let mla = inputs.model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Mla { .. }));
    let kernel = inputs.device.gpu.is_some_and(|g| matches!(g.arch, 90 | 100 | 103));
    if mla && kernel && version.release >= (0, 8, 0) { 64 } else { 16 }
}

/// `--enable-expert-parallel` takes no degree: it spreads experts over all tensor and data parallel ranks.
fn check_experts(inputs: &Inputs<'_>) -> Result<(), Problem> {
    let all = inputs.parallel.tensor.saturating_mul(inputs.parallel.data);
    let given = inputs.parallel.expert;
    if given == 1 || given == all {
        return Ok(());
    }
    let accepted = if all == 1 { "1".to_owned() } else { format!("1, {all} (tensor · data)") };
    Err(Problem::not_accepted("parallel.expert", given, accepted))
}

/// A step must have room for one token of every sequence (`SchedulerConfig`); a default yields to what is given.
fn check_step(batched: Option<u64>, seqs: Option<u64>) -> Result<(), Problem> {
    match (batched, seqs) {
        (Some(batched), Some(seqs)) if batched < seqs => Err(Problem::not_accepted(
            "job.serve.max_num_batched_tokens",
            batched,
            format!("{seqs}, {}, … (≥ max_num_seqs)", seqs.saturating_add(1)),
        )),
        _ => Ok(()),
    }
}

/// Decode context parallel splits tokens over ranks of the tensor-parallel group.
fn check_context(inputs: &Inputs<'_>) -> Result<(), Problem> {
    let (tensor, context) = (inputs.parallel.tensor, inputs.parallel.context);
    if context == 0 || !tensor.max(1).is_multiple_of(context) {
        let divisors: Vec<_> = (1..=tensor.clamp(1, 64)).filter(|d| tensor.is_multiple_of(*d)).collect();
        let accepted = divisors.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        return Err(Problem::not_accepted("parallel.context", context, accepted));
    }
    Ok(())
}
