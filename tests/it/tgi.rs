//! TGI: what it printed, predicted; the room it leaves by version; its refusals; the surface.

use crate::pooled::{Job, Row, argument, compare, consistent, job, rows, surface_agrees};
use oom_ledger_core::engines::ServeSettings;
use oom_ledger_core::hardware::gpu;
use oom_ledger_core::memory::{Ledger, TermId, Verdict};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn logs() -> Vec<Row> {
    rows(include_str!("../fixtures/tgi/logs.json"))
}

#[test]
fn printed_totals_are_predicted() {
    compare("tgi", &logs());
    for row in logs() {
        let job = job("tgi", &row);
        consistent(&row.id, &job.ledger().unwrap());
        surface_agrees(&job);
    }
}

fn version(text: &str) -> ServeSettings {
    ServeSettings {
        engine_version: Some(text.into()),
        max_model_len: Some(4096),
        max_num_batched_tokens: Some(4096),
        ..ServeSettings::default()
    }
}

fn llama(total_gib: u64, serve: ServeSettings) -> Job {
    Job::new("tgi", "llama-3.1-8b", total_gib * GIB, serve)
}

fn bytes(ledger: &Ledger, id: TermId) -> f64 {
    ledger.term(id).map_or(0.0, |t| t.bytes as f64)
}

/// What the warm-up leaves, less a twentieth or a tenth of it, or less that part of the whole device.
#[test]
fn the_room_left_is_of_what_is_free_or_of_the_total() {
    let batch = 4096.0 * 131_072.0;
    let pool = |text: &str, fraction: Option<f64>| {
        let serve = ServeSettings { gpu_memory_utilization: fraction, ..version(text) };
        let ledger = llama(80, serve).ledger().unwrap();
        let taken: f64 = [TermId::Weights, TermId::Activations, TermId::Logits, TermId::ContextOverhead]
            .iter()
            .map(|id| bytes(&ledger, *id))
            .sum();
        (bytes(&ledger, TermId::KvCache), 80.0 * GIB as f64 - taken - batch)
    };
    let near = |got: f64, want: f64| assert!((got - want).abs() < 3e6, "{got} for {want}");
    let (got, left) = pool("1.4.0", None);
    near(got, left + batch);
    let (got, left) = pool("2.3.0", None);
    near(got, left * 0.95 + batch);
    let (got, left) = pool("2.4.1", Some(0.5));
    near(got, (left - 40.0 * GIB as f64) * 0.9 + batch);
    let (got, left) = pool("3.3.7", Some(0.5));
    near(got, left - 0.55 * 80.0 * GIB as f64 + batch);
}

#[test]
fn blocks_follow_the_attention() {
    let block = |id: &str, text: &str, card: Option<&str>| {
        let mut job = Job::new("tgi", id, 80 * GIB, version(text));
        job.device.gpu = card.and_then(gpu);
        job.ledger().unwrap().kv.unwrap().block_tokens
    };
    assert_eq!(block("llama-3.1-8b", "2.0.4", None), 16);
    assert_eq!(block("llama-3.1-8b", "3.0.0", None), 1);
    // Heads of 96: FlashInfer does not take them.
    assert_eq!(block("phi-3-mini-4k", "3.0.0", None), 256);
    assert_eq!(block("phi-3-mini-4k", "3.0.0", Some("t4")), 16);
}

/// 900 · 10^12 operations over 15.03 · 10^9 for a token.
#[test]
fn the_prefill_batch_is_reckoned_since_3() {
    let mut job =
        llama(80, ServeSettings { engine_version: Some("3.3.7".into()), ..ServeSettings::default() });
    job.device.gpu = gpu("h100-80gb");
    let warnings = job.ledger().unwrap().warnings;
    let chosen = |w: &[oom_ledger_core::units::Message]| {
        argument(w.iter().find(|w| w.id == "tgi.prefill_chosen").unwrap(), "tokens").unwrap()
    };
    let tokens = chosen(&warnings);
    assert!((tokens - 59_873.0).abs() < 200.0, "{tokens}");
    job.device.gpu = None;
    assert!((chosen(&job.ledger().unwrap().warnings) - 4096.0).abs() < 0.5);
}

#[test]
fn what_does_not_start_and_what_just_fits() {
    let refusal = |job: &Job| {
        let ledger = job.ledger().unwrap();
        assert_eq!(ledger.verdict, Verdict::DoesNotFit);
        ledger.refusal.unwrap().id
    };
    assert_eq!(refusal(&Job::new("tgi", "llama-3.1-70b", 80 * GIB, version("2.0.4"))), "tgi.refusal.load");
    // The warm-up's own batch is too much.
    let wide = ServeSettings { max_num_batched_tokens: Some(32_768), ..version("2.0.4") };
    assert_eq!(refusal(&llama(24, wide)), "tgi.refusal.prefill");
    // One longest request is more than the pool.
    let long = ServeSettings { max_model_len: Some(65_536), ..version("2.0.4") };
    let message = llama(24, long).ledger().unwrap().refusal.unwrap();
    assert_eq!(message.id, "tgi.refusal.total_tokens");
    let tokens = argument(&message, "tokens").unwrap() as u64;
    let just = ServeSettings { max_model_len: Some(tokens), ..version("2.0.4") };
    assert!(llama(24, just).ledger().unwrap().refusal.is_none());
    let over = ServeSettings { max_model_len: Some(tokens + 1), ..version("2.0.4") };
    assert!(llama(24, over).ledger().unwrap().refusal.is_some());
    // Sequences: the last that fits, and one more.
    let serve = |n| ServeSettings { sequences: n, prompt_tokens: 4000, new_tokens: 96, ..version("2.0.4") };
    let most = llama(24, serve(1)).ledger().unwrap().kv.unwrap().tokens / 4096;
    assert!((1..128).contains(&most), "{most}");
    assert_ne!(llama(24, serve(most)).ledger().unwrap().verdict, Verdict::DoesNotFit);
    assert_eq!(llama(24, serve(most + 1)).ledger().unwrap().verdict, Verdict::DoesNotFit);
}

#[test]
fn the_pool_was_as_large_as_asked_for_before_0_9_4() {
    let problem = llama(24, version("0.9.0")).ledger().unwrap_err();
    assert_eq!(problem.field, "job.serve.max_total_tokens");
    let given = ServeSettings { max_total_tokens: Some(16_000), ..version("0.9.0") };
    assert_eq!(llama(24, given).ledger().unwrap().kv.unwrap().blocks, 1010);
    let ignored = ServeSettings { max_total_tokens: Some(16_000), ..version("2.0.4") };
    let ledger = llama(80, ignored).ledger().unwrap();
    assert!(ledger.warnings.iter().any(|w| w.id == "tgi.total_ignored"));
    assert!(ledger.kv.unwrap().tokens > 16_000);
}

#[test]
fn what_is_not_known_is_said() {
    for id in ["flan-t5-xl", "jamba-1.5-mini"] {
        let problem = Job::new("tgi", id, 180 * GIB, version("2.0.4")).ledger().unwrap_err();
        assert_eq!(problem.message.id, "tgi.not_modelled", "{id}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn surface_and_ledger_agree_everywhere(
        which in 0usize..5,
        version in 0usize..6,
        sequences in 0u64..600,
        tokens in 2u64..40_000,
        total in 8u64..180,
        tensor in prop::sample::select(vec![1u64, 2, 4]),
        len in prop::option::of(1u64..60_000),
        share in prop::option::of(0.1f64..1.0),
        card in prop::option::of(prop::sample::select(vec!["h100-80gb", "l4", "rtx-4090", "t4"])),
    ) {
        let ids = ["llama-3.1-8b", "gemma-3-12b", "gpt-oss-20b", "deepseek-v2-lite", "mixtral-8x7b"];
        let versions = ["0.9.4", "1.4.0", "2.0.4", "2.4.0", "3.1.0", "latest"];
        let serve = ServeSettings {
            engine_version: Some(versions[version].into()),
            max_model_len: len,
            gpu_memory_utilization: share,
            sequences,
            prompt_tokens: tokens - 1,
            new_tokens: 1,
            ..ServeSettings::default()
        };
        let mut job = Job::new("tgi", ids[which], total * GIB, serve);
        job.device.gpu = card.and_then(gpu);
        job.parallel.tensor = tensor;
        surface_agrees(&job);
        if let Ok(ledger) = job.ledger() {
            consistent(ids[which], &ledger);
        }
    }
}
