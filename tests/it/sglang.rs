//! SGLang: what start-up logs printed, reproduced; refusals and what fits just below; the surface.

use crate::pooled::{Job, Row, argument, compare, consistent, job, rows, surface_agrees};
use oom_ledger_core::engines::ServeSettings;
use oom_ledger_core::memory::{TermId, Verdict};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn logs() -> Vec<Row> {
    rows(include_str!("../fixtures/sglang/logs.json"))
}

#[test]
fn every_printed_figure_is_reproduced() {
    let errors = compare("sglang", &logs());
    assert!(errors.len() >= 14, "{}", errors.len());
    assert!(errors[errors.len() / 2] < 0.003, "median {}", errors[errors.len() / 2]);
}

#[test]
fn rows_add_up_and_the_surface_agrees() {
    for row in logs() {
        let job = job("sglang", &row);
        consistent(&row.id, &job.ledger().unwrap());
        surface_agrees(&job);
    }
}

fn llama(total_gib: u64, serve: ServeSettings) -> Job {
    let serve = ServeSettings { max_model_len: Some(8192), ..serve };
    Job::new("sglang", "llama-3.1-8b", total_gib * GIB, serve)
}

fn share(f: f64, version: &str) -> ServeSettings {
    ServeSettings {
        mem_fraction_static: Some(f),
        engine_version: Some(version.into()),
        ..ServeSettings::default()
    }
}

/// Start-up wants a larger share, serving a smaller one.
#[test]
fn a_share_too_small_refuses_and_one_too_large_runs_out_later() {
    let small = llama(24, share(0.6, "0.5.6")).ledger().unwrap();
    let message = small.refusal.clone().unwrap();
    assert_eq!(message.id, "sglang.refusal.no_tokens");
    assert_eq!(small.verdict, Verdict::DoesNotFit);
    let least = argument(&message, "least").unwrap();
    // The share that it names starts; a thousandth less does not.
    assert!(llama(24, share(least, "0.5.6")).ledger().unwrap().refusal.is_none(), "{least}");
    assert!(llama(24, share(least - 0.001, "0.5.6")).ledger().unwrap().refusal.is_some(), "{least}");
    let newer = llama(24, share(0.6, "0.5.20")).ledger().unwrap();
    assert_eq!(newer.refusal.unwrap().id, "sglang.refusal.raise_above");

    let large = llama(24, share(0.99, "0.5.6")).ledger().unwrap();
    assert!(large.refusal.is_none());
    assert_eq!(large.verdict, Verdict::DoesNotFit);
    assert!(large.warnings.iter().any(|w| w.id == "sglang.over_device"), "{:?}", large.warnings);
    let right = llama(24, share(0.8, "0.5.6")).ledger().unwrap();
    assert_eq!(right.verdict, Verdict::Fits, "{:?}", right.warnings);
}

#[test]
fn weights_beyond_the_device_and_beyond_any_share() {
    let serve = || ServeSettings { max_model_len: Some(4096), ..ServeSettings::default() };
    let refusal = |id: &str, gib: u64| {
        let ledger = Job::new("sglang", id, gib * GIB, serve()).ledger().unwrap();
        (ledger.verdict, ledger.refusal.map(|m| m.id))
    };
    assert_eq!(refusal("llama-3.1-70b", 80), (Verdict::DoesNotFit, Some("sglang.refusal.load")));
    assert_eq!(refusal("qwen3-32b", 64), (Verdict::DoesNotFit, Some("sglang.refusal.raise_above")));
    // Weights fit into what is free, but nothing is left beside what loading takes.
    let mut job = Job::new("sglang", "qwen3-32b", 64 * GIB, serve());
    let bytes = |job: &Job, id| job.ledger().unwrap().term(id).unwrap().bytes;
    let (weights, context) = (bytes(&job, TermId::Weights), bytes(&job, TermId::ContextOverhead));
    job.device.total_bytes = weights + context + (40 << 20);
    assert_eq!(job.ledger().unwrap().refusal.unwrap().id, "sglang.refusal.no_share");
    assert_eq!(refusal("qwen3-32b", 96).1, None);
}

/// The last sequence that the pool holds, and one more.
#[test]
fn one_sequence_more_than_the_pool_holds_does_not_fit() {
    let serve =
        |n| ServeSettings { sequences: n, prompt_tokens: 8000, new_tokens: 192, ..share(0.85, "0.5.6") };
    let tokens = llama(24, serve(1)).ledger().unwrap().kv.unwrap().tokens;
    let most = tokens / 8192;
    assert!((1..100).contains(&most), "{most}");
    assert_ne!(llama(24, serve(most)).ledger().unwrap().verdict, Verdict::DoesNotFit);
    let more = llama(24, serve(most + 1)).ledger().unwrap();
    assert_eq!(more.verdict, Verdict::DoesNotFit);
    assert!(more.warnings.iter().any(|w| w.id == "pooled.load_waits"));
}

#[test]
fn a_printed_figure_replaces_its_term() {
    let mut job = llama(24, share(0.85, "0.5.6"));
    let modelled = job.ledger().unwrap();
    job.measured.kv_available_bytes = Some(3 * GIB);
    job.measured.cuda_graph_bytes = Some(GIB / 2);
    job.measured.weights_bytes = Some(15 * GIB);
    let printed = job.ledger().unwrap();
    assert_eq!(printed.kv.as_ref().unwrap().tokens, 3 * GIB / 131_072);
    assert_eq!(printed.term(TermId::CudaGraphs).unwrap().bytes, GIB / 2);
    assert_eq!(printed.term(TermId::Weights).unwrap().bytes, 15 * GIB);
    assert_ne!(modelled.kv.unwrap().tokens, printed.kv.unwrap().tokens);
    // Graphs off: no row.
    job.measured.cuda_graph_bytes = None;
    job.serve.enforce_eager = true;
    assert!(job.ledger().unwrap().term(TermId::CudaGraphs).is_none());
}

/// gpt-oss got two pools with 0.5.10; four tokens of the window for five of the rest.
#[test]
fn windows_have_a_pool_of_their_own_from_a_version_on() {
    let at = |version: &str| {
        let serve = ServeSettings { max_model_len: Some(32_768), ..share(0.8, version) };
        Job::new("sglang", "gpt-oss-20b", 80 * GIB, serve).ledger().unwrap()
    };
    let (one, two) = (at("0.5.6"), at("0.5.10"));
    assert!(one.warnings.iter().any(|w| w.id == "sglang.window_ignored"));
    // 12 of 24 layers at four fifths.
    let ratio = two.kv.as_ref().unwrap().tokens as f64 / one.kv.as_ref().unwrap().tokens as f64;
    assert!((ratio - 24.0 / (12.0 + 0.8 * 12.0)).abs() < 0.001, "{ratio}");
    let pool = |l: &oom_ledger_core::memory::Ledger| l.term(TermId::KvCache).unwrap().bytes as f64;
    assert!((pool(&two) / pool(&one) - 1.0).abs() < 0.001);
}

#[test]
fn states_bound_the_requests() {
    let serve = ServeSettings { max_model_len: Some(32_768), ..share(0.9, "0.5.10") };
    let mut job = Job::new("sglang", "qwen3-next-80b-a3b", 180 * GIB, serve);
    let ledger = job.ledger().unwrap();
    let states = ledger.term(TermId::RecurrentState).unwrap().bytes as f64;
    let cache = ledger.term(TermId::KvCache).unwrap().bytes as f64;
    assert!((states / cache - 0.9).abs() < 0.05, "{}", states / cache);
    let message = ledger.warnings.iter().find(|w| w.id == "sglang.requests_by_states").unwrap();
    let most = argument(message, "requests").unwrap() as u64;
    job.serve.sequences = most;
    assert_ne!(job.ledger().unwrap().verdict, Verdict::DoesNotFit);
    job.serve.sequences = most + 1;
    assert_eq!(job.ledger().unwrap().verdict, Verdict::DoesNotFit);
}

/// Eight groups of one rank each hold attention whole and read an eighth of the chunk.
#[test]
fn data_parallel_attention_replicates_attention() {
    let serve = |dp| ServeSettings { dp_attention: dp, max_model_len: Some(8192), ..share(0.85, "0.5.6") };
    let of = |dp| {
        let mut job = Job::new("sglang", "deepseek-v3", 140 * GIB, serve(dp));
        job.parallel.tensor = 8;
        job.ledger().unwrap()
    };
    let (split, groups) = (of(false), of(true));
    let weights = |l: &oom_ledger_core::memory::Ledger| l.term(TermId::Weights).unwrap().bytes;
    let more = weights(&groups) - weights(&split);
    // Attention of DeepSeek-V3 is 11.4 G parameters in fp8 (kv_b_proj once more in bf16); seven eighths come back.
    assert!((9 * GIB..16 * GIB).contains(&more), "{more}");
    let chunk = |l: &oom_ledger_core::memory::Ledger| {
        l.term(TermId::Activations).unwrap().working.symbols[0].value.clone()
    };
    assert_ne!(chunk(&split), chunk(&groups));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn surface_and_ledger_agree_everywhere(
        which in 0usize..7,
        version in 0usize..7,
        sequences in 0u64..600,
        tokens in 2u64..40_000,
        total in 8u64..180,
        tensor in prop::sample::select(vec![1u64, 2, 4]),
        len in prop::option::of(1u64..60_000),
        f in prop::option::of(0.3f64..1.0),
        eager in any::<bool>(),
        dp in any::<bool>(),
        page in prop::sample::select(vec![1u64, 16, 64]),
    ) {
        let ids = ["llama-3.1-8b", "gemma-3-12b", "gpt-oss-20b", "qwen3-next-80b-a3b", "deepseek-v2-lite", "nemotron-3-nano-30b-a3b", "llama-4-scout"];
        let versions = ["0.3.0", "0.4.2", "0.4.7", "0.4.9", "0.5.6", "0.5.12", "main"];
        let serve = ServeSettings {
            engine_version: Some(versions[version].into()),
            max_model_len: len,
            mem_fraction_static: f,
            enforce_eager: eager,
            dp_attention: dp,
            block_size: Some(page),
            sequences,
            prompt_tokens: tokens - 1,
            new_tokens: 1,
            ..ServeSettings::default()
        };
        let mut job = Job::new("sglang", ids[which], total * GIB, serve);
        job.parallel.tensor = tensor;
        surface_agrees(&job);
        if let Ok(ledger) = job.ledger() {
            consistent(ids[which], &ledger);
        }
    }
}
