//! Architectures of GGUF files that have a model here, and the config fields that each needs beyond the common ones.

use super::config::Keys;
use serde_json::{Map, Value};

/// One value of `general.architecture`.
pub(super) struct Family {
    pub(super) arch: &'static str,
    /// `model_type` of the config that describes the same model.
    pub(super) model_type: &'static str,
    /// Adds, or replaces, what the common fields do not say.
    pub(super) more: fn(&Keys<'_>, &mut Map<String, Value>),
}

const fn row(
    arch: &'static str,
    model_type: &'static str,
    more: fn(&Keys<'_>, &mut Map<String, Value>),
) -> Family {
    Family { arch, model_type, more }
}

/// Every architecture read, sorted by name.
pub(super) const FAMILIES: &[Family] = &[
    row("baichuan", "baichuan", plain),
    row("bloom", "bloom", bloom),
    row("cohere2", "cohere2", cohere2),
    row("command-r", "cohere", cohere),
    row("deepseek2", "deepseek_v2", deepseek),
    row("ernie4_5", "ernie4_5", plain),
    row("exaone4", "exaone4", windows),
    row("falcon", "falcon", falcon),
    row("gemma", "gemma", plain),
    row("gemma2", "gemma2", gemma2),
    row("gemma3", "gemma3_text", gemma3),
    row("glm4", "glm4", biased),
    row("glm4moe", "glm4_moe", glm4_moe),
    row("gpt-oss", "gpt_oss", gpt_oss),
    row("gpt2", "gpt2", gpt2),
    row("gptneox", "gpt_neox", plain),
    row("granite", "granite", plain),
    row("granitehybrid", "granitemoehybrid", granite_hybrid),
    row("granitemoe", "granitemoe", local_experts),
    row("hunyuan-dense", "hunyuan_v1_dense", plain),
    row("internlm2", "internlm2", plain),
    row("jamba", "jamba", jamba),
    row("llama", "llama", llama),
    row("minimax-m2", "minimax_m2", minimax),
    row("mistral3", "ministral3", plain),
    row("nemotron", "nemotron", plain),
    row("olmo", "olmo", plain),
    row("olmo2", "olmo2", olmo2),
    row("olmoe", "olmoe", routed),
    row("phi2", "phi", plain),
    row("phi3", "phi3", plain),
    row("qwen2", "qwen2", no_window),
    row("qwen2moe", "qwen2_moe", routed),
    row("qwen2vl", "qwen2", no_window),
    row("qwen3", "qwen3", no_window),
    row("qwen35", "qwen3_5_text", delta_net),
    row("qwen35moe", "qwen3_5_moe_text", delta_net),
    row("qwen3moe", "qwen3_moe", routed),
    row("qwen3next", "qwen3_next", delta_net),
    row("qwen3vl", "qwen3", no_window),
    row("qwen3vlmoe", "qwen3_moe", routed),
    row("seed_oss", "seed_oss", seed_oss),
    row("smollm3", "smollm3", plain),
    row("stablelm", "stablelm", stablelm),
    row("starcoder2", "starcoder2", starcoder2),
];

type Fields = Map<String, Value>;

fn put(map: &mut Fields, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

fn set(map: &mut Fields, name: &str, value: impl Into<Value>) {
    map.insert(name.to_owned(), value.into());
}

fn plain(_: &Keys<'_>, _: &mut Fields) {}

/// Qwen's windows are switched off in every published file: llama.cpp gives these families none.
fn no_window(_: &Keys<'_>, map: &mut Fields) {
    map.remove("sliding_window");
}

fn biased(keys: &Keys<'_>, map: &mut Fields) {
    // GLM-4 fuses gate and up; its biases are those of q, k and v alone.
    set(map, "attention_bias", keys.any("attn_q.bias"));
}

/// Llama and Mistral; with experts, Mixtral.
fn llama(keys: &Keys<'_>, map: &mut Fields) {
    if let Some(experts) = keys.whole("expert_count").filter(|n| *n > 0) {
        set(map, "model_type", "mixtral");
        set(map, "num_local_experts", experts);
    }
}

fn local_experts(keys: &Keys<'_>, map: &mut Fields) {
    put(map, "num_local_experts", keys.whole("expert_count"));
}

/// Qwen 2 and 3 MoE, OLMoE.
fn routed(keys: &Keys<'_>, map: &mut Fields) {
    no_window(keys, map);
    put(map, "num_experts", keys.whole("expert_count"));
    let width = keys.whole("expert_feed_forward_length");
    put(map, "moe_intermediate_size", width.or_else(|| keys.whole("feed_forward_length")));
    let shared = keys.whole("expert_shared_feed_forward_length");
    put(map, "shared_expert_intermediate_size", shared);
    set(map, "qkv_bias", keys.any("attn_q.bias"));
}

/// Qwen3-Next and Qwen 3.5: `ssm` keys hold the geometry of the delta net.
fn delta_net(keys: &Keys<'_>, map: &mut Fields) {
    routed(keys, map);
    let values = keys.whole("ssm.time_step_rank");
    put(map, "linear_num_key_heads", keys.whole("ssm.group_count"));
    put(map, "linear_num_value_heads", values);
    put(map, "linear_key_head_dim", keys.whole("ssm.state_size"));
    let inner = keys.whole("ssm.inner_size");
    put(map, "linear_value_head_dim", inner.zip(values).and_then(|(inner, n)| inner.checked_div(n)));
    put(map, "linear_conv_kernel_dim", keys.whole("ssm.conv_kernel"));
    let linear = |i: u64| keys.layer_has(i, "ssm_out.weight");
    layer_types(keys, map, |i| if linear(i) { "linear_attention" } else { "full_attention" });
}

fn layer_types<'a>(keys: &Keys<'_>, map: &mut Fields, of: impl Fn(u64) -> &'a str) {
    let all: Vec<Value> = (0..keys.layers).map(|i| of(i).into()).collect();
    set(map, "layer_types", all);
}

/// Which layers slide: as the header lists them, or every one but each `period`-th.
fn sliding(keys: &Keys<'_>, map: &mut Fields, period: u64) {
    if keys.whole("attention.sliding_window").is_none_or(|n| n == 0) {
        layer_types(keys, map, |_| "full_attention");
        return;
    }
    let listed = keys.list("attention.sliding_window_pattern");
    let written = keys.value("attention.sliding_window_pattern").and_then(super::Meta::whole);
    let period = written.filter(|n| *n > 0).unwrap_or(period);
    layer_types(keys, map, |i| {
        let slides = match &listed {
            Some(list) => list.get(i as usize).is_some_and(|n| *n != 0),
            None => !(i + 1).is_multiple_of(period),
        };
        if slides { "sliding_attention" } else { "full_attention" }
    });
}

fn windows(keys: &Keys<'_>, map: &mut Fields) {
    sliding(keys, map, 4);
}

fn gemma2(keys: &Keys<'_>, map: &mut Fields) {
    sliding(keys, map, 2);
    for name in ["attn_logit_softcapping", "final_logit_softcapping"] {
        set(map, name, keys.real(name).filter(|cap| cap.is_finite() && *cap != 0.0));
    }
}

fn gemma3(keys: &Keys<'_>, map: &mut Fields) {
    sliding(keys, map, 6);
    // Sliding layers rotate by a base of their own.
    set(map, "rope_local_base_freq", 10_000.0);
}

fn gpt_oss(keys: &Keys<'_>, map: &mut Fields) {
    local_experts(keys, map);
    // Layers alternate from a sliding one on.
    sliding(keys, map, 2);
    put(map, "intermediate_size", keys.whole("expert_feed_forward_length"));
}

fn minimax(keys: &Keys<'_>, map: &mut Fields) {
    local_experts(keys, map);
    put(map, "intermediate_size", keys.whole("expert_feed_forward_length"));
}

/// OLMo 2, and OLMo 3 where layers slide.
fn olmo2(keys: &Keys<'_>, map: &mut Fields) {
    if keys.whole("attention.sliding_window").is_some_and(|n| n > 0) {
        set(map, "model_type", "olmo3");
        sliding(keys, map, 4);
    }
}

fn cohere(keys: &Keys<'_>, map: &mut Fields) {
    set(map, "use_qk_norm", keys.any("attn_q_norm.weight"));
}

fn cohere2(keys: &Keys<'_>, map: &mut Fields) {
    sliding(keys, map, 4);
}

fn falcon(keys: &Keys<'_>, map: &mut Fields) {
    // Falcon 7B has one norm and one KV head; the newer ones have two norms.
    let new = keys.any("attn_norm_2.weight");
    set(map, "new_decoder_architecture", new);
    set(map, "multi_query", !new);
    put(map, "num_kv_heads", keys.whole("attention.head_count_kv"));
    put(map, "ffn_hidden_size", keys.whole("feed_forward_length"));
}

fn gpt2(keys: &Keys<'_>, map: &mut Fields) {
    put(map, "n_inner", keys.whole("feed_forward_length"));
    put(map, "n_positions", keys.whole("context_length"));
}

fn bloom(keys: &Keys<'_>, map: &mut Fields) {
    put(map, "seq_length", keys.whole("context_length"));
}

fn stablelm(keys: &Keys<'_>, map: &mut Fields) {
    set(map, "use_qkv_bias", keys.any("attn_q.bias"));
    set(map, "qk_layernorm", keys.any("attn_q_norm.weight"));
    set(map, "use_parallel_residual", !keys.any("ffn_norm.weight"));
}

fn starcoder2(keys: &Keys<'_>, map: &mut Fields) {
    set(map, "use_bias", keys.any("attn_q.bias"));
    no_window(keys, map);
}

fn seed_oss(keys: &Keys<'_>, map: &mut Fields) {
    set(map, "attention_out_bias", keys.any("attn_output.bias"));
}

fn glm4_moe(keys: &Keys<'_>, map: &mut Fields) {
    experts(keys, map);
    set(map, "use_qk_norm", keys.any("attn_q_norm.weight"));
}

/// DeepSeek's names: routed and shared experts behind dense layers.
fn experts(keys: &Keys<'_>, map: &mut Fields) {
    put(map, "n_routed_experts", keys.whole("expert_count"));
    put(map, "n_shared_experts", keys.whole("expert_shared_count"));
    put(map, "moe_intermediate_size", keys.whole("expert_feed_forward_length"));
    put(map, "first_k_dense_replace", keys.whole("leading_dense_block_count"));
    set(map, "num_nextn_predict_layers", keys.whole("nextn_predict_layers").unwrap_or(0));
}

/// DeepSeek V2 and V3. Files with absorbed projections state the cached head in `key_length` and the expanded one
/// in `key_length_mla`.
fn deepseek(keys: &Keys<'_>, map: &mut Fields) {
    experts(keys, map);
    if keys.any("exp_probs_b.bias") {
        set(map, "model_type", "deepseek_v3");
    }
    map.remove("head_dim");
    set(map, "q_lora_rank", keys.whole("attention.q_lora_rank"));
    put(map, "kv_lora_rank", keys.whole("attention.kv_lora_rank"));
    let rope = keys.whole("rope.dimension_count");
    let key = keys.whole("attention.key_length_mla").or_else(|| keys.whole("attention.key_length"));
    let value = keys.whole("attention.value_length_mla").or_else(|| keys.whole("attention.value_length"));
    put(map, "qk_rope_head_dim", rope);
    put(map, "qk_nope_head_dim", key.zip(rope).and_then(|(key, rope)| key.checked_sub(rope)));
    put(map, "v_head_dim", value);
    // One latent head serves all.
    put(map, "num_key_value_heads", keys.whole("attention.head_count"));
}

/// Layers without KV heads are recurrent.
fn granite_hybrid(keys: &Keys<'_>, map: &mut Fields) {
    let recurrent = |i: u64| keys.layer_has(i, "ssm_in.weight");
    layer_types(keys, map, |i| if recurrent(i) { "mamba" } else { "attention" });
    set(map, "num_local_experts", keys.whole("expert_count").unwrap_or(0));
    let shared = keys.whole("expert_shared_feed_forward_length");
    put(map, "shared_intermediate_size", shared.or_else(|| keys.whole("feed_forward_length")));
    let heads = keys.whole("ssm.time_step_rank");
    put(map, "mamba_n_heads", heads);
    set(map, "mamba_d_head", "auto");
    let inner = keys.whole("ssm.inner_size").zip(keys.whole("embedding_length"));
    put(map, "mamba_expand", inner.and_then(|(inner, hidden)| inner.checked_div(hidden)));
    put(map, "mamba_d_state", keys.whole("ssm.state_size"));
    put(map, "mamba_n_groups", keys.whole("ssm.group_count"));
    put(map, "mamba_d_conv", keys.whole("ssm.conv_kernel"));
    set(map, "mamba_conv_bias", keys.any("ssm_conv1d.bias"));
}

fn jamba(keys: &Keys<'_>, map: &mut Fields) {
    let inner = keys.whole("ssm.inner_size").zip(keys.whole("embedding_length"));
    put(map, "mamba_expand", inner.and_then(|(inner, hidden)| inner.checked_div(hidden)));
    put(map, "mamba_d_state", keys.whole("ssm.state_size"));
    put(map, "mamba_d_conv", keys.whole("ssm.conv_kernel"));
    put(map, "mamba_dt_rank", keys.whole("ssm.time_step_rank"));
    put(map, "num_experts", keys.whole("expert_count"));
    // The first layer of a kind, and the distance to the next.
    let period = |leaf: &str| {
        let mut at = (0..keys.layers).filter(|i| keys.layer_has(*i, leaf));
        let first = at.next()?;
        Some((at.next().map_or(keys.layers, |next| next - first), first))
    };
    if let Some((distance, first)) = period("attn_q.weight") {
        set(map, "attn_layer_period", distance);
        set(map, "attn_layer_offset", first);
    }
    if let Some((distance, first)) = period("ffn_gate_inp.weight") {
        set(map, "expert_layer_period", distance);
        set(map, "expert_layer_offset", first);
    }
}

#[cfg(test)]
mod tests {
    use super::FAMILIES;
    use crate::model::ARCHITECTURES;

    #[test]
    fn every_family_names_a_model_type_that_is_read() {
        for family in FAMILIES {
            assert!(ARCHITECTURES.iter().any(|a| a.model_type == family.model_type), "{}", family.arch);
        }
        assert!(FAMILIES.is_sorted_by_key(|family| family.arch));
    }
}
