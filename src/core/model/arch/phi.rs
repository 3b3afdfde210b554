//! Phi-3 and Phi-4: fused q, k, v and fused gate and up.

use super::llama::{Defaults, LLAMA, PRE_NORMS, Sizes};
use super::parts::{Root, dense, fused_gated, layer, window};
use crate::model::fields::Fields;
use crate::model::{Mlp, Model, Sharding, TensorClass};
use crate::units::Problem;

const PHI3: Defaults =
    Defaults { model_type: "phi3", vocab: 32064, hidden: 3072, intermediate: 8192, positions: 4096, ..LLAMA };

pub(crate) fn phi3(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &PHI3)?;
    let window = window(f, None)?;
    let root = Root::PLAIN;
    let mlp = Mlp { fused_gate_up: true, ..dense(s.intermediate) };
    let layers = (0..s.layers).map(|_| layer(s.gqa.windowed(window), mlp)).collect();
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        let attention = root.all("self_attn.", s.layers);
        let wide = s.gqa.heads * s.gqa.head_dim;
        t.linear(&attention, "o_proj", [s.hidden, wide], false, TensorClass::AttentionOut, Sharding::Row);
        s.gqa.fused(t, &attention, "qkv_proj", s.hidden);
        fused_gated(t, &root.all("mlp.", s.layers), s.hidden, s.intermediate);
    }))
}
