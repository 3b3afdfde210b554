//! TensorRT-LLM: what it printed, reproduced; its engines and its PyTorch backend; the surface.

use crate::pooled::{Job, Row, argument, compare, consistent, job, rows, surface_agrees};
use oom_ledger_core::engines::ServeSettings;
use oom_ledger_core::memory::{Ledger, TermId, Verdict};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn logs() -> Vec<Row> {
    rows(include_str!("../fixtures/tensorrt_llm/logs.json"))
}

#[test]
fn every_printed_figure_is_reproduced() {
    let errors = compare("tensorrt_llm", &logs());
    assert!(errors.len() >= 27 && errors[errors.len() / 2] < 0.001, "{errors:?}");
}

#[test]
fn rows_add_up_and_the_surface_agrees() {
    for row in logs() {
        let job = job("tensorrt_llm", &row);
        consistent(&row.id, &job.ledger().unwrap());
        surface_agrees(&job);
    }
}

fn llama(total_gib: u64, serve: ServeSettings) -> Job {
    let serve = ServeSettings { max_model_len: serve.max_model_len.or(Some(8192)), ..serve };
    Job::new("tensorrt_llm", "llama-3.1-8b", total_gib * GIB, serve)
}

fn version(text: &str) -> ServeSettings {
    ServeSettings { engine_version: Some(text.into()), ..ServeSettings::default() }
}

fn bytes(ledger: &Ledger, id: TermId) -> u64 {
    ledger.term(id).map_or(0, |t| t.bytes)
}

/// The pool is 0.9 of what the other rows leave, rounded up to a block.
#[test]
fn the_pool_is_a_share_of_what_is_left() {
    for text in ["0.15", "1.1"] {
        let ledger = llama(80, version(text)).ledger().unwrap();
        let taken = [
            TermId::Weights,
            TermId::ContextOverhead,
            TermId::Activations,
            TermId::Workspace,
            TermId::CudaGraphs,
        ];
        let left = 80 * GIB - taken.iter().map(|id| bytes(&ledger, *id)).sum::<u64>();
        let kv = ledger.kv.clone().unwrap();
        let (share, pool) = ((left as f64 * 0.9) as u64, bytes(&ledger, TermId::KvCache));
        assert!(pool + kv.block_bytes >= share && pool < share + kv.block_bytes, "{text}: {pool} {share}");
        assert_eq!(kv.block_tokens, if text == "0.15" { 64 } else { 32 });
        // Engines keep their buffers; the PyTorch backend has none.
        assert_eq!(bytes(&ledger, TermId::Workspace) > GIB, text == "0.15");
        assert_eq!(bytes(&ledger, TermId::CudaGraphs) > 0, text == "1.1");
    }
}

#[test]
fn max_tokens_bounds_the_share_or_stands_in_its_place() {
    let asked = |text: &str, tokens: u64, share: Option<f64>| {
        let serve = ServeSettings {
            max_total_tokens: Some(tokens),
            free_gpu_memory_fraction: share,
            max_num_seqs: Some(64),
            ..version(text)
        };
        llama(80, serve).ledger().unwrap()
    };
    assert_eq!(asked("1.1", 10_001, None).kv.unwrap().tokens, 10_016);
    assert_eq!(asked("0.15", 10_001, None).kv.unwrap().tokens, 10_048);
    assert!(asked("1.1", 1 << 30, None).refusal.is_none());
    assert!(asked("0.15", 1 << 30, Some(0.9)).refusal.is_none());
    assert_eq!(asked("0.15", 1 << 30, None).refusal.unwrap().id, "tensorrt_llm.refusal.pool");
}

/// Llama 2 7B, built for 192 sequences of 4096 tokens without a bound on tokens, did not start on 40 GB
/// (NVIDIA/TensorRT-LLM#401); with smaller maxima it does.
#[test]
fn buffers_of_the_largest_batch_come_before_any_request() {
    let built = |sequences, tokens| {
        let serve = ServeSettings {
            max_num_seqs: Some(sequences),
            max_num_batched_tokens: Some(tokens),
            max_model_len: Some(4096),
            ..version("0.5")
        };
        Job::new("tensorrt_llm", "llama-2-7b", 40 * GIB, serve).ledger().unwrap()
    };
    let refused = built(192, 192 * 2048);
    assert_eq!(refused.refusal.unwrap().id, "tensorrt_llm.refusal.buffers");
    assert_eq!(refused.verdict, Verdict::DoesNotFit);
    assert!(built(16, 16 * 2048).refusal.is_none());
}

#[test]
fn what_does_not_start_and_what_just_fits() {
    for (text, id) in [("1.1", "tensorrt_llm.refusal.load"), ("0.15", "tensorrt_llm.refusal.load_engine")] {
        let ledger = Job::new("tensorrt_llm", "llama-3.1-70b", 80 * GIB, version(text)).ledger().unwrap();
        assert_eq!(ledger.refusal.unwrap().id, id);
    }
    let tight = ServeSettings { max_num_batched_tokens: Some(65_536), ..version("1.1") };
    assert_eq!(llama(18, tight).ledger().unwrap().refusal.unwrap().id, "tensorrt_llm.refusal.profile");
    let serve = |n| ServeSettings { sequences: n, prompt_tokens: 8000, new_tokens: 192, ..version("1.1") };
    let most = llama(32, serve(1)).ledger().unwrap().kv.unwrap().tokens / 8192;
    assert!((1..100).contains(&most), "{most}");
    assert_ne!(llama(32, serve(most)).ledger().unwrap().verdict, Verdict::DoesNotFit);
    assert_eq!(llama(32, serve(most + 1)).ledger().unwrap().verdict, Verdict::DoesNotFit);
}

#[test]
fn a_request_longer_than_the_pool_is_shortened_and_large_batches_are_named() {
    let serve = ServeSettings { max_model_len: Some(131_072), ..version("0.15") };
    let ledger = llama(40, serve).ledger().unwrap();
    let message = ledger.warnings.iter().find(|w| w.id == "tensorrt_llm.truncated").unwrap();
    let tokens = argument(message, "tokens").unwrap();
    assert!((tokens - ledger.kv.unwrap().tokens as f64).abs() < 0.5 && tokens % 64.0 < 0.5);
    assert!(ledger.warnings.iter().any(|w| w.id == "tensorrt_llm.large_batch"));
}

#[test]
fn formats_and_models_that_are_not_known_are_said() {
    let with = |dtype: &str, text: &str| {
        let serve = ServeSettings { kv_cache_dtype: dtype.into(), ..version(text) };
        llama(80, serve).ledger()
    };
    assert!(with("int8", "0.15").is_ok() && with("nvfp4", "1.1").is_ok());
    assert_eq!(with("int8", "1.1").unwrap_err().field, "job.serve.kv_cache_dtype");
    assert_eq!(with("nvfp4", "0.15").unwrap_err().field, "job.serve.kv_cache_dtype");
    let whole = ServeSettings { free_gpu_memory_fraction: Some(1.0), ..version("1.1") };
    assert_eq!(llama(80, whole).ledger().unwrap_err().field, "job.serve.free_gpu_memory_fraction");
    let hybrid = Job::new("tensorrt_llm", "qwen3-next-80b-a3b", 180 * GIB, version("1.1"));
    assert_eq!(hybrid.ledger().unwrap_err().message.id, "tensorrt_llm.not_modelled");
    let windows = Job::new("tensorrt_llm", "gemma-3-12b", 80 * GIB, version("1.1")).ledger().unwrap();
    assert!(windows.warnings.iter().any(|w| w.id == "tensorrt_llm.windows_whole"));
}

/// 61 layers over 4 stages: the first holds 16.
#[test]
fn the_fullest_stage_decides() {
    let serve = ServeSettings { max_model_len: Some(4096), ..version("1.1") };
    let mut job = Job::new("tensorrt_llm", "deepseek-v3", 800 * GIB, serve);
    job.parallel.pipeline = 4;
    let kv = job.ledger().unwrap().kv.unwrap();
    assert!((kv.bytes_per_token - 16.0 * 576.0 * 2.0).abs() < 0.5, "{}", kv.bytes_per_token);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn surface_and_ledger_agree_everywhere(
        which in 0usize..5,
        version in 0usize..5,
        sequences in 0u64..3000,
        tokens in 2u64..40_000,
        total in 8u64..180,
        tensor in prop::sample::select(vec![1u64, 2, 4]),
        pipeline in prop::sample::select(vec![1u64, 2]),
        len in prop::option::of(1u64..60_000),
        asked in prop::option::of(1u64..2_000_000),
        share in prop::option::of(0.01f64..0.99),
    ) {
        let ids = ["llama-3.1-8b", "gemma-3-12b", "gpt-oss-20b", "deepseek-v2-lite", "jamba-1.5-mini"];
        let versions = ["0.5", "0.15", "0.18", "1.1.0rc3", "main"];
        let serve = ServeSettings {
            engine_version: Some(versions[version].into()),
            max_model_len: len,
            max_total_tokens: asked,
            free_gpu_memory_fraction: share,
            sequences,
            prompt_tokens: tokens - 1,
            new_tokens: 1,
            ..ServeSettings::default()
        };
        let mut job = Job::new("tensorrt_llm", ids[which], total * GIB, serve);
        (job.parallel.tensor, job.parallel.pipeline) = (tensor, pipeline);
        surface_agrees(&job);
        if let Ok(ledger) = job.ledger() {
            consistent(ids[which], &ledger);
        }
    }
}
