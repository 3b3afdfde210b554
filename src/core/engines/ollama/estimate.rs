//! Ollama's own estimate: the layers that it offloads, and the figures of its log line `offload to cuda`.
//!
//! Source: `EstimateGPULayers` in llm/memory.go and `GraphSize` in fs/ggml/ggml.go of ollama/ollama (0.1.33 to 0.23).

use crate::engines::llama_cpp::layer_bytes;
use crate::engines::{AttentionImpl, Inputs};
use crate::model::{AttentionKind, Model};

const MIB: u64 = 1 << 20;
/// What a CUDA device has to keep for the runner (`minimum="457.0 MiB"` in its log, ollama/ollama#12305).
const MINIMUM: u64 = 457 * MIB;

/// Figures of the log line, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Layers offloaded, the output as one.
    pub(super) layers: u64,
    /// `memory.required.full`.
    pub(super) full: u64,
    /// `memory.required.partial`.
    pub(super) partial: u64,
    /// `memory.required.kv`.
    pub(super) kv: u64,
    /// `memory.graph.full`.
    pub(super) graph_full: u64,
    /// `memory.graph.partial`.
    pub(super) graph_partial: u64,
}

/// What the formulas take from a model.
#[derive(Clone, Copy, Default)]
struct Geometry {
    embedding: u64,
    heads: u64,
    kv_heads: u64,
    k: u64,
    v: u64,
    vocab: u64,
}

fn geometry(model: &Model) -> Geometry {
    let base = Geometry { embedding: model.hidden_size, vocab: model.vocab_size, ..Geometry::default() };
    let of = |kind: AttentionKind| match kind {
        AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim }
        | AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
            Some(Geometry { heads, kv_heads, k: head_dim, v: v_head_dim, ..base })
        }
        AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => {
            Some(Geometry { heads, kv_heads, k: head_dim, v: head_dim, ..base })
        }
        AttentionKind::Mla { heads, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. } => {
            let k = qk_nope_head_dim.saturating_add(qk_rope_head_dim);
            Some(Geometry { heads, kv_heads: heads, k, v: v_head_dim, ..base })
        }
        AttentionKind::Recurrent(_) | AttentionKind::None => None,
    };
    model.layers.iter().find_map(|l| of(l.attention.kind)).unwrap_or(base)
}

/// The estimate for settings already translated; none where the weights are not laid out.
pub(super) fn estimate(inputs: &Inputs<'_>) -> Option<Estimate> {
    let (model, serve) = (inputs.model, inputs.serve);
    let (sizes, output) = layer_bytes(model, inputs.weights).ok()?;
    let (context, parallel) = (serve.max_model_len?, serve.max_num_seqs?);
    let batch = serve.max_num_batched_tokens?.min(context);
    let g = geometry(model);
    let kv = kv(model, g, &serve.kv_cache_dtype, [context, parallel, batch]);
    let total_kv = kv.iter().fold(0_u64, |a, b| a.saturating_add(*b));
    let flash = serve.attention == Some(AttentionImpl::Flash);
    let (partial, full) = graph(model, g, total_kv, [context, parallel, batch], flash);
    let devices = usize::try_from(inputs.device.count.clamp(1, 16)).ok()?;
    // Several devices always take the larger figure.
    let full = if devices > 1 { partial } else { full };
    let layers: Vec<u64> = sizes.iter().zip(&kv).map(|(w, k)| w.saturating_add(*k)).collect();
    let free = inputs.device.total_bytes.saturating_sub(inputs.device.other_processes_bytes);
    Some(fit(&layers, output, free, devices, [partial, full, total_kv], serve.gpu_layers))
}

/// Layers in turn to the devices that have room; then the output.
fn fit(
    layers: &[u64],
    output: u64,
    free: u64,
    devices: usize,
    [partial, full, kv]: [u64; 3],
    wanted: Option<u64>,
) -> Estimate {
    let graph = partial.max(full);
    let first = layers.first().copied().unwrap_or(0);
    let room = |used: u64, more: u64| free > used.saturating_add(graph).saturating_add(more);
    let mut open: Vec<usize> = Vec::new();
    let mut used = vec![0_u64; devices];
    let mut counts = vec![0_u64; devices];
    let least = graph.saturating_add(MINIMUM).saturating_add(first.saturating_mul(2));
    for (d, used) in used.iter_mut().enumerate() {
        if free >= least {
            *used = MINIMUM.saturating_add(first);
            open.push(d);
        }
    }
    let mut placed = 0_u64;
    for (i, bytes) in layers.iter().enumerate() {
        if wanted.is_some_and(|n| placed >= n) {
            break;
        }
        while !open.is_empty() {
            let at = i % open.len();
            let d = open[at];
            if room(used[d], *bytes) {
                used[d] = used[d].saturating_add(*bytes);
                counts[d] += 1;
                placed += 1;
                break;
            }
            open.remove(at);
        }
    }
    let all = layers.len() as u64;
    let last = layers.last().copied().unwrap_or(0);
    let mut overflow = last.saturating_mul(all.saturating_sub(placed));
    let mut fully = placed >= all;
    if wanted.is_none_or(|n| placed < n) {
        let candidate = open.get(placed as usize % open.len().max(1)).copied();
        match candidate.filter(|d| room(used[*d], output)) {
            Some(d) => {
                used[d] = used[d].saturating_add(output);
                counts[d] += 1;
                placed += 1;
            }
            None => overflow = overflow.saturating_add(output),
        }
        fully = fully && placed > all;
    }
    let share = if fully { full } else { partial };
    let sum = used.iter().zip(&counts).fold(0_u64, |sum, (bytes, count)| {
        sum.saturating_add(*bytes).saturating_add(if *count > 0 { share } else { 0 })
    });
    Estimate {
        layers: placed,
        full: sum.saturating_add(overflow),
        partial: sum,
        kv,
        graph_full: full,
        graph_partial: partial,
    }
}

/// Keys and values of each layer, `context` counted over all slots.
fn kv(model: &Model, g: Geometry, dtype: &str, [context, parallel, batch]: [u64; 3]) -> Vec<u64> {
    // Twice the bytes of an element: q4_0 counts as half a byte, q8_0 as one.
    let twice = match dtype.trim().to_ascii_lowercase().as_str() {
        "q8_0" => 2,
        "q4_0" => 1,
        "f32" | "fp32" => 8,
        _ => 4,
    };
    let row = g.k.saturating_add(g.v).saturating_mul(g.kv_heads);
    let of = |tokens: u64| tokens.saturating_mul(row).saturating_mul(twice) / 2;
    let layer = |kind: &AttentionKind| match *kind {
        AttentionKind::Sliding { window, .. } if model.model_type.starts_with("gemma3") => {
            of(parallel.saturating_mul(window).saturating_add(batch))
        }
        AttentionKind::Sliding { .. } if model.model_type == "gpt_oss" => {
            of(parallel.saturating_mul(4096).saturating_add(batch))
        }
        AttentionKind::Recurrent(s) => s
            .conv_dim
            .saturating_mul(s.conv_kernel.saturating_sub(1))
            .saturating_add(s.state_heads.saturating_mul(s.state_per_head))
            .saturating_mul(4),
        AttentionKind::None => 0,
        _ => of(context),
    };
    model.layers.iter().map(|l| layer(&l.attention.kind)).collect()
}

/// The graph with part of the layers on the device, and with all.
fn graph(
    model: &Model,
    g: Geometry,
    kv: u64,
    [context, parallel, batch]: [u64; 3],
    flash: bool,
) -> (u64, u64) {
    let Geometry { embedding: e, heads: h, kv_heads, k, vocab, .. } = g;
    let m = |a: u64, b: u64| a.saturating_mul(b);
    let sum = |all: &[u64]| all.iter().fold(0_u64, |a, b| a.saturating_add(*b));
    let row = m(4, batch);
    let scores = m(context, h.saturating_add(1));
    let head = e.checked_div(h).unwrap_or(0);
    let output = m(row, e.saturating_add(vocab));
    let offloaded = output.saturating_add(m(m(e, vocab), 105) / 128);
    let family = model.model_type.as_str();
    if matches!(family, "llama" | "mistral" | "mixtral") || family.starts_with("llama4") {
        let full = m(row, sum(&[1, m(4, e), scores])).max(output);
        let attention = sum(&[
            m(row, sum(&[1, e, context.max(e)])),
            m(m(e, e), 9) / 16,
            m(m(4, context), m(batch, h).saturating_add(m(head, kv_heads))),
        ]);
        return (m(row, e).saturating_add(attention.max(offloaded)), full);
    }
    if family.starts_with("gemma") {
        let wide = m(2, m(k, h));
        let full = output.max(m(row, sum(&[2, scores, m(2, e), wide])));
        let attention = sum(&[
            m(row, sum(&[m(2, e), 1, wide, scores])),
            m(m(4, k), m(context, 8)),
            m(m(e, m(k, h)), 9) / 16,
        ]);
        return (offloaded.max(attention), full);
    }
    if family.starts_with("qwen2") {
        let full = output.max(m(row, sum(&[1, m(2, e), scores])));
        let attention =
            m(4, m(batch, sum(&[1, m(2, e), scores])).saturating_add(m(e, context.saturating_add(1))));
        return (offloaded.max(attention), full);
    }
    if family.starts_with("deepseek") {
        let three = m(row, m(3, e).saturating_add(vocab));
        let keys = m(2, m(k, kv_heads));
        let shared = m(context, kv_heads.saturating_add(1));
        let full = three.max(m(row, sum(&[m(3, e), 2, shared, keys])));
        let attention = sum(&[
            m(row, sum(&[m(2, e), 1, keys, shared])),
            m(m(4, k), m(context, kv_heads)),
            m(m(e, m(k, kv_heads)), 9) / 16,
        ]);
        return (three.saturating_add(m(m(e, vocab), 105) / 128).max(attention), full);
    }
    if family == "gpt_oss" {
        let rough = sum(&[m(4, parallel), context >> 10, 110]);
        let both = if flash { m(rough, MIB) } else { m(m(2, h / kv_heads.max(1)), kv) / 6 };
        return (both, both);
    }
    let both = m(h / kv_heads.max(1), kv) / 6;
    (both, both)
}
