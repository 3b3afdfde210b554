//! Native speed of what the page does on every change of an input. Run with `make bench`.

#![expect(clippy::unwrap_used, reason = "a bench on a broken Scenario should stop")]

use criterion::{Criterion, criterion_group, criterion_main};
use oom_ledger_core::engines::engine;
use oom_ledger_core::model::{Model, preset};
use oom_ledger_core::plan::{Axis, estimate, plane, series};
use oom_ledger_core::share::{Resolved, Scenario};
use std::hint::black_box;
use std::time::Duration;

/// Jobs by name: a dense model on both engines, and the two shapes of cache that cost most to group.
const JOBS: &[(&str, &str, &str)] = &[
    ("vllm llama-3.1-8b", "llama-3.1-8b", r#"{"engine": "vllm", "max_model_len": 8192}"#),
    ("vllm gemma-3-27b", "gemma-3-27b", r#"{"engine": "vllm", "max_model_len": 8192}"#),
    ("vllm qwen3-next-80b-a3b", "qwen3-next-80b-a3b", r#"{"engine": "vllm", "max_model_len": 8192}"#),
    ("transformers llama-3.1-8b", "llama-3.1-8b", r#"{"engine": "transformers", "attention": "sdpa"}"#),
];

fn scenario(model: &str, serve: &str) -> Scenario {
    let text = format!(
        r#"{{"model": {{"preset": "{model}"}}, "device": {{"preset": "h100-80gb"}}, "job": {{"serve": {serve}}}}}"#
    );
    Scenario::from_json_str(&text).unwrap()
}

fn jobs(c: &mut Criterion) {
    for (name, model, serve) in JOBS {
        let resolved: Resolved = scenario(model, serve).resolve().unwrap();
        let inputs = resolved.inputs();
        let which = engine(&inputs.serve.engine).unwrap();
        c.bench_function(&format!("{name}: ledger"), |b| b.iter(|| which.ledger(black_box(&inputs))));
        c.bench_function(&format!("{name}: estimate with limits"), |b| {
            b.iter(|| estimate(black_box(&inputs)));
        });
        c.bench_function(&format!("{name}: surface"), |b| {
            b.iter(|| which.surface(black_box(&inputs)).is_ok());
        });
        let surface = which.surface(&inputs).unwrap();
        c.bench_function(&format!("{name}: point"), |b| {
            b.iter(|| surface.at(black_box(16), black_box(1024), black_box(256)));
        });
        c.bench_function(&format!("{name}: series of 96"), |b| {
            b.iter(|| series(black_box(&inputs), Axis::Tokens, 96).is_ok());
        });
        c.bench_function(&format!("{name}: plane of 256 x 256"), |b| {
            b.iter(|| plane(black_box(&inputs), 256, 256).is_ok());
        });
    }
}

fn documents(c: &mut Criterion) {
    let config = preset("deepseek-v3").unwrap().document().unwrap()["config"].to_string();
    c.bench_function("config.json of deepseek-v3 to a model", |b| {
        b.iter(|| Model::from_config_text("bench", black_box(&config)).is_ok());
    });
    let scenario = scenario(JOBS[0].1, JOBS[0].2);
    c.bench_function("Scenario resolved", |b| b.iter(|| black_box(&scenario).resolve().is_ok()));
    c.bench_function("permalink there and back", |b| {
        b.iter(|| Scenario::from_permalink(&black_box(&scenario).permalink().unwrap()).is_ok());
    });
}

criterion_group! {
    name = core;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = jobs, documents
}
criterion_main!(core);
