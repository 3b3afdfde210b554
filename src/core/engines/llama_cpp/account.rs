//! What lies where: weights, caches, states and compute buffers of every device and of the host.

use super::graph::{buffers, row};
use super::parts::{Layout, Part};
use super::place::place;
use super::settings::{Settings, settings};
use crate::engines::Inputs;
use crate::engines::pooled::Span;
use crate::memory::context::context_overhead;
use crate::memory::{Measured, WeightsSpec};
use crate::model::{AttentionKind, KvDType, Model};
use crate::units::{Message, Problem};

const MIB: u64 = 1 << 20;
/// `--fit-ctx`: the engine does not reduce the context below this.
const LEAST_CONTEXT: u64 = 4096;
/// Contexts are multiples of this.
const STEP: u64 = 256;

/// Figures of a job; devices first, the host last.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    pub(super) weights: Vec<Span>,
    pub(super) kv: Vec<u64>,
    pub(super) state: Vec<u64>,
    pub(super) compute: Vec<u64>,
    pub(super) context: Span,
    pub(super) workspace: Span,
    pub(super) others: u64,
    pub(super) total: u64,
    /// The context that the engine would have started with, where it had to be reduced.
    pub(super) reduced_from: Option<u64>,
}

impl Account {
    /// The account of a job. Where no context is given, `fit` reduces it to what the device holds.
    ///
    /// Errors: as [`settings`] and the layout of the file.
    pub(super) fn new(inputs: &Inputs<'_>, fit: bool) -> Result<Account, Problem> {
        unmodelled(inputs.model)?;
        let first = settings(inputs, None)?;
        let mut place =
            place(inputs.model.layers.len(), first.gpu_layers, &first.shares, first.build.output_first());
        place.experts_on_host = first.experts_on_host;
        let layout = Layout::new(inputs.model, inputs.weights, place)?;
        let weights = weights(&layout, inputs.model, inputs.measured);
        let mut account = Account {
            weights,
            kv: Vec::new(),
            state: Vec::new(),
            compute: Vec::new(),
            context: context(inputs),
            workspace: workspace(&layout, &first, inputs.weights, inputs.measured),
            others: inputs.device.other_processes_bytes,
            total: inputs.device.total_bytes,
            reduced_from: None,
            settings: first,
            layout,
        };
        account.size(inputs);
        let open = !account.settings.explicit_context;
        if open && fit {
            account.reduce(inputs)?;
        }
        Ok(account)
    }

    /// Sizes that depend on the context.
    fn size(&mut self, inputs: &Inputs<'_>) {
        let (model, s) = (inputs.model, &self.settings);
        self.kv = caches(model, s, &self.layout);
        self.state = states(model, s, &self.layout);
        self.compute = buffers(model, s, &self.layout);
        let top = self.fullest();
        if let Some(bytes) = inputs.measured.kv_available_bytes {
            self.kv[top] = bytes;
        }
        if let Some(bytes) = inputs.measured.activation_peak_bytes {
            self.compute[top] = bytes;
        }
    }

    /// The largest context up to the model's own that the device holds.
    fn reduce(&mut self, inputs: &Inputs<'_>) -> Result<(), Problem> {
        let own = inputs.model.max_position_embeddings.max(LEAST_CONTEXT);
        let asked = self.settings.context;
        let at = |account: &mut Account, context: u64| -> Result<bool, Problem> {
            account.settings = Settings { explicit_context: false, ..settings(inputs, Some(context))? };
            account.size(inputs);
            Ok(account.peak(account.fullest()) <= account.total)
        };
        if at(self, own)? {
            return Ok(());
        }
        let (mut good, mut bad) = (LEAST_CONTEXT / STEP, own.div_ceil(STEP));
        if bad <= good || !at(self, good * STEP)? {
            self.reduced_from = Some(asked);
            return Ok(());
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if at(self, middle * STEP)? { good = middle } else { bad = middle }
        }
        at(self, good * STEP)?;
        self.reduced_from = Some(asked);
        Ok(())
    }

    /// The device with most on it; the host where there is none.
    pub(super) fn fullest(&self) -> usize {
        let own = |d: usize| {
            let of = |v: &[u64]| v.get(d).copied().unwrap_or(0);
            let weights = self.weights.get(d).map_or(0, |w| w.point);
            weights
                .saturating_add(of(&self.kv))
                .saturating_add(of(&self.state))
                .saturating_add(of(&self.compute))
        };
        (0..self.settings.devices).rev().max_by_key(|d| own(*d)).unwrap_or(0)
    }

    /// Everything on a device.
    pub(super) fn peak(&self, device: usize) -> u64 {
        [
            self.weights[device].point,
            self.kv[device],
            self.state[device],
            self.compute[device],
            self.context.point,
            self.workspace.point,
            self.others,
        ]
        .iter()
        .fold(0, |a, b| a.saturating_add(*b))
    }

    /// Bytes that `sequences` of `tokens` each occupy of what is reserved on the fullest device.
    pub(super) fn occupied(&self, sequences: u64, tokens: u64) -> u64 {
        let (top, s) = (self.fullest(), &self.settings);
        let part = |whole: u64, of: u64| {
            (u128::from(whole) * u128::from(of.min(s.context)) / u128::from(s.context.max(1))) as u64
        };
        let states =
            (u128::from(self.state[top]) * u128::from(sequences.min(s.seqs)) / u128::from(s.seqs)) as u64;
        part(self.kv[top], sequences.saturating_mul(tokens)).saturating_add(states)
    }
}

/// Kinds of models whose graph is not replayed here.
fn unmodelled(model: &Model) -> Result<(), Problem> {
    let unknown = |kind: &AttentionKind| match kind {
        AttentionKind::Recurrent(state) => !matches!(state.mechanism, "gated_delta_net" | "mamba2"),
        _ => false,
    };
    let recurrent = model.layers.iter().any(|l| unknown(&l.attention.kind));
    let what = if !model.encoder_layers.is_empty() || model.layers.iter().any(|l| l.cross_attention) {
        "an encoder and cross attention"
    } else if recurrent {
        "Mamba 1 and lightning attention"
    } else {
        return Ok(());
    };
    let message = Message::new("llama_cpp.not_modelled").with("what", what);
    Err(Problem::new("model", message))
}

/// Weights of every backend.
fn weights(layout: &Layout, model: &Model, measured: Measured) -> Vec<Span> {
    let host = layout.place.host;
    let mut out = vec![Span::default(); host + 1];
    let mut add = |home: usize, bytes: u64, low: u64, high: u64, padding: u64| {
        let padding = if home == host { 0 } else { padding };
        let span = &mut out[home];
        span.point = span.point.saturating_add(bytes).saturating_add(padding);
        span.low = span.low.saturating_add(low).saturating_add(padding);
        span.high = span.high.saturating_add(high).saturating_add(padding);
    };
    for piece in &layout.pieces {
        add(layout.home_of(piece), piece.bytes, piece.low, piece.high, piece.padding);
        // A tied embedding is also the output, a second time on its device.
        let again = model.tied_embeddings && piece.part == Part::Embedding;
        if again && layout.place.output_home != host {
            add(layout.place.output_home, piece.bytes, piece.low, piece.high, piece.padding);
        }
    }
    if let Some(bytes) = measured.weights_bytes {
        let fullest = (0..host).rev().max_by_key(|d| out[*d].point).unwrap_or(0);
        out[fullest] = Span::exactly(bytes);
    }
    out
}

/// Bytes of a layer's keys and values in one cell.
pub(super) fn cell_bytes(kind: &AttentionKind, s: &Settings) -> (u64, u64) {
    let pair = |kv: u64, k: u64, v: u64| (row(kv.saturating_mul(k), s.k), row(kv.saturating_mul(v), s.v));
    match *kind {
        AttentionKind::Full { kv_heads, head_dim, v_head_dim, .. }
        | AttentionKind::Sliding { kv_heads, head_dim, v_head_dim, .. } => {
            pair(kv_heads, head_dim, v_head_dim)
        }
        AttentionKind::Chunked { kv_heads, head_dim, .. } => pair(kv_heads, head_dim, head_dim),
        AttentionKind::Mla {
            heads, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, ..
        } => {
            let width = kv_lora_rank.saturating_add(qk_rope_head_dim);
            if s.build.latent_keys_only() || s.build.ik {
                (row(width, s.k), 0)
            } else if s.build.latent_cache() {
                (row(width, s.k), row(kv_lora_rank, s.v))
            } else {
                pair(heads, qk_nope_head_dim.saturating_add(qk_rope_head_dim), v_head_dim)
            }
        }
        AttentionKind::Recurrent(_) | AttentionKind::None => (0, 0),
    }
}

/// Keys and values of every backend.
fn caches(model: &Model, s: &Settings, layout: &Layout) -> Vec<u64> {
    let host = layout.place.host;
    let mut out = vec![0_u64; host + 1];
    for (index, layer) in model.layers.iter().enumerate() {
        let kind = &layer.attention.kind;
        let home = if s.kv_on_device { layout.home(index) } else { host };
        let cells = if s.cells.windowed(kind) { s.cells.window } else { s.cells.full };
        let cells = cells.saturating_mul(s.streams);
        let (k, v) = cell_bytes(kind, s);
        // The fork's caches are laid out by head, and values as one line.
        let by_head = s.build.ik && !matches!(kind, AttentionKind::Mla { .. });
        let head = s.head.0.unwrap_or(512);
        for (line, dtype, own) in [(k, s.k, head), (v, s.v, 512)] {
            let width = if by_head { own } else { line / dtype.bytes * dtype.elements };
            let bytes = line.saturating_mul(cells);
            let padded = if home == host || line == 0 { bytes } else { padded(bytes, width, dtype) };
            out[home] = out[home].saturating_add(padded);
        }
    }
    out
}

/// A cache tensor in a device buffer: rows of quantised types padded to 512 elements, starts to 128 bytes.
fn padded(bytes: u64, elements: u64, dtype: KvDType) -> u64 {
    let short = elements % 512;
    let more = if dtype.elements > 1 && short > 0 { (512 - short) / dtype.elements * dtype.bytes } else { 0 };
    bytes.saturating_add(more).checked_next_multiple_of(128).unwrap_or(u64::MAX)
}

/// States of recurrent layers of every backend: F32, one cell for each sequence.
fn states(model: &Model, s: &Settings, layout: &Layout) -> Vec<u64> {
    let mut out = vec![0_u64; layout.place.host + 1];
    for (index, layer) in model.layers.iter().enumerate() {
        let AttentionKind::Recurrent(state) = layer.attention.kind else { continue };
        let home = if s.kv_on_device { layout.home(index) } else { layout.place.host };
        let conv = state.conv_dim.saturating_mul(state.conv_kernel.saturating_sub(1));
        let own = state.state_heads.saturating_mul(state.state_per_head);
        let bytes = conv.saturating_add(own).saturating_mul(4).saturating_mul(s.seqs);
        out[home] = out[home].saturating_add(bytes);
    }
    out
}

/// CUDA context and kernels: as for any process; the engine's own report of what it cannot account for reached
/// 749 MiB with one layer on the device (ggml-org/llama.cpp#27953).
fn context(inputs: &Inputs<'_>) -> Span {
    if let Some(bytes) = inputs.measured.non_torch_bytes {
        return Span::exactly(bytes);
    }
    let seen = Span::from(context_overhead(inputs.device.gpu.map(|g| g.arch)));
    Span { high: seen.high.max(749 * MIB), ..seen }
}

/// The pool of the device backend: activations of the widest matrix in 8-bit blocks; at most, a whole matrix in
/// half precision beside them.
fn workspace(layout: &Layout, s: &Settings, spec: &WeightsSpec, measured: Measured) -> Span {
    let _ = spec;
    if measured.non_torch_bytes.is_some() {
        return Span::default();
    }
    let host = layout.place.host;
    let on_device = || layout.pieces.iter().filter(|p| layout.home_of(p) != host && p.widths.1 > 1);
    let widest = on_device().map(|p| p.widths.1).max().unwrap_or(0);
    let blocks = s.ubatch.saturating_mul(widest).saturating_mul(36) / 32;
    let largest = on_device().map(|p| p.widths.0.saturating_mul(p.widths.1)).max().unwrap_or(0);
    Span { point: blocks, low: 0, high: blocks.saturating_add(largest.saturating_mul(2)) }
}
