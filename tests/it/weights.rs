//! Weights: every scheme over every shipped model, splits, and what engines printed.

use oom_ledger_core::memory::weights::{Layout, effective_quantization, gguf_types, weights, weights_bytes};
use oom_ledger_core::memory::{Parallel, Provenance, WeightsSpec};
use oom_ledger_core::model::{DType, Model, PRESETS, Quantization, preset};
use oom_ledger_core::text;
use std::collections::BTreeMap;

fn model(id: &str) -> Model {
    preset(id).unwrap().model().unwrap()
}

fn spec(id: &str) -> WeightsSpec {
    WeightsSpec { quantization: Quantization::from_id(id), ..WeightsSpec::default() }
}

fn tensor(t: u64) -> Parallel {
    Parallel { tensor: t, ..Parallel::default() }
}

#[test]
fn unquantised_weights_on_one_device_are_parameters_times_bytes() {
    for row in PRESETS {
        let mut model = row.model().unwrap();
        model.quantization = None;
        for dtype in [DType::Bf16, DType::Fp16, DType::Fp32] {
            let spec = WeightsSpec { dtype, ..WeightsSpec::default() };
            let expected: u64 =
                model.tensors.iter().map(|g| g.elements() * g.count * g.dtype.unwrap_or(dtype).bytes()).sum();
            let term = weights(&model, &spec, Parallel::default(), Layout::Transformers, None).unwrap();
            assert_eq!(term.bytes, expected, "{}", row.id);
            assert_eq!(term.provenance, Provenance::Exact, "{}", row.id);
        }
    }
}

#[test]
fn every_scheme_of_every_model_adds_up_and_stays_in_its_range() {
    let schemes: Vec<String> = Quantization::NAMED
        .iter()
        .map(|(id, _)| (*id).to_owned())
        .chain(gguf_types().map(|t| format!("gguf:{t}")))
        .collect();
    for row in PRESETS {
        let model = row.model().unwrap();
        for scheme in &schemes {
            // The layout changes nothing in a GGUF file.
            let layouts = [Layout::Serving, Layout::Transformers];
            for layout in layouts.into_iter().take(if scheme.starts_with("gguf") { 1 } else { 2 }) {
                let spec = spec(scheme);
                let term = weights(&model, &spec, Parallel::default(), layout, None).unwrap();
                let parts: u64 = term.working.parts.iter().map(|p| p.bytes).sum();
                assert_eq!(parts, term.bytes, "{} {scheme}", row.id);
                assert_eq!(term.working.result, term.bytes);
                assert!(term.low <= term.bytes && term.bytes <= term.high, "{} {scheme}", row.id);
                assert_eq!(weights_bytes(&model, &spec, Parallel::default(), layout).unwrap(), term.bytes);
                // No scheme stores less than 1.5 or (F32 aside) more than about 17 bits a parameter.
                let bits = term.bytes as f64 * 8.0 / model.parameters as f64;
                assert!((1.5..34.0).contains(&bits), "{} {scheme} {bits}", row.id);
            }
        }
    }
}

#[test]
fn degrees_that_do_not_divide_name_the_field() {
    let qwen = model("qwen2.5-7b");
    let problem = weights_bytes(&qwen, &WeightsSpec::default(), tensor(8), Layout::Serving).unwrap_err();
    assert_eq!(problem.field, "parallel.tensor");
    assert!(text::message(text::Lang::En, &problem.message).contains("28 query heads"));
    for bad in [0, 3, u64::MAX] {
        let problem =
            weights_bytes(&qwen, &WeightsSpec::default(), tensor(bad), Layout::Serving).unwrap_err();
        assert_eq!(problem.field, "parallel.tensor", "{bad}");
    }
    for bad in [0, 29, u64::MAX] {
        let pipeline = Parallel { pipeline: bad, ..Parallel::default() };
        let problem = weights_bytes(&qwen, &WeightsSpec::default(), pipeline, Layout::Serving).unwrap_err();
        assert_eq!(problem.field, "parallel.pipeline", "{bad}");
    }
}

#[test]
fn unknown_gguf_type_lists_the_known_ones() {
    let problem =
        weights_bytes(&model("llama-3.1-8b"), &spec("gguf:Q9_X"), Parallel::default(), Layout::Serving)
            .unwrap_err();
    assert_eq!(problem.field, "weights.quantization");
    let sentence = text::message(text::Lang::En, &problem.message);
    assert!(sentence.contains("gguf:Q9_X") && sentence.contains("Q4_K_M"), "{sentence}");
}

#[test]
fn a_scheme_for_experts_says_that_a_dense_model_has_none() {
    let (dense, asked) = (model("llama-3.1-8b"), spec("mxfp4"));
    let note = effective_quantization(&dense, &asked).note.unwrap();
    assert_eq!(note.id, "weights.experts_only");
    let bytes = |spec| weights_bytes(&dense, spec, Parallel::default(), Layout::Transformers).unwrap();
    assert_eq!(bytes(&asked), 2 * 8_030_261_248);
    assert_eq!(effective_quantization(&model("mixtral-8x7b"), &asked).note, None);
}

#[test]
fn checkpoint_decides_where_the_scenario_is_silent() {
    let v3 = model("deepseek-v3");
    let silent = WeightsSpec::default();
    let effective = effective_quantization(&v3, &silent);
    assert_eq!(effective.quantization, Some(&Quantization::Fp8));
    assert_eq!(effective.note.unwrap().id, "weights.quantization_declared");
    let asked = spec("int8");
    assert_eq!(effective_quantization(&v3, &asked).note.unwrap().id, "weights.quantization_replaces");
    let plain = model("llama-3.1-8b");
    assert_eq!(effective_quantization(&plain, &asked).note, None);
}

#[test]
fn a_measured_figure_replaces_the_model_and_says_so() {
    let model = model("llama-3.1-8b");
    let term = weights(&model, &WeightsSpec::default(), tensor(1), Layout::Serving, Some(7)).unwrap();
    assert_eq!((term.bytes, term.low, term.high), (7, 7, 7));
    assert_eq!(term.provenance, Provenance::Measured);
    assert!(term.working.symbols.iter().any(|s| s.name == "modelled"));
}

/// A start-up line that prints the weights of a rank, in GiB.
#[derive(serde::Deserialize)]
struct Printed {
    id: String,
    model: String,
    quantization: Option<String>,
    tensor: u64,
    expert: u64,
    arch: u32,
    gib: f64,
    /// Why the line prints more than weights, where it does.
    surplus: Option<String>,
}

/// Relative error of the prediction.
fn error(row: &Printed) -> f64 {
    let quantization = row.quantization.as_deref().map(|id| Quantization::from_id(id).unwrap());
    let spec = WeightsSpec { quantization, ..WeightsSpec::default() };
    let parallel = Parallel { tensor: row.tensor, expert: row.expert, ..Parallel::default() };
    let layout = Layout::serving(Some(row.arch));
    let bytes = weights_bytes(&model(&row.model), &spec, parallel, layout).unwrap();
    bytes as f64 / f64::from(1 << 30) / row.gib - 1.0
}

#[test]
fn weights_that_engines_printed_are_reproduced() {
    let rows: Vec<Printed> = serde_json::from_str(include_str!("../fixtures/weights/printed.json")).unwrap();
    let mut errors = Vec::new();
    for row in &rows {
        let error = error(row);
        println!("{:36} {:>9.4} GiB {:+.3} %", row.id, row.gib, error * 100.0);
        match &row.surplus {
            None => errors.push(error.abs()),
            // What is not modelled is missing, never invented.
            Some(why) => assert!((-0.05..0.0).contains(&error), "{} {error} {why}", row.id),
        }
    }
    errors.sort_by(f64::total_cmp);
    let (worst, mean) = (errors[errors.len() - 1], errors.iter().sum::<f64>() / errors.len() as f64);
    println!("n {} median {:.5} mean {mean:.5} worst {worst:.5}", errors.len(), errors[errors.len() / 2]);
    assert!(errors.len() >= 20);
    assert!(worst < 0.0025 && mean < 0.0005, "worst {worst} mean {mean}");
}

/// Published GGUF files of one model, sizes in bytes.
#[derive(serde::Deserialize)]
struct Files {
    model: String,
    importance_matrix: bool,
    /// Size by file type.
    #[serde(rename = "files")]
    sizes: BTreeMap<String, i64>,
    /// Mixes that the publisher changed by hand.
    exceptions: Vec<String>,
}

/// A file is tensors plus names, vocabulary and padding: the same bytes for every type of one model.
#[test]
fn published_gguf_files_are_reproduced_within_a_kibibyte() {
    let rows: Vec<Files> = serde_json::from_str(include_str!("../fixtures/weights/gguf_files.json")).unwrap();
    let mut compared = 0;
    for row in &rows {
        let model = model(&row.model);
        let mut heads = Vec::new();
        for (kind, size) in row.sizes.iter().filter(|(kind, _)| !row.exceptions.contains(kind)) {
            let spec = spec(&format!("gguf:{kind}"));
            let term = weights(&model, &spec, tensor(1), Layout::Transformers, None).unwrap();
            // With an importance matrix the other end of the range applies where it matters; for the point
            // estimate, fused projections are stored as published files have them.
            let ends =
                if row.importance_matrix { vec![term.bytes, term.low, term.high] } else { vec![term.bytes] };
            heads.push((kind, ends.into_iter().map(|bytes| *size - bytes.cast_signed()).collect::<Vec<_>>()));
        }
        let first = heads[0].1[0];
        for (kind, ends) in heads {
            compared += 1;
            assert!(
                ends.iter().any(|head| (head - first).abs() < 1024),
                "{} {kind} {ends:?} {first}",
                row.model
            );
            assert!((0..16_000_000).contains(&first), "{} {first}", row.model);
        }
    }
    assert!(compared >= 99, "{compared}");
}

#[test]
fn pipeline_stages_share_layers_and_the_fullest_is_reported() {
    let qwen = model("qwen2.5-7b");
    let whole = weights_bytes(&qwen, &WeightsSpec::default(), tensor(1), Layout::Transformers).unwrap();
    for pipeline in [2, 4, 7] {
        let parallel = Parallel { pipeline, ..Parallel::default() };
        let term = weights(&qwen, &WeightsSpec::default(), parallel, Layout::Transformers, None).unwrap();
        assert!(term.bytes * pipeline >= whole && term.bytes < whole, "{pipeline}");
        // Embedding and head are on different stages.
        let holds = |name: &str| term.working.parts.iter().any(|p| p.label.contains(name));
        assert!(holds("embed_tokens") != holds("lm_head"), "{pipeline}");
    }
    // 27 layers on two stages: 14 and 13, as vLLM cuts DeepSeek-V2-Lite.
    let lite = model("deepseek-v2-lite");
    let parallel = Parallel { pipeline: 2, ..Parallel::default() };
    let term = weights(&lite, &WeightsSpec::default(), parallel, Layout::Serving, None).unwrap();
    let norms =
        term.working.parts.iter().find(|p| p.label.ends_with("layers.*.input_layernorm.weight")).unwrap();
    assert!(norms.detail.starts_with("13 ×") || norms.detail.starts_with("14 ×"), "{}", norms.detail);
}

#[test]
fn key_value_heads_are_copied_where_ranks_exceed_them() {
    // 8 KV heads: at 16 ranks each rank still holds one.
    let llama = model("llama-3.1-70b");
    let kv = |t| {
        let term = weights(&llama, &WeightsSpec::default(), tensor(t), Layout::Serving, None).unwrap();
        term.working.parts.iter().find(|p| p.label.contains("k_proj")).unwrap().bytes
    };
    assert_eq!(kv(4), 2 * kv(8));
    assert_eq!(kv(16), kv(8));
}

#[test]
fn latents_stay_whole_and_experts_are_split_by_expert_parallelism() {
    let v3 = model("deepseek-v3");
    let part = |parallel, name: &str| {
        let term = weights(&v3, &spec("fp8"), parallel, Layout::Serving, None).unwrap();
        term.working.parts.iter().find(|p| p.label.contains(name)).unwrap().bytes
    };
    let (one, eight) = (tensor(1), tensor(8));
    let spread = Parallel { tensor: 8, expert: 8, ..Parallel::default() };
    assert_eq!(part(one, "kv_a_proj_with_mqa"), part(eight, "kv_a_proj_with_mqa"));
    let (whole, split, spread) =
        (part(one, "experts.down_proj"), part(eight, "experts.down_proj"), part(spread, "experts.down_proj"));
    assert!(whole.abs_diff(8 * split) < whole / 1000 && whole.abs_diff(8 * spread) < whole / 1000);
}
