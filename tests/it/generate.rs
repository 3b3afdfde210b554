//! The transformers engine against traces of `generate()` itself: beams, drawn tokens, caches, assistants.

use oom_ledger_core::engines::{CacheImpl, Inputs, ServeSettings, engine};
use oom_ledger_core::hardware::Device;
use oom_ledger_core::memory::{Ledger, Measured, Parallel, PhaseId, WeightsSpec};
use oom_ledger_core::model::{DType, Model, preset};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Fixture {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    group: String,
    model: String,
    layers: u64,
    dtype: DType,
    /// Layers of the assistant, the same model with fewer of them.
    #[serde(default)]
    draft_layers: Option<u64>,
    /// Fields of the serving settings.
    serve: ServeSettings,
    prefill: u64,
    decode: u64,
    sampling: u64,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../fixtures/transformers/generate-traces.json");
    serde_json::from_str::<Fixture>(text).expect("fixture").rows
}

fn model(id: &str, layers: u64) -> Model {
    let overrides = [("num_hidden_layers".to_owned(), layers.into())].into_iter().collect();
    preset(id).expect("preset").model_with(&overrides).expect("model")
}

fn ask<T>(
    model: &Model,
    draft: Option<&Model>,
    serve: &ServeSettings,
    dtype: DType,
    ask: impl Fn(&Inputs<'_>) -> T,
) -> T {
    let device = Device { gpu: None, total_bytes: 192 << 30, count: 1, other_processes_bytes: 0 };
    let weights = WeightsSpec { dtype, ..WeightsSpec::default() };
    ask(&Inputs {
        model,
        device: &device,
        parallel: Parallel::default(),
        weights: &weights,
        serve,
        measured: Measured::default(),
        draft,
    })
}

fn ledger(model: &Model, draft: Option<&Model>, serve: &ServeSettings, dtype: DType) -> Ledger {
    ask(model, draft, serve, dtype, |inputs| engine("transformers").unwrap().ledger(inputs).unwrap())
}

/// Each phase's allocated bytes; what is compared is what a phase holds above the weights.
#[test]
fn phases_match_traces_of_generate() {
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows() {
        let model = model(&row.model, row.layers);
        let draft = row.draft_layers.map(|layers| self::model(&row.model, layers));
        let ledger = ledger(&model, draft.as_ref(), &row.serve, row.dtype);
        let load = ledger.phase(PhaseId::Load).expect("load").allocated_bytes;
        let phases = [
            (PhaseId::Prefill, row.prefill),
            (PhaseId::Decode, row.decode),
            (PhaseId::Sampling, row.sampling),
        ];
        for (phase, expected) in phases {
            let found = ledger.phase(phase).expect("phase").allocated_bytes;
            let off = (found as f64 - expected as f64) / (expected - load) as f64;
            println!("{:<70} {:<8} {found:>12} {expected:>12} {:+.3} %", row.id, phase.id(), off * 100.0);
            groups.entry(format!("{} {}", row.group, phase.id())).or_default().push(off.abs());
        }
    }
    let mut wrong = Vec::new();
    for (group, mut errors) in groups {
        errors.sort_by(f64::total_cmp);
        let (median, worst) = (errors[errors.len() / 2], errors[errors.len() - 1]);
        println!(
            "{group:<30} n={:<3} median={:.3} % worst={:.3} %",
            errors.len(),
            median * 100.0,
            worst * 100.0
        );
        // A sliding layer that waits on the host right after a prompt beyond its window is counted whole.
        let most = if group == "offloaded decode" { 0.06 } else { 0.03 };
        if median > 0.01 || worst > most {
            wrong.push(group);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The surface answers what the ledger answers, for other loads than the one it was built for.
#[test]
fn the_surface_agrees_under_every_option() {
    for row in rows() {
        let model = model(&row.model, row.layers);
        let draft = row.draft_layers.map(|layers| self::model(&row.model, layers));
        let surface = ask(&model, draft.as_ref(), &row.serve, row.dtype, |i| {
            engine("transformers").unwrap().surface(i).unwrap()
        });
        for (sequences, prompt_tokens, new_tokens) in [(1, 1, 1), (1, 700, 2), (3, 511, 40), (5, 4097, 1000)]
        {
            let serve = ServeSettings { sequences, prompt_tokens, new_tokens, ..row.serve.clone() };
            if serve.num_speculative_tokens > 0 && sequences > 1 {
                assert!(!surface.at(sequences, prompt_tokens, new_tokens).fits, "{}", row.id);
                continue;
            }
            let ledger = ledger(&model, draft.as_ref(), &serve, row.dtype);
            let point = surface.at(sequences, prompt_tokens, new_tokens);
            assert!(
                point.peak_bytes.abs_diff(ledger.peak_bytes) <= 16 << 10,
                "{} {sequences}x{prompt_tokens}+{new_tokens}: {} for {}",
                row.id,
                point.peak_bytes,
                ledger.peak_bytes
            );
            assert!(point.high_bytes.abs_diff(ledger.peak.high) <= 16 << 10, "{}", row.id);
        }
    }
}

/// What `generate` refuses, and what it takes.
#[test]
fn more_answers_than_beams_need_drawn_tokens() {
    let model = model("qwen2.5-0.5b", 2);
    let answer = |num_beams, num_return_sequences, do_sample| {
        let serve = ServeSettings {
            engine: "transformers".to_owned(),
            num_beams,
            num_return_sequences,
            do_sample,
            ..ServeSettings::default()
        };
        ask(&model, None, &serve, DType::Bf16, |i| engine("transformers").unwrap().ledger(i))
    };
    assert!(answer(Some(2), Some(3), false).is_err());
    assert!(answer(None, Some(2), false).is_err());
    assert!(answer(None, Some(2), true).is_ok());
    assert!(answer(Some(3), Some(3), false).is_ok());
}

/// Caches that transformers refuses, and speculation that it does not run.
#[test]
fn what_generate_refuses_is_refused() {
    let answer = |id: &str, serve: ServeSettings| {
        let model = preset(id).expect("preset").model_with(&serde_json::Map::new()).expect("model");
        let serve = ServeSettings { engine: "transformers".to_owned(), ..serve };
        ask(&model, None, &serve, DType::Bf16, |i| engine("transformers").unwrap().ledger(i))
    };
    let quantized = |kv: &str| ServeSettings {
        cache: CacheImpl::Quantized,
        kv_cache_dtype: kv.to_owned(),
        ..ServeSettings::default()
    };
    assert!(answer("llama-3.2-1b", quantized("int2")).is_ok());
    assert!(answer("llama-3.2-1b", quantized("fp8")).is_err());
    assert!(answer("gemma-3-1b", quantized("auto")).is_err());
    let speculative = |sequences, cache| ServeSettings {
        num_speculative_tokens: 4,
        sequences,
        cache,
        ..ServeSettings::default()
    };
    assert!(answer("llama-3.2-1b", speculative(1, CacheImpl::Dynamic)).is_ok());
    assert!(answer("llama-3.2-1b", speculative(2, CacheImpl::Dynamic)).is_err());
    assert!(answer("llama-3.2-1b", speculative(1, CacheImpl::Quantized)).is_err());
}

/// What waits on the host is listed, and not on the device.
#[test]
fn offloaded_layers_are_on_the_host() {
    let model = model("llama-3.2-1b", 8);
    let of = |cache| {
        let serve = ServeSettings {
            engine: "transformers".to_owned(),
            cache,
            prompt_tokens: 4096,
            ..ServeSettings::default()
        };
        ledger(&model, None, &serve, DType::Bf16)
    };
    let (kept, gone) = (of(CacheImpl::Dynamic), of(CacheImpl::Offloaded));
    assert!(kept.host.is_empty());
    let host = &gone.host[0];
    // Eight layers of K and V: 8 heads of 64 over 4096 + 256 tokens in bf16.
    assert_eq!(host.low, 16 * 8 * 64 * 4352 * 2);
    assert_eq!(host.bytes, 16 * (8 << 20));
    assert!(gone.peak_bytes < kept.peak_bytes);
}
