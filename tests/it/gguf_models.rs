//! Shipped models written as a converter writes them to GGUF: the metadata must give the same model back, and the
//! tensors, by their GGUF names, the same weights on every rank.

use super::checkpoint_bytes::{Gguf, V};
use oom_ledger_core::memory::weights::{Layout, file_notes, weights_bytes};
use oom_ledger_core::memory::{Parallel, WeightsSpec};
use oom_ledger_core::model::checkpoint::{Checkpoint, Header, Imported, read_header};
use oom_ledger_core::model::{AttentionKind, DType, MlpKind, Model, PRESETS, TensorClass, TensorGroup};

/// `model_type` of a config, and `general.architecture` of its GGUF (convert_hf_to_gguf.py).
const ARCHS: &[(&str, &str)] = &[
    ("llama", "llama"),
    ("mistral", "llama"),
    ("mixtral", "llama"),
    ("internlm3", "llama"),
    ("qwen2", "qwen2"),
    ("qwen3", "qwen3"),
    ("qwen3_moe", "qwen3moe"),
    ("qwen3_next", "qwen3next"),
    ("gemma2", "gemma2"),
    ("gemma3_text", "gemma3"),
    ("phi3", "phi3"),
    ("olmo2", "olmo2"),
    ("olmo3", "olmo2"),
    ("deepseek_v2", "deepseek2"),
    ("deepseek_v3", "deepseek2"),
    ("glm4_moe", "glm4moe"),
    ("gpt_oss", "gpt-oss"),
    ("granitemoehybrid", "granitehybrid"),
    ("jamba", "jamba"),
    ("falcon", "falcon"),
    ("starcoder2", "starcoder2"),
    ("exaone4", "exaone4"),
    ("minimax_m2", "minimax-m2"),
];

/// GGUF names of what stands behind the layer's index; parts of a fused matrix follow one another.
const NAMES: &[(&str, &[&str])] = &[
    ("self_attn.q_proj", &["attn_q"]),
    ("self_attn.k_proj", &["attn_k"]),
    ("self_attn.v_proj", &["attn_v"]),
    ("self_attn.o_proj", &["attn_output"]),
    ("self_attn.qkv_proj", &["attn_qkv"]),
    ("self_attn.W_pack", &["attn_q", "attn_k", "attn_v"]),
    ("attention.wqkv", &["attn_qkv"]),
    ("attention.wo", &["attn_output"]),
    ("self_attention.query_key_value", &["attn_qkv"]),
    ("self_attention.dense", &["attn_output"]),
    ("self_attn.sinks", &["attn_sinks"]),
    ("self_attn.q_norm", &["attn_q_norm"]),
    ("self_attn.k_norm", &["attn_k_norm"]),
    ("self_attn.q_a_proj", &["attn_q_a"]),
    ("self_attn.q_b_proj", &["attn_q_b"]),
    ("self_attn.kv_a_proj_with_mqa", &["attn_kv_a_mqa"]),
    ("self_attn.kv_b_proj", &["attn_k_b", "attn_v_b"]),
    ("mlp.gate_proj", &["ffn_gate"]),
    ("mlp.up_proj", &["ffn_up"]),
    ("mlp.down_proj", &["ffn_down"]),
    ("mlp.gate_up_proj", &["ffn_up"]),
    ("mlp.c_fc", &["ffn_up"]),
    ("mlp.c_proj", &["ffn_down"]),
    ("mlp.dense_h_to_4h", &["ffn_up"]),
    ("mlp.dense_4h_to_h", &["ffn_down"]),
    ("feed_forward.w1", &["ffn_gate"]),
    ("feed_forward.w3", &["ffn_up"]),
    ("feed_forward.w2", &["ffn_down"]),
    ("feed_forward.gate_proj", &["ffn_gate"]),
    ("feed_forward.up_proj", &["ffn_up"]),
    ("feed_forward.down_proj", &["ffn_down"]),
    ("mlp.gate", &["ffn_gate_inp"]),
    ("mlp.router", &["ffn_gate_inp"]),
    ("feed_forward.router", &["ffn_gate_inp"]),
    ("block_sparse_moe.router", &["ffn_gate_inp"]),
    ("mlp.experts.gate_up_proj", &["ffn_gate_exps", "ffn_up_exps"]),
    ("mlp.experts.down_proj", &["ffn_down_exps"]),
    ("feed_forward.experts.gate_up_proj", &["ffn_gate_exps", "ffn_up_exps"]),
    ("feed_forward.experts.down_proj", &["ffn_down_exps"]),
    ("block_sparse_moe.experts.gate_up_proj", &["ffn_gate_exps", "ffn_up_exps"]),
    ("block_sparse_moe.experts.down_proj", &["ffn_down_exps"]),
    ("shared_mlp.input_linear", &["ffn_gate_shexp", "ffn_up_shexp"]),
    ("shared_mlp.output_linear", &["ffn_down_shexp"]),
    ("mlp.shared_expert.gate_proj", &["ffn_gate_shexp"]),
    ("mlp.shared_expert.up_proj", &["ffn_up_shexp"]),
    ("mlp.shared_expert.down_proj", &["ffn_down_shexp"]),
    ("mlp.shared_experts.gate_proj", &["ffn_gate_shexp"]),
    ("mlp.shared_experts.up_proj", &["ffn_up_shexp"]),
    ("mlp.shared_experts.down_proj", &["ffn_down_shexp"]),
    ("mlp.shared_expert_gate", &["ffn_gate_inp_shexp"]),
    ("linear_attn.in_proj_qkvz", &["attn_qkv", "attn_gate"]),
    ("linear_attn.in_proj_ba", &["ssm_ba"]),
    ("linear_attn.out_proj", &["ssm_out"]),
    ("linear_attn.conv1d", &["ssm_conv1d"]),
    ("linear_attn.A_log", &["ssm_a"]),
    ("linear_attn.dt_bias", &["ssm_dt.bias"]),
    ("linear_attn.norm", &["ssm_norm"]),
    ("mamba.in_proj", &["ssm_in"]),
    ("mamba.out_proj", &["ssm_out"]),
    ("mamba.x_proj", &["ssm_x"]),
    ("mamba.dt_proj", &["ssm_dt"]),
    ("mamba.conv1d", &["ssm_conv1d"]),
    ("mamba.A_log", &["ssm_a"]),
    ("mamba.D", &["ssm_d"]),
    ("mamba.dt_bias", &["ssm_dt.bias"]),
    ("mamba.norm", &["ssm_norm"]),
    ("input_layernorm", &["attn_norm"]),
    ("post_attention_layernorm", &["ffn_norm"]),
    ("ln_attn", &["attn_norm"]),
    ("ln_mlp", &["attn_norm_2"]),
];

/// Writes one tensor, in layer `layer` where there is one; `F16`, or `F32` where the class keeps that.
fn put(gguf: Gguf, group: &TensorGroup, layer: Option<u32>) -> Gguf {
    let tail = group.name.split_once(".*.").map_or(group.name.as_str(), |(_, tail)| tail);
    let (base, end) = match tail.rsplit_once('.') {
        Some((base, end @ ("weight" | "bias"))) => (base, format!(".{end}")),
        _ => (
            tail.strip_suffix("_bias").unwrap_or(tail),
            if tail.ends_with("proj_bias") { ".bias" } else { ".weight" }.to_owned(),
        ),
    };
    let base = if tail == "linear_attn.dt_bias" || tail == "mamba.dt_bias" { tail } else { base };
    let parts: Vec<String> = match (layer, group.class) {
        (None, TensorClass::Embedding) => vec!["token_embd".into()],
        (None, TensorClass::LmHead) => vec!["output".into()],
        (None, _) => vec!["output_norm".into()],
        (Some(_), _) => {
            let named = NAMES.iter().find(|(name, _)| *name == base);
            // Norms have many names.
            assert!(named.is_some() || group.class == TensorClass::Norm, "{}", group.name);
            named.map_or_else(
                || vec![format!("{}_norm", base.replace('.', "_"))],
                |(_, parts)| parts.iter().map(|p| (*p).to_owned()).collect(),
            )
        }
    };
    let (kind, bytes) = if group.dtype == Some(DType::Fp32) { (0, 4) } else { (1, 2) };
    let (stack, rows, cols) = group.matrix();
    let mut gguf = gguf;
    // q and output gate, or q, k and v, are no halves; only their sum matters here.
    let count = parts.len() as u64;
    for (i, part) in parts.iter().enumerate() {
        let rows = if i as u64 + 1 == count { rows - rows / count * (count - 1) } else { rows / count };
        let name = match (layer, part.contains('.')) {
            (Some(layer), true) => format!("blk.{layer}.{part}"),
            (Some(layer), false) => format!("blk.{layer}.{part}{end}"),
            (None, _) => format!("{part}{end}"),
        };
        let shape = [cols, rows, stack];
        let dims = if stack > 1 { 3 } else { 2 };
        gguf = gguf.tensor(&name, kind, &shape[..dims], stack * rows * cols * bytes);
    }
    gguf
}

fn numbers(key: &str, gguf: Gguf, of: impl Iterator<Item = u64>) -> Gguf {
    let all: Vec<i32> = of.map(|n| n as i32).collect();
    if all.windows(2).all(|two| two[0] == two[1]) {
        return gguf.with(key, V::U32(all[0] as u32));
    }
    gguf.with(key, V::Numbers(&all))
}

/// The header of `model`, from its layers alone.
fn written(model: &Model, arch: &str) -> Checkpoint {
    let key = |name: &str| format!("{arch}.{name}");
    let whole =
        |gguf: Gguf, name: &str, n: u64| if n > 0 { gguf.with(&key(name), V::U32(n as u32)) } else { gguf };
    let kinds: Vec<_> = model.layers.iter().map(|l| l.attention.kind).collect();
    let mut gguf = Gguf::new(3).with("general.architecture", V::Text(arch));
    gguf = whole(gguf, "block_count", model.layers.len() as u64 + model.mtp_layers);
    gguf = whole(gguf, "nextn_predict_layers", model.mtp_layers);
    gguf = whole(gguf, "embedding_length", model.hidden_size);
    gguf = whole(gguf, "context_length", model.max_position_embeddings);
    let heads = kinds.iter().map(|kind| match *kind {
        AttentionKind::Full { heads, .. }
        | AttentionKind::Sliding { heads, .. }
        | AttentionKind::Mla { heads, .. } => heads,
        _ => 0,
    });
    gguf = whole(gguf, "attention.head_count", heads.max().unwrap());
    let kv = kinds.iter().map(|kind| match *kind {
        AttentionKind::Full { kv_heads, .. } | AttentionKind::Sliding { kv_heads, .. } => kv_heads,
        AttentionKind::Mla { .. } => 1,
        _ => 0,
    });
    gguf = numbers(&key("attention.head_count_kv"), gguf, kv);
    let mut slides = Vec::new();
    for kind in &kinds {
        slides.push(matches!(kind, AttentionKind::Sliding { .. }));
        gguf = match *kind {
            AttentionKind::Full { head_dim, .. } => whole(gguf, "attention.key_length", head_dim),
            AttentionKind::Sliding { head_dim, window, .. } => {
                let gguf = whole(gguf, "attention.key_length", head_dim);
                whole(gguf, "attention.sliding_window", window)
            }
            AttentionKind::Mla {
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
                ..
            } => {
                let gguf = whole(gguf, "attention.q_lora_rank", q_lora_rank);
                let gguf = whole(gguf, "attention.kv_lora_rank", kv_lora_rank);
                let gguf = whole(gguf, "attention.key_length", kv_lora_rank + qk_rope_head_dim);
                let gguf = whole(gguf, "attention.key_length_mla", qk_nope_head_dim + qk_rope_head_dim);
                let gguf = whole(gguf, "attention.value_length_mla", v_head_dim);
                whole(gguf, "rope.dimension_count", qk_rope_head_dim)
            }
            AttentionKind::Recurrent(state) => {
                let values = match state.mechanism {
                    "gated_delta_net" => {
                        let k_dim = 128;
                        let v_dim = state.state_per_head / k_dim;
                        let inner = state.state_heads * v_dim;
                        let groups = (state.conv_dim - inner) / 2 / k_dim;
                        [inner, k_dim, state.state_heads, groups]
                    }
                    "mamba2" => {
                        let inner = 2 * model.hidden_size;
                        let size = state.state_per_head / (inner / state.state_heads);
                        [inner, size, state.state_heads, (state.conv_dim - inner) / 2 / size]
                    }
                    _ => [state.conv_dim, state.state_per_head, model.hidden_size.div_ceil(16), 0],
                };
                let gguf = whole(gguf, "ssm.inner_size", values[0]);
                let gguf = whole(gguf, "ssm.state_size", values[1]);
                let gguf = whole(gguf, "ssm.time_step_rank", values[2]);
                let gguf = whole(gguf, "ssm.group_count", values[3]);
                whole(gguf, "ssm.conv_kernel", state.conv_kernel)
            }
            _ => gguf,
        };
    }
    if slides.contains(&true) && slides.contains(&false) && arch != "gemma2" {
        gguf = gguf.with(&key("attention.sliding_window_pattern"), V::Flags(&slides));
    }
    let mut dense = 0;
    for layer in &model.layers {
        gguf = match layer.mlp.kind {
            MlpKind::Dense { intermediate } => {
                dense += 1;
                whole(gguf, "feed_forward_length", intermediate)
            }
            MlpKind::Moe { experts, top_k, intermediate, shared_intermediate, .. } => {
                let gguf = whole(gguf, "expert_count", experts);
                let gguf = whole(gguf, "expert_used_count", top_k);
                let gguf = whole(gguf, "expert_feed_forward_length", intermediate);
                let gguf = whole(gguf, "expert_shared_feed_forward_length", shared_intermediate);
                whole(gguf, "expert_shared_count", shared_intermediate / intermediate)
            }
            MlpKind::None => gguf,
        };
    }
    gguf = gguf.with(&key("leading_dense_block_count"), V::U32(dense));
    if dense == 0 {
        let width = model.layers.iter().find_map(|l| match l.mlp.kind {
            MlpKind::Moe { intermediate, .. } => Some(intermediate),
            _ => None,
        });
        gguf = whole(gguf, "feed_forward_length", width.unwrap_or(0));
    }
    for (name, on) in [
        ("attn_logit_softcapping", model.attention_softcap),
        ("final_logit_softcapping", model.final_logit_softcap),
    ] {
        if on {
            gguf = gguf.with(&key(name), V::F32(30.0));
        }
    }
    if model.mtp_layers > 0 {
        let index = model.layers.len();
        gguf = gguf.tensor(&format!("blk.{index}.nextn.eh_proj.weight"), 1, &[64, 64], 8192);
        gguf = gguf.tensor(&format!("blk.{index}.attn_q.weight"), 1, &[64, 64], 8192);
    }
    if model.class == "DeepseekV3ForCausalLM" {
        gguf = gguf.tensor(&format!("blk.{dense}.exp_probs_b.bias"), 0, &[64], 256);
    }
    for group in &model.tensors {
        let layers: Vec<_> = group.layers.iter().flat_map(|(a, b)| *a..=*b).collect();
        if layers.is_empty() {
            gguf = put(gguf, group, None);
        }
        for layer in layers {
            gguf = put(gguf, group, Some(layer));
        }
    }
    let (header, length) = gguf.bytes();
    match read_header("m.gguf", &header, length).unwrap() {
        Header::Whole(checkpoint) => checkpoint,
        Header::Need(more) => panic!("{more}"),
    }
}

#[test]
fn metadata_and_tensors_of_a_gguf_give_the_same_model_and_weights() {
    let (mut seen, mut faults) = (Vec::new(), Vec::new());
    for preset in PRESETS {
        let mut model = preset.model().unwrap();
        let Some((kind, arch)) = ARCHS.iter().find(|(kind, _)| *kind == model.model_type) else { continue };
        model.quantization = None;
        // llama.cpp gives these families no windows, and their headers none.
        if matches!(*arch, "llama" | "starcoder2") {
            for layer in &mut model.layers {
                if let AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, .. } =
                    layer.attention.kind
                {
                    layer.attention.kind = AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim };
                }
            }
        }
        // A tower for images stands in a file of its own.
        model.tensors.retain(|g| g.class != TensorClass::Encoder);
        model.parameters = model.tensors.iter().map(|g| g.elements() * g.count).sum();
        seen.push(*kind);
        let checkpoint = written(&model, arch);
        let imported = match Imported::new(checkpoint, None) {
            Ok(imported) => imported,
            Err(problem) => {
                faults.push(format!("{}: {:?}", preset.id, (problem.message.id, &problem.message.args[..2])));
                continue;
            }
        };
        let own = Model::from_config("gguf", &imported.config).unwrap();
        let figures = |m: &Model| {
            (m.parameters, m.hidden_size, m.vocab_size, m.tied_embeddings, m.max_position_embeddings)
        };
        if figures(&own) != figures(&model) {
            faults.push(format!("{}: {:?} {:?}", preset.id, figures(&own), figures(&model)));
        }
        let caps = |m: &Model| (m.attention_softcap, m.final_logit_softcap, m.attention_sinks);
        if own.layers != model.layers || caps(&own) != caps(&model) {
            let at = own.layers.iter().zip(&model.layers).position(|(a, b)| a != b).unwrap_or(0);
            faults.push(format!(
                "{}: layer {at} {:?} {:?}",
                preset.id,
                own.layers.get(at),
                model.layers.get(at)
            ));
        }
        let spec = WeightsSpec { dtype: DType::Fp16, ..WeightsSpec::default() };
        let file = WeightsSpec { file: Some(imported.file), ..spec.clone() };
        let notes: Vec<_> =
            file_notes(&own, &file).into_iter().filter(|n| n.id != "weights.file_skipped").collect();
        if !notes.is_empty() && model.class != "DeepseekV3ForCausalLM" {
            faults.push(format!("{}: {notes:?}", preset.id));
        }
        for (tensor, pipeline) in [(1, 1), (2, 1), (1, 2), (4, 2)] {
            let parallel = Parallel { tensor, pipeline, ..Parallel::default() };
            let config = weights_bytes(&model, &spec, parallel, Layout::Transformers).ok();
            let bytes = weights_bytes(&own, &file, parallel, Layout::Transformers).ok();
            // 256 bytes of exp_probs_b, which only V3's files have.
            let alike = bytes.zip(config).map_or(bytes == config, |(a, b)| a.abs_diff(b) <= 256);
            if !alike {
                faults.push(format!("{} {parallel:?}: {bytes:?} {config:?}", preset.id));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for (kind, _) in ARCHS {
        assert!(seen.contains(kind), "{kind}");
    }
}
