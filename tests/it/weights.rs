//! Weights: every scheme over every shipped model, splits, and what engines printed.

use oom_ledger_core::memory::weights::{Layout, effective_quantization, gguf_types, weights, weights_bytes};
use oom_ledger_core::memory::{Parallel, Provenance, WeightsSpec};
use oom_ledger_core::model::{DType, Model, PRESETS, Quantization, preset};
use oom_ledger_core::text;

fn model(id: &str) -> Model {
    preset(id).unwrap().model().unwrap()
}

fn spec(id: &str) -> WeightsSpec {
    WeightsSpec { dtype: DType::Bf16, quantization: Quantization::from_id(id) }
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
            let spec = WeightsSpec { dtype, quantization: None };
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
fn checkpoint_decides_where_the_scenario_is_silent() {
    let v3 = model("deepseek-v3");
    let effective = effective_quantization(&v3, &WeightsSpec { dtype: DType::Bf16, quantization: None });
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
