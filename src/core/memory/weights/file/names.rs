//! Names of tensors in files: which tensor of a model each stands for.
//!
//! Source: GGUF names from `TENSOR_NAMES` in gguf-py/gguf/constants.py of llama.cpp; suffixes of quantised layers
//! from AutoAWQ, AutoGPTQ, compressed-tensors, bitsandbytes and the MXFP4 checkpoints of gpt-oss.

use crate::model::TensorClass;

/// A name without numbers: every index becomes `*`.
pub(super) fn normal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (i, part) in name.split('.').enumerate() {
        if i > 0 {
            out.push('.');
        }
        let index = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        out.push_str(if index { "*" } else { part });
    }
    out
}

/// What follows the index of the layer; outside of layers the last two parts of the name.
pub(super) fn tail(normal: &str) -> &str {
    if let Some((_, tail)) = normal.split_once(".*.") {
        return tail;
    }
    normal.rmatch_indices('.').nth(1).map_or(normal, |(at, _)| &normal[at + 1..])
}

/// Suffixes of what stands beside a quantised matrix, or in its place (`true`), and the suffix of the plain one.
const SUFFIXES: &[(&str, &str, bool)] = &[
    (".qweight", ".weight", true),
    (".weight_packed", ".weight", true),
    ("_blocks", "", true),
    ("_packed", "", true),
    (".qzeros", ".weight", false),
    (".scales", ".weight", false),
    (".g_idx", ".weight", false),
    (".weight_g_idx", ".weight", false),
    (".weight_scale", ".weight", false),
    (".weight_scale_inv", ".weight", false),
    (".weight_scale_2", ".weight", false),
    (".weight_global_scale", ".weight", false),
    (".input_global_scale", ".weight", false),
    (".input_scale", ".weight", false),
    (".weight_zero_point", ".weight", false),
    (".weight_shape", ".weight", false),
    (".SCB", ".weight", false),
    (".weight_format", ".weight", false),
    (".weight.absmax", ".weight", false),
    (".weight.quant_map", ".weight", false),
    (".weight.nested_absmax", ".weight", false),
    (".weight.nested_quant_map", ".weight", false),
    (".weight.quant_state.bitsandbytes__nf4", ".weight", false),
    (".weight.quant_state.bitsandbytes__fp4", ".weight", false),
    (".scale", ".weight", false),
    ("_scales", "", false),
    ("_scale_inv", "", false),
    ("_scale", "", false),
];

/// The names that a tensor may stand for, each with whether it is the matrix itself; its own first.
pub(super) fn meanings(normal: &str) -> impl Iterator<Item = (String, bool)> + '_ {
    let own = std::iter::once((normal.to_owned(), true));
    own.chain(SUFFIXES.iter().filter_map(move |(suffix, plain, main)| {
        Some((format!("{}{plain}", normal.strip_suffix(suffix)?), *main))
    }))
}

/// Scales or zero points of groups along the input, which a split of the input splits too. Other scales may be one
/// per output row.
pub(super) fn is_grouped(name: &str) -> bool {
    [".scales", ".qzeros", "_scales", "_scale_inv", ".absmax"].iter().any(|suffix| name.ends_with(suffix))
}

/// Of a tower for images or sound, or what projects its output.
pub(super) fn is_encoder(name: &str) -> bool {
    let gguf = ["v.", "mm.", "a.", "resampler."].iter().any(|prefix| name.starts_with(prefix));
    gguf || name.split('.').any(|part| {
        part.starts_with("vision")
            || part.starts_with("visual")
            || part.starts_with("audio")
            || part.starts_with("image_")
            || matches!(part, "multi_modal_projector" | "mm_projector" | "embed_vision" | "vit")
    })
}

/// In the file, but never loaded: tables that older checkpoints saved.
pub(super) fn is_table(normal: &str) -> bool {
    [".rotary_emb.inv_freq", ".masked_bias", ".attn.bias", ".attention.bias"]
        .iter()
        .any(|suffix| normal.ends_with(suffix))
        && !normal.ends_with("self_attention.bias")
}

/// Heads for further tokens, under a name of their own.
pub(super) fn is_mtp(name: &str) -> bool {
    name.starts_with("mtp.") || name.contains(".mtp.") || name.contains("nextn.")
}

/// What a tensor is by the last part of its name before `.weight`, and the name that models here give it.
const LEAVES: &[(&str, TensorClass, &str)] = {
    use TensorClass as C;
    &[
        ("token_embd", C::Embedding, ""),
        ("position_embd", C::PositionEmbedding, ""),
        ("output", C::LmHead, ""),
        ("attn_q", C::AttentionQ, "q_proj"),
        ("attn_k", C::AttentionK, "k_proj"),
        ("attn_v", C::AttentionV, "v_proj"),
        ("attn_qkv", C::AttentionQkv, ""),
        ("attn_output", C::AttentionOut, ""),
        ("attn_o", C::AttentionOut, ""),
        ("attn_q_a", C::AttentionLatent, "q_a_proj"),
        ("attn_q_b", C::AttentionLatent, "q_b_proj"),
        ("attn_kv_a_mqa", C::AttentionLatent, "kv_a_proj_with_mqa"),
        ("attn_kv_b", C::AttentionLatent, "kv_b_proj"),
        ("attn_k_b", C::AttentionLatent, "kv_b_proj"),
        ("attn_v_b", C::AttentionLatent, "kv_b_proj"),
        ("attn_sinks", C::Other, "sinks"),
        ("ffn_gate", C::MlpGate, ""),
        ("ffn_up", C::MlpUp, ""),
        ("ffn_down", C::MlpDown, ""),
        ("ffn_gate_exps", C::ExpertGateUp, ""),
        ("ffn_up_exps", C::ExpertGateUp, ""),
        ("ffn_gate_up_exps", C::ExpertGateUp, ""),
        ("ffn_down_exps", C::ExpertDown, ""),
        ("ffn_gate_shexp", C::SharedExpert, "gate"),
        ("ffn_up_shexp", C::SharedExpert, "up"),
        ("ffn_down_shexp", C::SharedExpert, "down|output"),
        ("ffn_gate_inp", C::Router, ""),
        ("ffn_gate_inp_shexp", C::Router, "shared"),
        ("ssm_in", C::RecurrentProjection, "in_proj"),
        ("ssm_out", C::RecurrentProjection, "out_proj"),
        ("ssm_x", C::RecurrentProjection, "x_proj"),
        ("ssm_dt", C::RecurrentProjection, "dt_proj"),
        ("ssm_ba", C::RecurrentProjection, "in_proj_ba"),
        ("ssm_alpha", C::RecurrentProjection, "in_proj_a"),
        ("ssm_beta", C::RecurrentProjection, "in_proj_b"),
        ("attn_gate", C::RecurrentProjection, "in_proj_z"),
        ("ssm_conv1d", C::RecurrentSmall, "conv1d"),
        ("ssm_a", C::RecurrentSmall, "A_log"),
        ("ssm_d", C::RecurrentSmall, "D"),
        ("embed_tokens", C::Embedding, ""),
        ("wte", C::Embedding, ""),
        ("word_embeddings", C::Embedding, ""),
        ("tok_embeddings", C::Embedding, ""),
        ("embed_in", C::Embedding, ""),
        ("wpe", C::PositionEmbedding, ""),
        ("lm_head", C::LmHead, ""),
        ("embed_out", C::LmHead, ""),
        ("q_proj", C::AttentionQ, ""),
        ("k_proj", C::AttentionK, ""),
        ("v_proj", C::AttentionV, ""),
        ("o_proj", C::AttentionOut, ""),
        ("qkv_proj", C::AttentionQkv, ""),
        ("query_key_value", C::AttentionQkv, ""),
        ("c_attn", C::AttentionQkv, ""),
        ("wqkv", C::AttentionQkv, ""),
        ("Wqkv", C::AttentionQkv, ""),
        ("wo", C::AttentionOut, ""),
        ("gate_proj", C::MlpGate, ""),
        ("gate_up_proj", C::MlpGate, ""),
        ("up_proj", C::MlpUp, ""),
        ("down_proj", C::MlpDown, ""),
        ("w1", C::MlpGate, ""),
        ("w3", C::MlpUp, ""),
        ("w2", C::MlpDown, ""),
        ("gate", C::Router, ""),
        ("router", C::Router, ""),
    ]
};

/// Class and customary name of the tensor `normal`; biases answer like the matrix they belong to.
pub(super) fn class(normal: &str) -> Option<(TensorClass, &'static str)> {
    use TensorClass as C;
    let base = normal.strip_suffix(".weight").or_else(|| normal.strip_suffix(".bias")).unwrap_or(normal);
    let mut parts = base.rsplit('.');
    let mut leaf = parts.next()?;
    // Old GGUF files number the experts of `ffn_gate`.
    let numbered = leaf == "*";
    if numbered {
        leaf = parts.next()?;
    }
    if leaf.contains("norm") || leaf.starts_with("ln_") {
        return Some((C::Norm, ""));
    }
    let (_, class, name) = LEAVES.iter().find(|(id, ..)| *id == leaf)?;
    let routed = numbered || base.contains(".experts.");
    let class = match class {
        C::MlpGate | C::MlpUp if routed => C::ExpertGateUp,
        C::MlpDown if routed => C::ExpertDown,
        C::MlpGate | C::MlpUp | C::MlpDown if base.contains("shared_expert") => {
            return Some((
                C::SharedExpert,
                leaf.split('_').next().map_or("", |l| match l {
                    "gate" => "gate",
                    "up" => "up",
                    _ => "down|output",
                }),
            ));
        }
        other => *other,
    };
    Some((class, name))
}

/// Classes that hold the same matrix fused, or in parts.
pub(super) fn related(class: TensorClass) -> &'static [TensorClass] {
    use TensorClass as C;
    match class {
        C::AttentionQ | C::AttentionK | C::AttentionV => &[C::AttentionQkv],
        C::AttentionQkv => &[C::AttentionQ, C::AttentionK, C::AttentionV],
        C::MlpUp => &[C::MlpGate],
        C::MlpGate => &[C::MlpUp],
        _ => &[],
    }
}
