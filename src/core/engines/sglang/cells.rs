//! Bytes of a token and of a state, by pool, on the fullest pipeline stage.

use super::settings::Settings;
use crate::engines::Inputs;
use crate::engines::pooled::stages;
use crate::memory::kv_cache::{bytes_per_token, heads_per_rank};
use crate::memory::recurrent::{StateLayout, state_bytes};
use crate::model::{AttentionKind, DType, KvDType};
use crate::units::{Bytes, Message, Problem};

/// What a token and a sequence cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells {
    /// Bytes of a token in the layers that keep every token.
    pub(super) full: u64,
    /// Bytes of a token in layers with a pool of their own for their window.
    pub(super) window: u64,
    /// Tokens that those layers look back.
    pub(super) look_back: u64,
    /// Bytes of the states of one slot.
    pub(super) state: u64,
    /// Layers that cache tokens.
    pub(super) layers: u64,
    /// Windowed layers that keep every token in this version.
    pub(super) window_ignored: bool,
}

fn not_modelled(what: &'static str) -> Problem {
    Problem::new("model", Message::new("sglang.not_modelled").with("what", what))
}

/// The cells of the stage with most bytes per token.
///
/// Errors: a kind of layer whose accounting is not known.
pub(super) fn cells(inputs: &Inputs<'_>, s: &Settings) -> Result<Cells, Problem> {
    let model = inputs.model;
    if !model.encoder_layers.is_empty() || model.layers.iter().any(|l| l.cross_attention) {
        return Err(not_modelled("encoder-decoder models"));
    }
    let splits = s.version.splits_windows(&model.model_type);
    let stage_of = stages(model.layers.len(), inputs.parallel.pipeline.max(1) as usize);
    let mut by_stage = vec![Cells::default(); stage_of.last().map_or(1, |last| last + 1)];
    for (i, layer) in model.layers.iter().enumerate() {
        let cells = &mut by_stage[stage_of.get(i).copied().unwrap_or(0)];
        let kind = layer.attention.kind;
        let add = |sum: &mut u64, bytes: u64| -> Result<(), Problem> {
            *sum = Bytes(*sum).add(Bytes(bytes))?.0;
            Ok(())
        };
        match kind {
            AttentionKind::None => {}
            AttentionKind::Recurrent(state) => {
                if !matches!(state.mechanism, "gated_delta_net" | "kimi_delta_attention" | "mamba2") {
                    return Err(not_modelled("this kind of recurrent layer"));
                }
                let element = DType::Bf16.bytes();
                let layout = StateLayout::vllm(state.conv_kernel, 0, element, DType::Fp32.bytes());
                add(&mut cells.state, state_bytes(&state, layout, s.attention_ranks)?)?;
            }
            AttentionKind::Mla { .. } if !s.version.caches_latents() => {
                return Err(not_modelled("latent attention before 0.4"));
            }
            AttentionKind::Sliding { window: span, .. } | AttentionKind::Chunked { chunk: span, .. } => {
                let bytes = token(&kind, s.kv, s)?;
                cells.layers += 1;
                if splits {
                    cells.look_back = cells.look_back.max(span);
                    add(&mut cells.window, bytes)?;
                } else {
                    cells.window_ignored = true;
                    add(&mut cells.full, bytes)?;
                }
            }
            AttentionKind::Full { .. } | AttentionKind::Mla { .. } => {
                cells.layers += 1;
                add(&mut cells.full, token(&kind, s.kv, s)?)?;
            }
        }
    }
    let widest = by_stage.iter().copied().max_by_key(|c| c.full.saturating_add(c.window)).unwrap_or_default();
    // Slots are counted for the stage with most recurrent layers.
    let state = by_stage.iter().map(|c| c.state).max().unwrap_or(0);
    if widest.full == 0 && widest.window == 0 {
        return Err(not_modelled("models without a token cache"));
    }
    Ok(Cells { state, ..widest })
}

/// Bytes of one token in one layer on one rank.
fn token(kind: &AttentionKind, kv: KvDType, s: &Settings) -> Result<u64, Problem> {
    match *kind {
        AttentionKind::Full { kv_heads, head_dim, .. }
        | AttentionKind::Sliding { kv_heads, head_dim, .. }
            if !s.version.counts_values() && kv.elements == 1 =>
        {
            let heads = heads_per_rank(kv_heads, s.attention_ranks);
            Ok(Bytes::product(&[2, heads, head_dim, kv.bytes])?.0)
        }
        _ => Ok(bytes_per_token(kind, kv, s.attention_ranks)?),
    }
}
