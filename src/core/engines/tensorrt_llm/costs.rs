//! What the start-up takes before the pool, and the pool.

use super::version::Version;
use crate::engines::pooled::{End, Span, product, widest_layer};
use crate::engines::{Detail, Inputs};
use crate::memory::context::{communication, context_overhead, library_workspace, non_torch_growth};
use crate::memory::kv_cache::{bytes_per_token, kv_dtype};
use crate::memory::weights::{Layout, weights, weights_figures};
use crate::memory::{Parallel, Term};
use crate::model::{AttentionKind, KvDType};
use crate::units::{Bytes, Message, Problem};

/// Everything that decides the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) version: Version,
    /// f: `free_gpu_memory_fraction`.
    pub(super) fraction: f64,
    /// `max_tokens`.
    pub(super) asked: Option<u64>,
    /// Whether `max_tokens` bounds the share, or stands in its place.
    pub(super) share_holds: bool,
    pub(super) block: u64,
    /// Bytes of a token over the layers of the fullest stage.
    pub(super) token_bytes: u64,
    pub(super) longest: u64,
    pub(super) explicit_longest: bool,
    pub(super) sequences: u64,
    /// T: tokens of one step.
    pub(super) step: u64,
    pub(super) total: u64,
    pub(super) context: Span,
    pub(super) communication: Span,
    pub(super) others: u64,
    pub(super) weights: Span,
    /// Execution context of an engine, or the peak of the PyTorch backend's profile run.
    pub(super) activations: Span,
    /// Runtime buffers and decoder of an engine.
    pub(super) buffers: Span,
    pub(super) graphs: Span,
    pub(super) printed: Option<u64>,
}

fn not_modelled(what: &'static str) -> Problem {
    Problem::new("model", Message::new("tensorrt_llm.not_modelled").with("what", what))
}

impl Costs {
    /// Costs of a job, and the row of the weights.
    ///
    /// Errors: settings or models that TensorRT-LLM does not take, or whose rule is not known.
    pub(super) fn new(inputs: &Inputs<'_>, detail: Detail) -> Result<(Costs, Term), Problem> {
        let (serve, model, measured) = (inputs.serve, inputs.model, inputs.measured);
        let version = Version::parse(serve.engine_version.as_deref());
        let fraction = serve.free_gpu_memory_fraction.unwrap_or(version.share());
        // Written so that NaN is refused.
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Problem::not_accepted("job.serve.free_gpu_memory_fraction", fraction, "0 < f < 1"));
        }
        for (field, value) in [
            ("job.serve.max_model_len", serve.max_model_len),
            ("job.serve.max_num_seqs", serve.max_num_seqs),
            ("job.serve.max_num_batched_tokens", serve.max_num_batched_tokens),
            ("job.serve.max_total_tokens", serve.max_total_tokens),
        ] {
            if value == Some(0) {
                return Err(Problem::not_accepted(field, 0, "1, 2, …"));
            }
        }
        let block = serve.block_size.unwrap_or(version.block());
        if !block.is_power_of_two() || block > 1 << 20 {
            return Err(Problem::not_accepted("job.serve.block_size", block, "8, 16, 32, 64, 128, …"));
        }
        let longest = match serve.max_model_len {
            Some(n) => n,
            None if model.max_position_embeddings > 0 => model.max_position_embeddings,
            None => {
                let message = Message::new("tensorrt_llm.length_unknown");
                return Err(Problem::new("job.serve.max_model_len", message));
            }
        };
        let arch = inputs.device.gpu.map(|g| g.arch);
        let parallel = Parallel { data: 1, ..inputs.parallel };
        let of_weights = match detail {
            Detail::Whole => weights,
            Detail::Figures => weights_figures,
        };
        let term =
            of_weights(model, inputs.weights, parallel, Layout::serving(arch), measured.weights_bytes)?;
        let sequences = serve.max_num_seqs.unwrap_or(version.sequences());
        let step = serve.max_num_batched_tokens.unwrap_or(8192);
        let before = measured.non_torch_bytes;
        let costs = Costs {
            version,
            fraction,
            asked: serve.max_total_tokens,
            share_holds: !version.engines || serve.free_gpu_memory_fraction.is_some(),
            block,
            token_bytes: token_bytes(inputs, version)?,
            longest,
            explicit_longest: serve.max_model_len.is_some(),
            sequences,
            step,
            total: inputs.device.total_bytes,
            context: before.map_or_else(|| around(arch), Span::exactly),
            communication: if before.is_some() {
                Span::default()
            } else {
                communication(inputs.parallel.tensor.max(inputs.parallel.pipeline)).into()
            },
            others: if before.is_some() { 0 } else { inputs.device.other_processes_bytes },
            weights: Span { point: term.bytes, low: term.low, high: term.high },
            activations: measured
                .activation_peak_bytes
                .map_or_else(|| forward(inputs, version, step), Span::exactly),
            buffers: buffers(inputs, version, sequences),
            graphs: graphs(inputs, version, sequences),
            printed: measured.kv_available_bytes,
        };
        Ok((costs, term))
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.token_bytes.saturating_mul(self.block).max(1)
    }

    /// Free once the weights are there.
    pub(super) fn after_load(&self, end: End) -> i128 {
        let taken = [self.context, self.communication, self.weights]
            .iter()
            .fold(self.others, |sum, s| sum.saturating_add(end.of(*s)));
        i128::from(self.total) - i128::from(taken)
    }

    /// Free when the pool is reckoned.
    pub(super) fn free(&self, end: End) -> i128 {
        [self.activations, self.buffers, self.graphs]
            .iter()
            .fold(self.after_load(end), |left, s| left - i128::from(end.of(*s)))
    }

    /// Tokens of the pool before they are rounded to blocks.
    fn unrounded(&self, end: End) -> u64 {
        let bytes =
            |share: f64| u64::try_from(self.free(end).max(0)).map_or(0, |free| (free as f64 * share) as u64);
        let fit = self.printed.unwrap_or_else(|| bytes(self.fraction)) / self.token_bytes.max(1);
        match self.asked {
            _ if self.printed.is_some() => fit,
            Some(asked) if self.share_holds => asked.min(fit),
            Some(asked) => asked,
            None => fit,
        }
    }

    /// Blocks of the pool, rounded up; what a log printed was rounded already.
    pub(super) fn blocks(&self, end: End) -> u64 {
        let tokens = self.unrounded(end);
        if self.printed.is_some() { tokens / self.block } else { tokens.div_ceil(self.block) }
    }

    /// The figure of the line that TensorRT-LLM prints.
    pub(super) fn token_line(&self) -> u64 {
        if self.version.prints_whole_blocks() {
            self.blocks(End::Point).saturating_mul(self.block)
        } else {
            self.unrounded(End::Point)
        }
    }
}

/// Context, kernels and library handles.
fn around(arch: Option<u32>) -> Span {
    let (a, b, c) = (context_overhead(arch), non_torch_growth(arch, 1), library_workspace(arch));
    Span { point: a.point + b.point + c.point, low: a.low + b.low + c.low, high: a.high + b.high + c.high }
}

/// The forward pass over T tokens. An engine's execution context took 1.3, 1.6 and 2.7 times the widest layer
/// (GPT-J 6B, Llama 2 7B, an engine of 15,388 MiB), the PyTorch backend's profile run about as much as vLLM's.
fn forward(inputs: &Inputs<'_>, version: Version, step: u64) -> Span {
    let widest =
        product(&[step, widest_layer(inputs.model, inputs.parallel.tensor), inputs.weights.dtype.bytes()]);
    if version.engines {
        Span { point: widest.saturating_add(widest / 2), low: widest / 4 * 3, high: widest.saturating_mul(3) }
    } else {
        Span { point: widest, low: widest / 2, high: widest.saturating_mul(2) }
    }
}

/// Bytes that runtime buffers and decoder take per sequence and vocabulary entry, in tenths: 28.6, 28.6 and 29.1 in
/// three logs (Llama 2 7B for 256 sequences, GPT-J 6B for 4096, Qwen2.5 0.5B for 2048).
pub(super) const BUFFER_TENTHS: u64 = 287;

/// Runtime buffers and decoder of an engine; the PyTorch backend has none.
fn buffers(inputs: &Inputs<'_>, version: Version, sequences: u64) -> Span {
    if !version.engines {
        return Span::default();
    }
    let of = |tenths: u64| product(&[sequences, inputs.model.vocab_size, tenths]) / 10;
    Span { point: of(BUFFER_TENTHS), low: of(200), high: of(310) }
}

/// Graphs of the PyTorch backend, of up to 128 sequences by default. No log of it prints their size: the range is
/// that of vLLM's and SGLang's for as many sizes.
fn graphs(inputs: &Inputs<'_>, version: Version, sequences: u64) -> Span {
    if let Some(bytes) = inputs.measured.cuda_graph_bytes {
        return Span::exactly(bytes);
    }
    let most = inputs.serve.max_cudagraph_capture_size.unwrap_or(128).min(sequences);
    // What a log gives as used outside of PyTorch includes them.
    let printed = inputs.measured.non_torch_bytes.is_some();
    if inputs.serve.enforce_eager || version.engines || most == 0 || printed {
        return Span::default();
    }
    Span { point: 400 * Bytes::MIB, low: 50 * Bytes::MIB, high: 1536 * Bytes::MIB }
}

/// Bytes of a token over the layers of the fullest pipeline stage; the first stages take the layers that remain.
fn token_bytes(inputs: &Inputs<'_>, version: Version) -> Result<u64, Problem> {
    let kv = kv(inputs, version)?;
    let model = inputs.model;
    if !model.encoder_layers.is_empty() || model.layers.iter().any(|l| l.cross_attention) {
        return Err(not_modelled("encoder-decoder models, whose pool is split in two"));
    }
    if model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Recurrent(_))) {
        return Err(not_modelled("recurrent layers, whose states have a pool by version and option"));
    }
    let (layers, pipeline) = (model.layers.len(), usize::try_from(inputs.parallel.pipeline.max(1)));
    let pipeline = pipeline.unwrap_or(usize::MAX);
    let (base, rest) = (layers / pipeline, layers % pipeline);
    let mut left = model.layers.as_slice();
    let mut fullest = Bytes::ZERO;
    let mut stage = 0;
    while !left.is_empty() {
        let (here, later) = left.split_at((base + usize::from(stage < rest)).min(left.len()));
        let mut sum = Bytes::ZERO;
        for layer in here {
            sum = sum.add(Bytes(bytes_per_token(&layer.attention.kind, kv, inputs.parallel.tensor)?))?;
        }
        fullest = fullest.max(sum);
        (left, stage) = (later, stage + 1);
    }
    if fullest.0 == 0 {
        return Err(not_modelled("models without a token cache"));
    }
    Ok(fullest.0)
}

fn kv(inputs: &Inputs<'_>, version: Version) -> Result<KvDType, Problem> {
    let text = inputs.serve.kv_cache_dtype.trim().to_ascii_lowercase();
    let kv = kv_dtype(&text, inputs.weights.dtype)?;
    let sixteen = matches!(kv.id, "fp16" | "float16" | "half" | "bf16" | "bfloat16");
    let eight = matches!(kv.id, "fp8" | "fp8_e4m3") || (version.engines && kv.id == "int8");
    if matches!(text.as_str(), "auto" | "") || sixteen || eight || (!version.engines && kv.id == "nvfp4") {
        return Ok(kv);
    }
    let accepted =
        if version.engines { "auto, fp16, bf16, fp8, int8" } else { "auto, fp16, bf16, fp8, nvfp4" };
    Err(Problem::not_accepted("job.serve.kv_cache_dtype", kv.id, accepted))
}
