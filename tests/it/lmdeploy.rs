//! LMDeploy's TurboMind: what it printed, reproduced; the share of the total and of what is free; the surface.

use crate::pooled::{Job, Row, argument, compare, consistent, job, rows, surface_agrees};
use oom_ledger_core::engines::ServeSettings;
use oom_ledger_core::memory::{Ledger, TermId, Verdict};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn logs() -> Vec<Row> {
    rows(include_str!("../fixtures/lmdeploy/logs.json"))
}

#[test]
fn every_printed_figure_is_reproduced() {
    assert!(compare("lmdeploy", &logs()).len() >= 10);
}

#[test]
fn rows_add_up_and_the_surface_agrees() {
    for row in logs() {
        let job = job("lmdeploy", &row);
        consistent(&row.id, &job.ledger().unwrap());
        surface_agrees(&job);
    }
}

fn llama(total_gib: u64, serve: ServeSettings) -> Job {
    let serve = ServeSettings { max_model_len: serve.max_model_len.or(Some(8192)), ..serve };
    Job::new("lmdeploy", "llama-3.1-8b", total_gib * GIB, serve)
}

fn version(text: &str) -> ServeSettings {
    ServeSettings { engine_version: Some(text.into()), ..ServeSettings::default() }
}

fn bytes(ledger: &Ledger, id: TermId) -> f64 {
    ledger.term(id).map_or(0.0, |t| t.bytes as f64)
}

/// 0.5 of the total until 0.2.1, 0.8 of what is free since: on 40 GiB the pool shrinks, on 80 GiB it grows.
#[test]
fn the_share_is_of_the_total_or_of_what_is_free() {
    let pool = |gib, text: &str| {
        let ledger = llama(gib, version(text)).ledger().unwrap();
        assert!(ledger.refusal.is_none());
        let free = gib as f64 * GIB as f64
            - bytes(&ledger, TermId::Weights)
            - bytes(&ledger, TermId::ContextOverhead);
        (bytes(&ledger, TermId::KvCache), free)
    };
    let (old, _) = pool(80, "0.2.1");
    assert!((old / (40.0 * GIB as f64) - 1.0).abs() < 0.001, "{old}");
    let (new, free) = pool(80, "0.2.2");
    assert!((new / (0.8 * free) - 1.0).abs() < 0.001, "{new} of {free}");
    // Where half of the total is not free, the older version does not start; the newer one does.
    let message = llama(28, version("0.2.1")).ledger().unwrap().refusal.unwrap();
    assert_eq!(message.id, "lmdeploy.refusal.share_of_total");
    assert!(llama(28, version("0.2.2")).ledger().unwrap().refusal.is_none());
}

#[test]
fn quantised_caches_carry_scales_per_token_and_head() {
    let per_token = |dtype: &str, text: &str| {
        let serve = ServeSettings { kv_cache_dtype: dtype.into(), ..version(text) };
        llama(80, serve).ledger().unwrap().kv.unwrap().bytes_per_token
    };
    let heads = 32.0 * 8.0 * 2.0;
    assert!((per_token("auto", "0.6.4") - heads * 256.0).abs() < 0.5);
    assert!((per_token("int8", "0.6.4") - heads * (128.0 + 4.0)).abs() < 0.5);
    assert!((per_token("int4", "0.6.4") - heads * (64.0 + 4.0)).abs() < 0.5);
    assert!((per_token("int8", "0.2.6") - heads * 128.0).abs() < 0.5);
    let wrong = ServeSettings { kv_cache_dtype: "fp8".into(), ..version("0.6.4") };
    assert_eq!(llama(80, wrong).ledger().unwrap_err().field, "job.serve.kv_cache_dtype");
}

/// DeepSeek-V2-Lite: 16 heads of 192, twice, until one latent row of 576 took their place.
#[test]
fn latents_are_expanded_before_0_12_3() {
    let per_token = |text: &str| {
        let serve = ServeSettings { max_model_len: Some(4096), ..version(text) };
        let ledger = Job::new("lmdeploy", "deepseek-v2-lite", 80 * GIB, serve).ledger().unwrap();
        ledger.kv.unwrap().bytes_per_token
    };
    assert!((per_token("0.12.0") - 27.0 * 2.0 * 16.0 * 192.0 * 2.0).abs() < 0.5);
    assert!((per_token("0.13.0") - 27.0 * 576.0 * 2.0).abs() < 0.5);
}

#[test]
fn a_session_longer_than_the_pool_is_shortened() {
    let serve = ServeSettings { max_model_len: Some(131_072), max_num_seqs: Some(8), ..version("0.9.2") };
    let ledger = llama(24, serve).ledger().unwrap();
    let message = ledger.warnings.iter().find(|w| w.id == "lmdeploy.truncated").unwrap();
    let tokens = argument(message, "tokens").unwrap();
    assert!((tokens - ledger.kv.unwrap().tokens as f64).abs() < 0.5 && tokens % 64.0 < 0.5);
}

#[test]
fn what_does_not_start_and_what_just_fits() {
    let ledger = Job::new("lmdeploy", "llama-3.1-70b", 80 * GIB, version("0.9.2")).ledger().unwrap();
    assert_eq!(ledger.refusal.unwrap().id, "lmdeploy.refusal.load");
    assert_eq!(ledger.verdict, Verdict::DoesNotFit);
    let serve = |n| ServeSettings { sequences: n, prompt_tokens: 8000, new_tokens: 192, ..version("0.9.2") };
    let most = llama(24, serve(1)).ledger().unwrap().kv.unwrap().tokens / 8192;
    assert!((1..100).contains(&most), "{most}");
    assert_ne!(llama(24, serve(most)).ledger().unwrap().verdict, Verdict::DoesNotFit);
    assert_eq!(llama(24, serve(most + 1)).ledger().unwrap().verdict, Verdict::DoesNotFit);
    // A share that leaves the buffers no room.
    let greedy = ServeSettings { free_gpu_memory_fraction: Some(0.99), ..version("0.9.2") };
    let ledger = llama(24, greedy).ledger().unwrap();
    assert!(ledger.refusal.is_none());
    assert!(ledger.warnings.iter().any(|w| w.id == "lmdeploy.over_device"));
    assert_eq!(ledger.verdict, Verdict::DoesNotFit);
}

#[test]
fn what_is_not_known_is_said() {
    let problem =
        Job::new("lmdeploy", "qwen3-next-80b-a3b", 180 * GIB, version("0.16.0")).ledger().unwrap_err();
    assert_eq!(problem.message.id, "lmdeploy.not_modelled");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn surface_and_ledger_agree_everywhere(
        which in 0usize..5,
        version in 0usize..5,
        sequences in 0u64..600,
        tokens in 2u64..40_000,
        total in 8u64..180,
        tensor in prop::sample::select(vec![1u64, 2, 4]),
        len in prop::option::of(1u64..60_000),
        share in prop::option::of(0.01f64..0.99),
    ) {
        let ids = ["llama-3.1-8b", "gemma-3-12b", "gpt-oss-20b", "deepseek-v2-lite", "jamba-1.5-mini"];
        let versions = ["0.1.0", "0.2.2", "0.6.4", "0.12.3", "main"];
        let serve = ServeSettings {
            engine_version: Some(versions[version].into()),
            max_model_len: len,
            free_gpu_memory_fraction: share,
            sequences,
            prompt_tokens: tokens - 1,
            new_tokens: 1,
            ..ServeSettings::default()
        };
        let mut job = Job::new("lmdeploy", ids[which], total * GIB, serve);
        job.parallel.tensor = tensor;
        surface_agrees(&job);
        if let Ok(ledger) = job.ledger() {
            consistent(ids[which], &ledger);
        }
    }
}
