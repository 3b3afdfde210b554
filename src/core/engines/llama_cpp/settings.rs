//! Options resolved with the defaults of the build (`common_params` in common/common.h, `llama_context` in
//! src/llama-context.cpp).

use super::cells::{Asked, Cells, cells, padding};
use super::parts::Layout;
use super::place::shares;
use super::version::Build;
use crate::engines::{AttentionImpl, Inputs};
use crate::memory::kv_cache::{KV_DTYPES, kv_dtype};
use crate::model::{AttentionKind, DType, KvDType, Model};
use crate::units::Problem;

/// Cache types that `--cache-type-k` takes.
const TYPES: &[&str] = &["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"];
/// `LLAMA_MAX_SEQ`.
const MOST_SEQS: u64 = 256;
/// Contexts beyond this are not asked for.
const LONGEST: u64 = 1 << 32;

/// Options as the engine runs with them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) build: Build,
    /// The version was named and understood.
    pub(super) build_known: bool,
    /// n_ctx, padded: cells of a full layer over all streams.
    pub(super) context: u64,
    /// The context was given.
    pub(super) explicit_context: bool,
    /// Tokens of the longest request of a slot.
    pub(super) slot: u64,
    pub(super) seqs: u64,
    pub(super) streams: u64,
    pub(super) batch: u64,
    pub(super) ubatch: u64,
    pub(super) flash: bool,
    pub(super) cells: Cells,
    pub(super) k: KvDType,
    pub(super) v: KvDType,
    /// Rows of logits of the largest batch.
    pub(super) outputs: u64,
    pub(super) devices: usize,
    pub(super) shares: Vec<f64>,
    pub(super) gpu_layers: u64,
    pub(super) explicit_layers: bool,
    pub(super) kv_on_device: bool,
    pub(super) mmap: bool,
    pub(super) experts_on_host: u64,
    pub(super) by_rows: bool,
    /// Width of a head of keys and of values, where all layers have the same.
    pub(super) head: (Option<u64>, Option<u64>),
}

/// Settings of a job; `context` stands for the one given, or left out, in the options.
///
/// Errors: an option out of range, a cache type or split mode that the engine does not have.
pub(super) fn settings(inputs: &Inputs<'_>, context: Option<u64>) -> Result<Settings, Problem> {
    let (serve, model) = (inputs.serve, inputs.model);
    let (build, build_known) = Build::read(serve.engine_version.as_deref());
    let positive = |field: &'static str, value: Option<u64>, most: u64| match value {
        Some(n) if n == 0 || n > most => Err(Problem::not_accepted(field, n, format!("1 … {most}"))),
        other => Ok(other),
    };
    let seqs = positive("job.serve.max_num_seqs", serve.max_num_seqs, MOST_SEQS)?;
    let asked = positive("job.serve.max_model_len", serve.max_model_len, LONGEST)?;
    let batch = positive("job.serve.max_num_batched_tokens", serve.max_num_batched_tokens, 1 << 24)?;
    let ubatch = positive("job.serve.ubatch", serve.ubatch, 1 << 24)?;
    let auto = seqs.is_none() && build.four_slots();
    let slots = seqs.unwrap_or(if auto { 4 } else { 1 });
    let unified = !build.streams() || serve.kv_unified.unwrap_or(auto);
    let wanted = context.or(asked).unwrap_or_else(|| default_context(build, model));
    let batch = batch.unwrap_or(2048).min(wanted);
    let ubatch = ubatch.unwrap_or(512).min(batch);
    let (devices, sharing) = devices(inputs)?;
    let (k, v) = (cache_type("auto", &serve.kv_cache_dtype)?, serve.kv_cache_dtype_v.as_deref());
    let v = v.map_or(Ok(k), |name| cache_type("auto", name))?;
    let flash = match serve.attention {
        Some(AttentionImpl::Flash) => true,
        Some(AttentionImpl::Eager) => false,
        Some(AttentionImpl::Sdpa) => {
            return Err(Problem::not_accepted("job.serve.attention", "sdpa", "flash, eager"));
        }
        None => {
            build.offloads_and_flashes() && model.layers.iter().all(|l| supported(&l.attention.kind, k, v))
        }
    };
    // The padding of the whole, then of each stream where sequences have their own.
    let pad = |n: u64| n.checked_next_multiple_of(padding(build, flash)).unwrap_or(n);
    let whole = pad(wanted);
    let streams = if unified { 1 } else { slots };
    let stream = if unified { whole } else { pad((whole / slots).max(1)) };
    let cells = cells(
        model,
        Asked {
            build,
            context: stream,
            seqs: slots,
            unified,
            batch,
            ubatch,
            flash,
            swa_full: serve.swa_full,
        },
    );
    Ok(Settings {
        build,
        build_known,
        context: stream.saturating_mul(streams),
        explicit_context: asked.is_some(),
        slot: if build.streams() && unified { stream } else { stream.saturating_mul(streams) / slots },
        seqs: slots,
        streams,
        batch,
        ubatch,
        flash,
        cells,
        k,
        v,
        outputs: if build.few_outputs() { slots } else { u64::MAX },
        devices,
        shares: sharing,
        gpu_layers: serve.gpu_layers.unwrap_or(model.layers.len() as u64 + 1),
        explicit_layers: serve.gpu_layers.is_some(),
        kv_on_device: !serve.no_kv_offload,
        mmap: !serve.no_mmap,
        experts_on_host: serve.n_cpu_moe.unwrap_or(0),
        by_rows: serve.split_mode.as_deref() == Some("row"),
        head: heads(model),
    })
}

/// `--ctx-size` where none is given: the model's own since the engine fits itself to the device, 4096 before.
fn default_context(build: Build, model: &Model) -> u64 {
    let own = match model.max_position_embeddings {
        0 => 4096,
        n => n,
    };
    if build.ik || !build.fits_itself() { 4096.min(own) } else { own }
}

/// A cache type by name; `auto` is F16 whatever the weights are.
fn cache_type(auto: &str, name: &str) -> Result<KvDType, Problem> {
    let wanted = name.trim().to_ascii_lowercase();
    let wanted = match wanted.as_str() {
        "fp16" | "float16" | "half" => "f16",
        "bfloat16" => "bf16",
        "fp32" | "float32" => "f32",
        other if other == auto || other.is_empty() => "f16",
        other => other,
    };
    let known = TYPES.iter().find(|t| **t == wanted).and_then(|t| KV_DTYPES.iter().find(|d| d.id == *t));
    match known {
        Some(found) => Ok(*found),
        None if wanted == "f32" => kv_dtype("fp32", DType::Fp32),
        None => Err(Problem::not_accepted(
            "job.serve.kv_cache_dtype",
            name,
            format!("auto, {}", TYPES.join(", ")),
        )),
    }
}

/// Devices in use and their shares of the layers.
fn devices(inputs: &Inputs<'_>) -> Result<(usize, Vec<f64>), Problem> {
    let p = inputs.parallel;
    if p.tensor > 1 || p.pipeline > 1 {
        let (field, given) =
            if p.tensor > 1 { ("parallel.tensor", p.tensor) } else { ("parallel.pipeline", p.pipeline) };
        return Err(Problem::not_accepted(
            field,
            given,
            "1; device.count and job.serve.split_mode spread a model",
        ));
    }
    let count = usize::try_from(inputs.device.count.clamp(1, 16)).unwrap_or(1);
    match inputs.serve.split_mode.as_deref().map(str::trim) {
        None | Some("" | "layer" | "row") => {
            Ok((count, shares(inputs.serve.tensor_split.as_deref(), count)?))
        }
        Some("none") => Ok((1, vec![1.0])),
        Some(other) => Err(Problem::not_accepted("job.serve.split_mode", other, "layer, row, none")),
    }
}

/// Width of a head of keys and of values, where all layers that have any have the same. Latents have no values.
fn heads(model: &Model) -> (Option<u64>, Option<u64>) {
    let widths = |kind: &AttentionKind| match *kind {
        AttentionKind::Full { head_dim, v_head_dim, .. }
        | AttentionKind::Sliding { head_dim, v_head_dim, .. } => Some((head_dim, v_head_dim)),
        AttentionKind::Chunked { head_dim, .. } => Some((head_dim, head_dim)),
        // Latents are stored as they are.
        AttentionKind::Mla { .. } => Some((0, 0)),
        AttentionKind::Recurrent(_) | AttentionKind::None => None,
    };
    let all: Vec<(u64, u64)> = model.layers.iter().filter_map(|l| widths(&l.attention.kind)).collect();
    let same = |pick: fn(&(u64, u64)) -> u64| {
        let first = all.first().map(pick)?;
        all.iter().all(|w| pick(w) == first).then_some(first)
    };
    (same(|w| w.0), same(|w| w.1))
}

/// Whether a CUDA device has a kernel of flash attention for these heads and types
/// (`ggml_cuda_get_best_fattn_kernel` in fattn.cu, tensor cores since Turing).
fn heads_supported(k_dim: u64, v_dim: u64, ratio: u64) -> bool {
    match k_dim {
        40 | 64 | 72 | 80 | 96 | 112 | 128 | 256 => v_dim == k_dim,
        192 => v_dim == 128 && ratio >= 8 && ratio.is_multiple_of(8),
        320 => v_dim == 256 && ratio.is_multiple_of(32) && ratio > 0,
        512 | 576 => v_dim == 512 && ratio >= 2,
        _ => false,
    }
}

fn supported(kind: &AttentionKind, k: KvDType, v: KvDType) -> bool {
    let types = k.id != "iq4_nl" && v.id != "iq4_nl";
    let heads = match *kind {
        AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim }
        | AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
            heads_supported(head_dim, v_head_dim, heads / kv_heads.max(1))
        }
        AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => {
            heads_supported(head_dim, head_dim, heads / kv_heads.max(1))
        }
        AttentionKind::Mla { heads, kv_lora_rank, qk_rope_head_dim, .. } => {
            heads_supported(kv_lora_rank + qk_rope_head_dim, kv_lora_rank, heads)
        }
        AttentionKind::Recurrent(_) | AttentionKind::None => true,
    };
    types && heads
}

impl Settings {
    /// Whether the device computes flash attention of these heads.
    pub(super) fn flash_on_device(&self, k_dim: u64, v_dim: u64, ratio: u64) -> bool {
        heads_supported(k_dim, v_dim, ratio) && self.k.id != "iq4_nl" && self.v.id != "iq4_nl"
    }

    /// Values are stored turned, ready for the product with scores: without flash attention.
    pub(super) fn values_turned(&self) -> bool {
        !self.flash
    }

    /// Side of the matrix that turns the rows of a quantised cache: the largest power of two that divides a head for
    /// keys, 64 for values (`build_input_k_rot` in src/llama-kv-cache.cpp).
    pub(super) fn turn(&self, kind: KvDType, values: bool) -> Option<u64> {
        let dim = if values { self.head.1? } else { self.head.0? };
        if !self.build.rotates() || kind.elements == 1 || !dim.is_multiple_of(64) || dim == 0 {
            return None;
        }
        Some(if values { 64 } else { 1 << dim.trailing_zeros() })
    }

    /// Several devices work on different batches at once.
    pub(super) fn pipeline(&self, layout: &Layout) -> bool {
        self.devices > 1
            && layout.all_on_devices()
            && self.kv_on_device
            && self.experts_on_host == 0
            && !self.by_rows
    }
}
