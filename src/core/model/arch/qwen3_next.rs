//! Qwen3-Next: gated delta net with a gated attention layer every fourth, many small experts.

use super::llama::{Defaults, PRE_NORMS, QWEN2, Sizes};
use super::mamba::{conv, recurrent};
use super::moe::{Routed, qwen_feed_forward, qwen_sparse};
use super::parts::{QkNorm, Root, dense, layer, layer_types};
use crate::model::fields::Fields;
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, DType, Model, RecurrentState, Sharding, TensorClass};
use crate::units::Problem;

const QWEN3_NEXT: Defaults = Defaults {
    model_type: "qwen3_next",
    hidden: 2048,
    intermediate: 5632,
    layers: 48,
    heads: 16,
    kv_heads: Some(2),
    head_dim: Some(256),
    ..QWEN2
};

/// Geometry of the gated delta net.
#[derive(Clone, Copy)]
struct DeltaNet {
    k_heads: u64,
    v_heads: u64,
    k_dim: u64,
    v_dim: u64,
    kernel: u64,
}

impl DeltaNet {
    fn read(f: Fields<'_>) -> Result<DeltaNet, Problem> {
        Ok(DeltaNet {
            k_heads: f.heads("linear_num_key_heads", 16)?,
            v_heads: f.heads("linear_num_value_heads", 32)?,
            k_dim: f.heads("linear_key_head_dim", 128)?,
            v_dim: f.heads("linear_value_head_dim", 128)?,
            kernel: f.heads("linear_conv_kernel_dim", 4)?,
        })
    }

    fn keys(self) -> u64 {
        self.k_heads * self.k_dim
    }

    fn values(self) -> u64 {
        self.v_heads * self.v_dim
    }

    fn attention(self) -> Attention {
        recurrent(RecurrentState {
            mechanism: "gated_delta_net",
            conv_dim: 2 * self.keys() + self.values(),
            conv_kernel: self.kernel,
            state_heads: self.v_heads,
            state_per_head: self.k_dim * self.v_dim,
            state_dtype: Some(DType::Fp32),
        })
    }

    fn tensors(self, t: &mut Tensors, on: &Scope, hidden: u64) {
        for name in ["dt_bias", "A_log"] {
            t.add(on, name, &[self.v_heads], TensorClass::RecurrentSmall, Sharding::Column);
        }
        conv(t, on, 2 * self.keys() + self.values(), self.kernel, false);
        let (qkvz, class) = (2 * (self.keys() + self.values()), TensorClass::RecurrentProjection);
        t.linear(on, "in_proj_qkvz", [qkvz, hidden], false, class, Sharding::Column);
        t.linear(on, "in_proj_ba", [2 * self.v_heads, hidden], false, class, Sharding::Column);
        t.norm(on, "norm", self.v_dim, false);
        t.linear(on, "out_proj", [hidden, self.values()], false, class, Sharding::Row);
    }
}

pub(crate) fn qwen3_next(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &QWEN3_NEXT)?;
    s.gqa.qk_norm = QkNorm::PerHead;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let net = DeltaNet::read(f)?;
    let mut r = Routed::read(f, ["num_experts|num_local_experts", "moe_intermediate_size"], [512, 10, 512])?;
    r.shared = f.size("shared_expert_intermediate_size", 512)?;
    let sparse = qwen_sparse(f, r.experts)?;
    let period = f.whole("full_attention_interval", 1, 4096)?.unwrap_or(4);
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if (i + 1).is_multiple_of(period) { "full_attention" } else { "linear_attention" }
    })?;
    let linear = |i: u64| kinds[i as usize] == "linear_attention";
    let layers = (0..s.layers)
        .map(|i| {
            let mixer = if linear(i) { net.attention() } else { s.gqa.full() };
            layer(mixer, if sparse(i) { r.mlp() } else { dense(s.intermediate) })
        })
        .collect();
    let root = Root::PLAIN;
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        net.tensors(t, &root.layers("linear_attn.", s.layers, linear), s.hidden);
        qwen_feed_forward(t, root, &s, r, &sparse);
        let on = root.layers("self_attn.", s.layers, |i| !linear(i));
        // q_proj also makes the gate of the output: twice as many rows as the o projection reads.
        s.gqa.tensors(t, &on, s.hidden);
        for group in &mut t.groups {
            let gated = group.name.ends_with("self_attn.q_proj.weight")
                || group.name.ends_with("self_attn.q_proj.bias");
            if let (true, Some(rows)) = (gated, group.shape.first_mut()) {
                *rows *= 2;
            }
        }
    }))
}
