//! The shipped models: one document each, agreeing with its row.

use oom_ledger_core::model::{AttentionKind, DType, MlpKind, PRESETS, Quantization, preset};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn rows_and_documents_agree() {
    assert!(PRESETS.len() >= 70, "{} presets", PRESETS.len());
    for row in PRESETS {
        let document = row.document().unwrap();
        let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("id"), row.id);
        assert_eq!(text("name"), row.name);
        assert_eq!(document["parameters"], Value::from(row.parameters), "{}", row.id);
        assert!(text("source").contains(&text("hf_id")), "{}: {}", row.id, text("source"));
        assert_eq!(text("hf_id").split('/').count(), 2, "{}", row.id);
        let model = row.model().unwrap();
        assert_eq!(model.parameters, row.parameters, "{}", row.id);
        assert_eq!(model.class, document["config"]["architectures"][0], "{}", row.id);
    }
}

#[test]
fn ids_are_sorted_unique_and_cover_the_folder() {
    let ids: Vec<_> = PRESETS.iter().map(|row| row.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
    let names: BTreeSet<_> = PRESETS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), PRESETS.len(), "two presets of one name");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../model_presets/models");
    let files: BTreeSet<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, ids.iter().map(|id| format!("{id}.json")).collect());
    assert!(preset("llama-3.1-8b").is_some() && preset("llama").is_none());
}

/// Counts per token of experts: total - expert parameters * (1 - k/E), embeddings and head included
/// (figures of the instantiated classes).
#[test]
fn active_parameters_count_the_chosen_experts_only() {
    for (id, active) in [
        ("llama-4-scout", 18_044_827_136),
        ("qwen3-30b-a3b", 3_353_032_704),
        ("qwen3-next-80b-a3b", 3_874_929_408),
        ("mixtral-8x7b", 12_879_925_248),
        ("deepseek-v3", 37_552_282_624),
        ("kimi-k2", 32_861_477_888),
        ("gpt-oss-120b", 5_711_982_912),
        ("glm-4.5", 33_632_251_904),
        ("minimax-text-01", 48_403_306_496),
        ("granite-4.0-h-tiny", 1_465_470_528),
        ("nemotron-3-nano-30b-a3b", 3_580_073_408),
        ("llama-3.1-8b", 8_030_261_248),
    ] {
        assert_eq!(preset(id).unwrap().model().unwrap().active_parameters, active, "{id}");
    }
}

/// Bytes of one recurrent layer and sequence as transformers' cache holds them in a bf16 model: the
/// convolution's columns in bf16, the state in its own dtype (measured on cache objects).
#[test]
fn recurrent_state_has_the_size_of_the_cache_objects() {
    for (id, bytes, layers) in [
        ("qwen3-next-80b-a3b", 2_162_688, 36),
        ("nemotron-3-nano-30b-a3b", 2_146_304, 23),
        ("nemotron-h-56b", 16_941_056, 54),
        ("granite-4.0-h-tiny", 1_599_488, 36),
        ("granite-4.0-h-small", 4_261_888, 36),
        ("jamba-1.5-mini", 589_824, 28),
    ] {
        let model = preset(id).unwrap().model().unwrap();
        let states: Vec<_> = model
            .layers
            .iter()
            .filter_map(|layer| match layer.attention.kind {
                AttentionKind::Recurrent(s) => Some(
                    s.conv_dim * s.conv_kernel * 2
                        + s.state_heads * s.state_per_head * s.state_dtype.unwrap_or(DType::Bf16).bytes(),
                ),
                _ => None,
            })
            .collect();
        assert_eq!(states, vec![bytes; layers], "{id}");
    }
}

#[test]
fn declared_formats_are_read() {
    for (id, dtype, quantization) in [
        ("llama-3.1-8b", DType::Bf16, None),
        ("llava-1.5-7b", DType::Fp16, None),
        ("deepseek-r1", DType::Bf16, Some(Quantization::Fp8)),
        ("kimi-k2", DType::Bf16, Some(Quantization::Fp8)),
    ] {
        let model = preset(id).unwrap().model().unwrap();
        assert_eq!(model.dtype, Some(dtype), "{id}");
        assert_eq!(model.quantization, quantization, "{id}");
    }
    let silent = preset("gpt-oss-20b").unwrap().model().unwrap();
    assert_eq!((silent.dtype, silent.quantization), (None, Some(Quantization::Mxfp4)));
}

#[test]
fn wrappers_and_special_traits_are_seen() {
    let model = |id: &str| preset(id).unwrap().model().unwrap();
    let vision = |id: &str| model(id).vision.map(|v| (v.layers, v.patches, v.tokens_per_image));
    assert_eq!(vision("gemma-3-4b"), Some((27, 4096, 256)));
    assert_eq!(vision("llava-1.5-7b"), Some((24, 576, 576)));
    assert_eq!(vision("llama-4-scout"), Some((34, 576, 144)));
    assert_eq!(vision("qwen2.5-vl-7b"), Some((32, 0, 0)));
    assert_eq!(vision("llama-3.1-8b"), None);
    assert!(model("gemma-2-9b").attention_softcap && model("gemma-2-9b").final_logit_softcap);
    assert!(!model("gemma-3-4b").attention_softcap && !model("gemma-3-4b").final_logit_softcap);
    assert!(model("gpt-oss-20b").attention_sinks);
    assert!(model("falcon-40b").hf_caches_all_heads && !model("falcon-7b").hf_caches_all_heads);
    assert_eq!(model("deepseek-v3").mtp_layers, 1);
    assert_eq!(model("t5-large").encoder_layers.len(), 24);
    assert!(model("whisper-large-v3").layers.iter().all(|layer| layer.cross_attention));
    let moe =
        |id: &str| model(id).layers.iter().filter(|l| matches!(l.mlp.kind, MlpKind::Moe { .. })).count();
    assert_eq!(moe("deepseek-v3"), 58);
    assert_eq!(moe("jamba-1.5-mini"), 16);
    assert_eq!(moe("nemotron-3-nano-30b-a3b"), 23);
}
