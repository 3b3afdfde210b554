//! Decoders with routed experts and plain attention: Mixtral, Qwen 2 and 3 MoE, GLM 4.5, MiniMax M2, gpt-oss.

use super::llama::{Defaults, LLAMA, MISTRAL, PRE_NORMS, QWEN2, Sizes, qwen_windows};
use super::parts::{QkNorm, Root, dense, experts, gated, layer, layer_types, router, shared_expert, window};
use crate::model::fields::{Fields, MAX_SIZE};
use crate::model::tensors::Tensors;
use crate::model::{Attention, Layer, Mlp, MlpKind, Model, Sharding, TensorClass};
use crate::units::Problem;

const MIXTRAL: Defaults = Defaults { model_type: "mixtral", ..MISTRAL };
const QWEN3_MOE: Defaults = Defaults {
    model_type: "qwen3_moe",
    hidden: 2048,
    intermediate: 6144,
    layers: 24,
    kv_heads: Some(4),
    ..QWEN2
};
pub(crate) const QWEN2_MOE: Defaults =
    Defaults { model_type: "qwen2_moe", intermediate: 5632, heads: 16, kv_heads: Some(16), ..QWEN3_MOE };
const GLM4_MOE: Defaults = Defaults {
    model_type: "glm4_moe",
    vocab: 151_552,
    intermediate: 10944,
    layers: 46,
    heads: 96,
    kv_heads: Some(8),
    positions: 131_072,
    ..LLAMA
};
const MINIMAX_M2: Defaults = Defaults {
    model_type: "minimax_m2",
    vocab: 200_064,
    hidden: 3072,
    intermediate: 1536,
    layers: 62,
    heads: 48,
    kv_heads: Some(8),
    head_dim: Some(128),
    positions: 196_608,
    ..LLAMA
};
const GPT_OSS: Defaults = Defaults {
    model_type: "gpt_oss",
    vocab: 201_088,
    hidden: 2880,
    intermediate: 2880,
    layers: 36,
    heads: 64,
    kv_heads: Some(8),
    head_dim: Some(64),
    positions: 131_072,
    ..LLAMA
};

/// Routed experts of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Routed {
    pub experts: u64,
    pub top_k: u64,
    pub intermediate: u64,
    /// Width of the shared experts together, 0 where there are none.
    pub shared: u64,
    pub fp32_router: bool,
}

impl Routed {
    /// No experts.
    pub(crate) const NONE: Routed =
        Routed { experts: 0, top_k: 0, intermediate: 0, shared: 0, fp32_router: false };

    /// Reads counts; `names` are the fields of experts and of one expert's width.
    pub(crate) fn read(
        f: Fields<'_>,
        names: [&str; 2],
        [count, top_k, width]: [u64; 3],
    ) -> Result<Routed, Problem> {
        let experts = f.whole(names[0], 1, 1 << 16)?.unwrap_or(count);
        let given = f.whole("num_experts_per_tok|num_experts_per_token|experts_per_token", 1, experts)?;
        Ok(Routed {
            experts,
            top_k: given.unwrap_or(top_k.min(experts)),
            intermediate: f.size(names[1], width)?,
            shared: 0,
            fp32_router: false,
        })
    }
}

impl Routed {
    /// As the feed-forward of a layer.
    pub(crate) fn mlp(self) -> Mlp {
        let Routed { experts, top_k, intermediate, shared, fp32_router } = self;
        let kind = MlpKind::Moe { experts, top_k, intermediate, shared_intermediate: shared, fp32_router };
        Mlp { kind, gated: true, fused_gate_up: true }
    }
}

/// The layers of a model whose feed-forward is routed where `sparse` says so.
fn layers_of(
    s: &Sizes,
    routed: Routed,
    sparse: impl Fn(u64) -> bool,
    attention: impl Fn(u64) -> Attention,
) -> Vec<Layer> {
    (0..s.layers)
        .map(|i| layer(attention(i), if sparse(i) { routed.mlp() } else { dense(s.intermediate) }))
        .collect()
}

pub(crate) fn mixtral(f: Fields<'_>) -> Result<Model, Problem> {
    let s = Sizes::read(f, &MIXTRAL)?;
    let r = Routed::read(f, ["num_local_experts|num_experts", "intermediate_size"], [8, 2, s.intermediate])?;
    let window = window(f, None)?;
    let root = Root::PLAIN;
    let layers = layers_of(&s, r, |_| true, |_| s.gqa.windowed(window));
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        router(t, &root.all("mlp.", s.layers), "gate", s.hidden, r.experts);
        experts(t, &root.all("mlp.experts.", s.layers), s.hidden, r.experts, r.intermediate);
    }))
}

/// Which layers of a Qwen MoE are routed.
pub(crate) fn qwen_sparse(f: Fields<'_>, experts: u64) -> Result<impl Fn(u64) -> bool, Problem> {
    let step = f.whole("decoder_sparse_step", 1, 4096)?.unwrap_or(1);
    let dense_layers = f.numbers("mlp_only_layers")?.unwrap_or_default();
    Ok(move |i: u64| experts > 0 && (i + 1).is_multiple_of(step) && !dense_layers.contains(&i))
}

/// A dense feed-forward where `sparse` does not hold; experts, router and shared expert where it does.
pub(crate) fn qwen_feed_forward(
    t: &mut Tensors,
    root: Root,
    s: &Sizes,
    r: Routed,
    sparse: impl Fn(u64) -> bool,
) {
    let on = |suffix: &str| root.layers(suffix, s.layers, &sparse);
    gated(t, &root.layers("mlp.", s.layers, |i| !sparse(i)), s.hidden, s.intermediate, false);
    router(t, &on("mlp."), "gate", s.hidden, r.experts);
    experts(t, &on("mlp.experts."), s.hidden, r.experts, r.intermediate);
    if r.shared > 0 {
        shared_expert(t, &on("mlp.shared_expert."), s.hidden, r.shared, false);
        t.linear(
            &on("mlp."),
            "shared_expert_gate",
            [1, s.hidden],
            false,
            TensorClass::Router,
            Sharding::Replicated,
        );
    }
}

pub(crate) fn qwen3_moe(f: Fields<'_>) -> Result<Model, Problem> {
    qwen3_moe_in(f, Root::PLAIN, &QWEN3_MOE, [128, 8, 768], None)
}

/// `routed` are the class defaults of experts, experts per token and width of one.
pub(crate) fn qwen3_moe_in(
    f: Fields<'_>,
    root: Root,
    defaults: &Defaults,
    routed: [u64; 3],
    tied: Option<bool>,
) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.tied = tied.unwrap_or(s.tied);
    s.gqa.qk_norm = QkNorm::PerHead;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let r = Routed::read(f, ["num_experts|num_local_experts", "moe_intermediate_size"], routed)?;
    // This class gives its window to every layer.
    let window = if f.flag("use_sliding_window", false)? { window(f, Some(4096))? } else { None };
    let sparse = qwen_sparse(f, r.experts)?;
    let layers = layers_of(&s, r, &sparse, |_| s.gqa.windowed(window));
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        qwen_feed_forward(t, root, &s, r, &sparse);
    }))
}

pub(crate) fn qwen2_moe(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &QWEN2_MOE)?;
    s.gqa.qkv_bias = f.flag("qkv_bias", true)?;
    let mut r = Routed::read(f, ["num_experts|num_local_experts", "moe_intermediate_size"], [60, 4, 1408])?;
    r.shared = f.size("shared_expert_intermediate_size", 5632)?;
    let windows = qwen2_moe_windows(f, s.layers)?;
    let sparse = qwen_sparse(f, r.experts)?;
    let root = Root::PLAIN;
    let layers = layers_of(&s, r, &sparse, |i| s.gqa.windowed(windows[i as usize]));
    Ok(s.assemble(root, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        qwen_feed_forward(t, root, &s, r, &sparse);
    }))
}

/// Unlike Qwen 2, this class slides in every other layer below `max_window_layers`.
fn qwen2_moe_windows(f: Fields<'_>, layers: u64) -> Result<Vec<Option<u64>>, Problem> {
    if f.has("layer_types") || !f.flag("use_sliding_window", false)? {
        return qwen_windows(f, layers);
    }
    let window = window(f, Some(4096))?;
    let below = f.whole("max_window_layers", 0, 1 << 40)?.unwrap_or(28);
    Ok((0..layers).map(|i| window.filter(|_| i.is_multiple_of(2) && i < below)).collect())
}

pub(crate) fn glm4_moe(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &GLM4_MOE)?;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    if f.flag("use_qk_norm", false)? {
        s.gqa.qk_norm = QkNorm::PerHead;
    }
    let mut r =
        Routed::read(f, ["n_routed_experts|num_local_experts", "moe_intermediate_size"], [128, 8, 1408])?;
    r.shared = r.intermediate * f.whole("n_shared_experts", 1, 1024)?.unwrap_or(1);
    r.fp32_router = true;
    let first = f.whole("first_k_dense_replace", 0, 4096)?.unwrap_or(1);
    let root = Root::PLAIN;
    let layers = layers_of(&s, r, |i| i >= first, |_| s.gqa.full());
    let mut model = s.assemble(root, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        shared_and_routed(t, root, &s, r, first, false);
    });
    model.mtp_layers = f.whole("num_nextn_predict_layers|num_mtp_layers", 0, 4096)?.unwrap_or(1);
    Ok(model)
}

/// DeepSeek's feed-forward: dense up to layer `first`, then an fp32 router, routed and shared experts.
pub(crate) fn shared_and_routed(t: &mut Tensors, root: Root, s: &Sizes, r: Routed, first: u64, bias: bool) {
    let on = |suffix: &str| root.layers(suffix, s.layers, |i| i >= first);
    gated(t, &root.layers("mlp.", s.layers, |i| i < first), s.hidden, s.intermediate, bias);
    experts(t, &on("mlp.experts."), s.hidden, r.experts, r.intermediate);
    if s.layers > first {
        router(t, &on("mlp."), "gate", s.hidden, r.experts);
        t.last_in_fp32();
    }
    if r.shared > 0 {
        shared_expert(t, &on("mlp.shared_experts."), s.hidden, r.shared, bias);
    }
}

pub(crate) fn minimax_m2(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &MINIMAX_M2)?;
    s.gqa.qk_norm = QkNorm::Full;
    let r =
        Routed::read(f, ["num_local_experts|num_experts", "intermediate_size"], [256, 8, s.intermediate])?;
    let root = Root::PLAIN;
    let layers = layers_of(&s, r, |_| true, |_| s.gqa.full());
    let mut model = s.assemble(root, PRE_NORMS, layers, |t| {
        s.gqa.tensors(t, &root.all("self_attn.", s.layers), s.hidden);
        router(t, &root.all("mlp.", s.layers), "gate", s.hidden, r.experts);
        experts(t, &root.all("mlp.experts.", s.layers), s.hidden, r.experts, r.intermediate);
    });
    model.mtp_layers =
        if f.flag("use_mtp", false)? { f.whole("num_mtp_modules", 0, 4096)?.unwrap_or(0) } else { 0 };
    Ok(model)
}

pub(crate) fn gpt_oss(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &GPT_OSS)?;
    s.gqa.qkv_bias = f.flag("attention_bias", true)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let r =
        Routed::read(f, ["num_local_experts|num_experts", "intermediate_size"], [128, 4, s.intermediate])?;
    let window = f.optional("sliding_window", MAX_SIZE, Some(128))?;
    let kinds = layer_types(f, "layer_types", s.layers, |i| {
        if i.is_multiple_of(2) { "sliding_attention" } else { "full_attention" }
    })?;
    let root = Root::PLAIN;
    let layers = layers_of(
        &s,
        r,
        |_| true,
        |i| s.gqa.windowed(window.filter(|_| kinds[i as usize] == "sliding_attention")),
    );
    let mut model = s.assemble(root, PRE_NORMS, layers, |t| {
        let attention = root.all("self_attn.", s.layers);
        t.add(&attention, "sinks", &[s.gqa.heads], TensorClass::Other, Sharding::Column);
        s.gqa.tensors(t, &attention, s.hidden);
        let ff = root.all("mlp.", s.layers);
        t.linear(&ff, "router", [r.experts, s.hidden], true, TensorClass::Router, Sharding::Replicated);
        let on = root.all("mlp.experts.", s.layers);
        t.experts(&on, "gate_up_proj", [r.experts, 2 * r.intermediate, s.hidden], true, false);
        t.expert_bias(&on, "gate_up_proj_bias", [r.experts, 2 * r.intermediate], false);
        t.experts(&on, "down_proj", [r.experts, s.hidden, r.intermediate], true, true);
        t.expert_bias(&on, "down_proj_bias", [r.experts, s.hidden], true);
    });
    model.attention_sinks = true;
    Ok(model)
}
