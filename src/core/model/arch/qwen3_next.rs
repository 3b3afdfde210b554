//! Qwen3-Next and Qwen 3.5: gated delta net with a gated attention layer every fourth, dense or many small
//! experts.

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

    /// Qwen 3.5 keeps the four input projections `split`, Qwen3-Next in two.
    fn tensors(self, t: &mut Tensors, on: &Scope, hidden: u64, split: bool) {
        for name in ["dt_bias", "A_log"] {
            t.add(on, name, &[self.v_heads], TensorClass::RecurrentSmall, Sharding::Column);
        }
        conv(t, on, 2 * self.keys() + self.values(), self.kernel, false);
        let (k, v) = (self.keys(), self.values());
        let parts = if split {
            vec![
                ("in_proj_qkv", 2 * k + v),
                ("in_proj_z", v),
                ("in_proj_b", self.v_heads),
                ("in_proj_a", self.v_heads),
            ]
        } else {
            vec![("in_proj_qkvz", 2 * (k + v)), ("in_proj_ba", 2 * self.v_heads)]
        };
        let class = TensorClass::RecurrentProjection;
        for (name, rows) in parts {
            t.linear(on, name, [rows, hidden], false, class, Sharding::Column);
        }
        t.norm(on, "norm", self.v_dim, false);
        t.linear(on, "out_proj", [hidden, self.values()], false, class, Sharding::Row);
    }
}

/// The feed-forward of such a model.
enum FeedForward {
    Dense,
    /// Class defaults of experts, experts per token, width of one expert and of the shared one.
    Moe([u64; 4]),
}

/// How a class differs from the others of this shape.
struct Variant {
    defaults: Defaults,
    feed_forward: FeedForward,
    split: bool,
}

fn build(f: Fields<'_>, root: Root, variant: &Variant, tied: Option<bool>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &variant.defaults)?;
    s.tied = tied.unwrap_or(s.tied);
    s.gqa.qk_norm = QkNorm::PerHead;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let net = DeltaNet::read(f)?;
    let r = match variant.feed_forward {
        FeedForward::Dense => Routed::NONE,
        FeedForward::Moe([count, top_k, width, shared]) => {
            let names = ["num_experts|num_local_experts", "moe_intermediate_size"];
            let mut r = Routed::read(f, names, [count, top_k, width])?;
            r.shared = f.size("shared_expert_intermediate_size", shared)?;
            r
        }
    };
    let sparse = qwen_sparse(f, r.experts)?;
    let period = f.whole("full_attention_interval", 1, 4096)?.unwrap_or(4);
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if (i + 1).is_multiple_of(period) { "full_attention" } else { "linear_attention" }
    })?;
    let linear = |i: u64| kinds[i as usize] == "linear_attention";
    let mtp_layers = f.whole("mtp_num_hidden_layers|num_nextn_predict_layers", 0, 4096)?.unwrap_or(0);
    let layers = (0..s.layers)
        .map(|i| {
            let mixer = if linear(i) { net.attention() } else { s.gqa.full() };
            layer(mixer, if sparse(i) { r.mlp() } else { dense(s.intermediate) })
        })
        .collect();
    let model = s.assemble(root, PRE_NORMS, layers, |t| {
        net.tensors(t, &root.layers("linear_attn.", s.layers, linear), s.hidden, variant.split);
        qwen_feed_forward(t, root, &s, r, &sparse);
        s.gqa.tensors(t, &root.layers("self_attn.", s.layers, |i| !linear(i)), s.hidden);
        // q_proj also makes the gate of the output: twice as many rows as the o projection reads.
        for group in &mut t.groups {
            let gated = [".self_attn.q_proj.weight", ".self_attn.q_proj.bias"];
            if let (true, Some(rows)) =
                (gated.iter().any(|end| group.name.ends_with(end)), group.shape.first_mut())
            {
                *rows *= 2;
            }
        }
    });
    Ok(Model { mtp_layers, ..model })
}

pub(crate) fn qwen3_next(f: Fields<'_>) -> Result<Model, Problem> {
    let feed_forward = FeedForward::Moe([512, 10, 512, 512]);
    build(f, Root::PLAIN, &Variant { defaults: QWEN3_NEXT, feed_forward, split: false }, None)
}

const QWEN3_5: Defaults = Defaults {
    model_type: "qwen3_5_text",
    vocab: 248_320,
    hidden: 4096,
    intermediate: 12288,
    layers: 32,
    kv_heads: Some(4),
    ..QWEN3_NEXT
};

pub(crate) fn qwen3_5_in(f: Fields<'_>, root: Root, tied: Option<bool>) -> Result<Model, Problem> {
    build(f, root, &Variant { defaults: QWEN3_5, feed_forward: FeedForward::Dense, split: true }, tied)
}

pub(crate) fn qwen3_5(f: Fields<'_>) -> Result<Model, Problem> {
    qwen3_5_in(f, Root::PLAIN, None)
}

const QWEN3_5_MOE: Defaults =
    Defaults { model_type: "qwen3_5_moe_text", vocab: 248_320, layers: 40, ..QWEN3_NEXT };

pub(crate) fn qwen3_5_moe_in(f: Fields<'_>, root: Root, tied: Option<bool>) -> Result<Model, Problem> {
    let feed_forward = FeedForward::Moe([256, 8, 512, 512]);
    build(f, root, &Variant { defaults: QWEN3_5_MOE, feed_forward, split: true }, tied)
}

pub(crate) fn qwen3_5_moe(f: Fields<'_>) -> Result<Model, Problem> {
    qwen3_5_moe_in(f, Root::PLAIN, None)
}
