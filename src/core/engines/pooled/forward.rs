//! The widest point of a forward pass, per token, and which layers a pipeline stage runs.

use crate::model::{AttentionKind, Layer, MlpKind, Model};

/// The product, or the largest number where it overflows.
pub(in crate::engines) fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |a, &b| a.saturating_mul(b))
}

/// Elements alive per token at the widest layer of the model, over `tensor` ranks.
pub(in crate::engines) fn widest_layer(model: &Model, tensor: u64) -> u64 {
    let t = tensor.max(1);
    model.layers.iter().map(|l| layer_elements(l, model.hidden_size, t)).max().unwrap_or(0)
}

/// Elements alive per image token in the vision tower; zero without one.
pub(in crate::engines) fn encoder_elements(model: &Model) -> u64 {
    model.vision.map_or(0, |v| {
        let width = v.hidden_size.saturating_mul(3).saturating_add(v.intermediate_size.saturating_mul(2));
        // Patches merged into one token of the language model.
        let merged = v.patches.checked_div(v.tokens_per_image).unwrap_or(4).clamp(1, 64);
        width.saturating_mul(merged)
    })
}

/// The pipeline stage of each layer: the remainder goes to the stages before the last (`get_pp_indices`).
pub(in crate::engines) fn stages(layers: usize, pipeline: usize) -> Vec<usize> {
    let (base, rest) = (layers / pipeline, layers % pipeline);
    let size = |stage: usize| {
        let from_back = pipeline - stage;
        base + usize::from(from_back >= 2 && from_back < rest + 2)
    };
    (0..pipeline.min(layers.max(1))).flat_map(|stage| std::iter::repeat_n(stage, size(stage))).collect()
}

/// Elements alive per token at the widest point of a layer: residual, the layer's input, the projections, the
/// result. A gated feed-forward holds gate and up, their product and the result beside residual and input.
fn layer_elements(layer: &Layer, d: u64, t: u64) -> u64 {
    let split = |n: u64| n.div_ceil(t);
    let attention = match layer.attention.kind {
        AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim }
        | AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } => {
            let q = split(heads).saturating_mul(head_dim);
            let kv = split(kv_heads).saturating_mul(head_dim.saturating_add(v_head_dim));
            q.saturating_mul(3).saturating_add(kv)
        }
        AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => split(heads)
            .saturating_mul(3)
            .saturating_add(split(kv_heads).saturating_mul(2))
            .saturating_mul(head_dim),
        AttentionKind::Mla { heads, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. } => {
            // Queries, keys with their rotary part repeated per head, expanded latents, result.
            let qk = qk_nope_head_dim.saturating_add(qk_rope_head_dim).saturating_mul(2);
            let expanded = qk_nope_head_dim.saturating_add(v_head_dim.saturating_mul(2));
            split(heads).saturating_mul(qk.saturating_add(expanded))
        }
        AttentionKind::Recurrent(state) => split(state.conv_dim).saturating_mul(3),
        AttentionKind::None => 0,
    };
    let mlp = match layer.mlp.kind {
        MlpKind::Dense { intermediate } => {
            split(intermediate).saturating_mul(if layer.mlp.gated { 3 } else { 2 })
        }
        MlpKind::Moe { top_k, intermediate, shared_intermediate, .. } => {
            // Fused experts: one buffer for gate and up, reused for the results, and one for their product.
            let inner = split(intermediate);
            let buffers = inner.saturating_mul(2).max(d).saturating_add(inner);
            top_k.saturating_mul(buffers).saturating_add(split(shared_intermediate))
        }
        MlpKind::None => 0,
    };
    let around = d.saturating_mul(3);
    around.saturating_add(attention.max(mlp))
}
