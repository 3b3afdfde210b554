//! Cells of the cache: how many tokens of room each kind of layer has.

use super::version::Build;
use crate::model::{AttentionKind, Model};

/// Cells of a stream, and layers that have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells {
    /// Of layers that attend to everything, in each stream.
    pub(super) full: u64,
    /// Of sliding layers, in each stream.
    pub(super) window: u64,
    pub(super) full_layers: u64,
    pub(super) window_layers: u64,
    /// Sliding layers have a cache of their own.
    pub(super) own_window: bool,
    /// Sliding layers have a mask of their own over the whole cache.
    pub(super) masked_window: bool,
}

impl Cells {
    /// Whether a layer has the cells of the window.
    pub(super) fn windowed(&self, kind: &AttentionKind) -> bool {
        self.own_window && window_of(kind).is_some()
    }
}

/// What decides the cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) build: Build,
    /// Context of one stream, padded.
    pub(super) context: u64,
    pub(super) seqs: u64,
    pub(super) unified: bool,
    pub(super) batch: u64,
    pub(super) ubatch: u64,
    pub(super) flash: bool,
    pub(super) swa_full: bool,
}

/// Cells of both kinds of layers (`llama_kv_cache_iswa` in src/llama-kv-cache-iswa.cpp).
pub(super) fn cells(model: &Model, asked: Asked) -> Cells {
    let Asked { build, context, seqs, unified, batch, ubatch, flash, swa_full } = asked;
    let named = windows_known(model);
    let known = build.window_cache() && named;
    let window = model.layers.iter().find_map(|l| window_of(&l.attention.kind));
    let sliding = |kind: &AttentionKind| known && window_of(kind).is_some();
    let keeps = |kind: &AttentionKind| !matches!(kind, AttentionKind::Recurrent(_) | AttentionKind::None);
    let count = |windowed: bool| {
        let kinds = model.layers.iter().map(|l| l.attention.kind);
        kinds.filter(|k| keeps(k) && sliding(k) == windowed).count() as u64
    };
    let batch = if build.window_by_ubatch() { ubatch } else { batch };
    let sequences = if unified { seqs } else { 1 };
    let room = window.unwrap_or(0).saturating_mul(sequences).saturating_add(batch).min(context);
    let pad = padding(build, flash);
    let cells = if swa_full { context } else { room.checked_next_multiple_of(pad).unwrap_or(room) };
    Cells {
        full: context,
        window: cells,
        full_layers: count(false),
        window_layers: count(true),
        own_window: known,
        masked_window: named && !known && window.is_some() && build.window_mask(),
    }
}

/// Whether the engine knows this architecture's window at all: to it, a Mistral is a Llama, and Phi-3's is
/// switched off (src/models).
fn windows_known(model: &Model) -> bool {
    let family = model.model_type.as_str();
    !["mistral", "mixtral", "phi3", "qwen2", "qwen3", "starcoder2", "minimax", "llama", "jamba"]
        .iter()
        .any(|known| family.starts_with(known) && !family.starts_with("llama4"))
}

/// Window of a layer whose cache is cut to it: tokens seen, or the chunk attended inside.
fn window_of(kind: &AttentionKind) -> Option<u64> {
    match *kind {
        AttentionKind::Sliding { window, .. } => Some(window),
        AttentionKind::Chunked { chunk, .. } => Some(chunk),
        _ => None,
    }
}

/// What the number of cells is rounded up to.
pub(super) fn padding(build: Build, flash: bool) -> u64 {
    if flash || build.pads_always() { 256 } else { 32 }
}
