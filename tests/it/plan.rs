//! Tests of limits and projections: each limit fits and the next does not, as the engine itself says.

use crate::scenario_of;
use oom_ledger_core::engines::{AttentionImpl, Inputs, ServeSettings, engine};
use oom_ledger_core::memory::{TermId, Verdict};
use oom_ledger_core::model::AttentionKind;
use oom_ledger_core::plan::{Axis, estimate, geometric, largest, largest_throughout, limits, plane, series};
use oom_ledger_core::share::Resolved;
use proptest::prelude::*;

/// Jobs that differ in what stops them: engine, attention, device, model kind.
const JOBS: &[(&str, &str, &str)] = &[
    ("llama-3.1-8b", "h100-80gb", r#"{"engine": "vllm", "max_model_len": 8192}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "vllm", "max_model_len": 131072}"#),
    ("gemma-3-12b", "l40s", r#"{"engine": "vllm", "max_model_len": 32768}"#),
    ("gpt-oss-20b", "l4", r#"{"engine": "vllm", "max_model_len": 16384}"#),
    ("deepseek-v2-lite", "a100-80gb", r#"{"engine": "vllm", "max_model_len": 16384}"#),
    ("qwen3-32b", "l4", r#"{"engine": "vllm", "max_model_len": 8192}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "sglang", "max_model_len": 32768}"#),
    ("llama-3.1-8b", "a10g", r#"{"engine": "tgi", "max_model_len": 8192, "engine_version": "2.4.1"}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "lmdeploy", "max_model_len": 32768}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "tensorrt_llm", "max_model_len": 32768}"#),
    ("gpt-oss-20b", "l40s", r#"{"engine": "sglang", "max_model_len": 32768}"#),
    ("qwen3-32b", "l4", r#"{"engine": "sglang", "max_model_len": 8192}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "transformers", "attention": "eager"}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "transformers", "attention": "sdpa", "logits": "all"}"#),
    ("mistral-7b-v0.1", "a10", r#"{"engine": "transformers", "attention": "sdpa", "cache": "static"}"#),
    ("qwen3-30b-a3b", "h100-80gb", r#"{"engine": "transformers", "attention": "sdpa"}"#),
    ("qwen3-32b", "l4", r#"{"engine": "transformers", "attention": "flash"}"#),
    ("llama-3.1-8b", "rtx-4090", r#"{"engine": "llama_cpp", "max_model_len": 16384, "max_num_seqs": 4}"#),
    ("gemma-3-12b", "l40s", r#"{"engine": "llama_cpp"}"#),
    ("qwen3-32b", "l4", r#"{"engine": "ollama", "engine_version": "0.9.0"}"#),
];

fn jobs() -> Vec<(String, Resolved)> {
    JOBS.iter()
        .map(|(model, device, serve)| {
            let text = format!(
                r#"{{"model": {{"preset": "{model}"}}, "device": {{"preset": "{device}"}}, "job": {{"serve": {serve}}}}}"#
            );
            (format!("{model} {device} {serve}"), scenario_of(&text).resolve().unwrap())
        })
        .collect()
}

#[test]
fn settings_of_another_engine_are_named() {
    let note = |serve: &str| {
        let text = format!(
            r#"{{"model": {{"preset": "llama-3.1-8b"}}, "device": {{"preset": "h100-80gb"}}, "job": {{"serve": {serve}}}}}"#
        );
        let resolved = scenario_of(&text).resolve().unwrap();
        let warnings = estimate(&resolved.inputs()).unwrap().warnings;
        let note = warnings.into_iter().find(|w| w.id == "plan.settings_of_another_engine")?;
        Some(note.args.iter().find(|(name, _)| *name == "fields")?.1.to_string())
    };
    assert_eq!(
        note(r#"{"engine": "vllm", "ubatch": 512, "padding_mask": true}"#).unwrap(),
        "ubatch, padding_mask"
    );
    assert_eq!(note(r#"{"engine": "transformers", "max_num_seqs": 4}"#).unwrap(), "max_num_seqs");
    assert_eq!(note(r#"{"engine": "vllm", "block_size": 32, "enforce_eager": true}"#), None);
    assert_eq!(note(r#"{"engine": "transformers", "attention": "eager", "cache": "static"}"#), None);
}

/// Whether the engine itself, asked for a ledger, serves these settings.
fn served(inputs: &Inputs<'_>, settings: &ServeSettings) -> bool {
    let asked = Inputs { serve: settings, ..*inputs };
    engine(&settings.engine).unwrap().ledger(&asked).is_ok_and(|l| l.verdict != Verdict::DoesNotFit)
}

#[test]
fn a_limit_fits_and_the_next_value_does_not() {
    for (name, resolved) in jobs() {
        let inputs = resolved.inputs();
        let serve = inputs.serve;
        let found = limits(engine(&serve.engine).unwrap(), &inputs);
        let stopped = |field: &str| found.stopped_by.iter().any(|(f, _)| *f == field);

        let with = |n: u64| ServeSettings { sequences: n, ..serve.clone() };
        let most = found.max_sequences.unwrap();
        assert!(most == 0 || served(&inputs, &with(most)), "{name}: {most} sequences");
        if stopped("max_sequences") {
            assert!(!served(&inputs, &with(most + 1)), "{name}: {} sequences", most + 1);
        }

        let with = |n: u64| ServeSettings { new_tokens: n, ..serve.clone() };
        let most = found.max_new_tokens.unwrap();
        assert!(most == 0 || served(&inputs, &with(most)), "{name}: {most} new tokens");
        if stopped("max_new_tokens") {
            assert!(!served(&inputs, &with(most + 1)), "{name}: {} new tokens", most + 1);
        }

        if serve.engine == "vllm" {
            let with = |n: u64| ServeSettings {
                max_model_len: Some(n),
                sequences: 1,
                prompt_tokens: n.max(2) - 1,
                new_tokens: 1,
                ..serve.clone()
            };
            let most = found.max_model_len.unwrap();
            assert!(most == 0 || served(&inputs, &with(most)), "{name}: a length of {most}");
            if stopped("max_model_len") {
                assert!(!served(&inputs, &with(most + 1)), "{name}: a length of {}", most + 1);
            }
        }
    }
}

/// Jobs whose masks are copied unless their width is a multiple of eight: memory falls at every eighth length.
const SAWTOOTH: &[(&str, &str, &str)] = &[
    ("llama-3.1-8b", "rtx-4090", r#""attention": "sdpa", "logits": "all", "padding_mask": true"#),
    ("llama-3.2-1b", "h100-80gb", r#""attention": "sdpa", "logits": "all", "padding_mask": true"#),
    ("mistral-7b-v0.1", "rtx-4090", r#""attention": "sdpa", "cache": "static""#),
    ("qwen3-32b", "h100-80gb", r#""attention": "sdpa", "padding_mask": true"#),
];

#[test]
fn every_length_up_to_a_limit_fits_where_aligned_lengths_need_less() {
    let mut beyond = 0;
    for (model, device, serve) in SAWTOOTH {
        let text = format!(
            r#"{{"model": {{"preset": "{model}"}}, "device": {{"preset": "{device}"}},
                "job": {{"serve": {{"engine": "transformers", {serve}}}}}}}"#
        );
        let resolved = scenario_of(&text).resolve().unwrap();
        let inputs = resolved.inputs();
        let series = series(&inputs, Axis::Tokens, 96).unwrap();
        let at = series.crossing.expect("none of these holds the longest request at every length");
        for sample in series.samples.iter().filter(|s| s.x <= at) {
            assert!(sample.fits, "{model}: {} tokens do not fit, but up to {at} do", sample.x);
        }
        beyond += series.samples.iter().filter(|s| s.x > at && s.fits).count();

        let engine = engine("transformers").unwrap();
        let surface = engine.surface(&inputs).unwrap();
        let found = limits(engine, &inputs);
        let (prompt, sequences) = (inputs.serve.prompt_tokens, inputs.serve.sequences);
        let most = found.max_new_tokens.unwrap();
        for new in (1..=most).rev().take(64).chain((1..=most).step_by(997)) {
            assert!(surface.at(sequences, prompt, new).fits, "{model}: {new} new tokens of {most}");
        }
        let most = found.max_model_len.unwrap();
        for tokens in (1..=most).rev().take(64).chain((1..=most).step_by(997)) {
            assert!(surface.at_tokens(1, tokens, 1).fits, "{model}: {tokens} tokens of {most}");
        }
    }
    assert!(beyond > 0, "no aligned length beyond a crossing fits: the jobs no longer show what is tested");
}

#[test]
fn the_term_that_stops_a_limit_is_named() {
    let stop = |serve: &str, device: &str, field: &str| {
        let text = format!(
            r#"{{"model": {{"preset": "llama-3.1-8b"}}, "device": {{"preset": "{device}"}}, "job": {{"serve": {serve}}}}}"#
        );
        let resolved = scenario_of(&text).resolve().unwrap();
        let found = estimate(&resolved.inputs()).unwrap().limits;
        found.stopped_by.iter().find(|(f, _)| *f == field).map(|(_, term)| *term)
    };
    let eager = r#"{"engine": "transformers", "attention": "eager", "prompt_tokens": 4096, "new_tokens": 1}"#;
    assert_eq!(stop(eager, "rtx-4090", "max_sequences"), Some(TermId::AttentionScores));
    let logits = r#"{"engine": "transformers", "attention": "sdpa", "logits": "all", "prompt_tokens": 4096, "new_tokens": 1}"#;
    assert_eq!(stop(logits, "rtx-4090", "max_sequences"), Some(TermId::Logits));
    let pool = r#"{"engine": "vllm", "max_model_len": 8192}"#;
    assert_eq!(stop(pool, "h100-80gb", "max_sequences"), Some(TermId::KvCache));
    let capped = r#"{"engine": "vllm", "max_model_len": 8192, "max_num_seqs": 4}"#;
    assert_eq!(stop(capped, "h100-80gb", "max_sequences"), None, "an option is no term");
}

#[test]
fn a_model_larger_than_the_device_has_no_limits_to_give() {
    for serve in [r#"{"engine": "vllm", "max_model_len": 8192}"#, r#"{"engine": "transformers"}"#] {
        let text = format!(
            r#"{{"model": {{"preset": "qwen3-32b"}}, "device": {{"preset": "l4"}}, "job": {{"serve": {serve}}}}}"#
        );
        let resolved = scenario_of(&text).resolve().unwrap();
        let answer = estimate(&resolved.inputs()).unwrap();
        assert_eq!(answer.verdict, Verdict::DoesNotFit, "{serve}");
        assert_eq!(answer.limits.max_sequences, Some(0), "{serve}");
        let stop =
            answer.limits.stopped_by.iter().find(|(f, _)| *f == "max_sequences").map(|(_, term)| *term);
        assert_eq!(stop, Some(TermId::Weights), "{serve}");
    }
}

#[test]
fn terms_alive_at_the_highest_phase_sum_to_its_peak() {
    for (name, resolved) in jobs() {
        for axis in [Axis::Tokens, Axis::Sequences] {
            let series = series(&resolved.inputs(), axis, 12).unwrap();
            for sample in &series.samples {
                assert_eq!(sample.terms.iter().sum::<u64>(), sample.total, "{name} {axis:?} at {}", sample.x);
                assert!(sample.low <= sample.total && sample.total <= sample.high, "{name} at {}", sample.x);
            }
        }
    }
}

#[test]
fn the_crossing_point_and_its_neighbour_are_among_the_samples() {
    let mut crossings = 0;
    for (name, resolved) in jobs() {
        for axis in [Axis::Tokens, Axis::Sequences] {
            let series = series(&resolved.inputs(), axis, 24).unwrap();
            let Some(at) = series.crossing else { continue };
            crossings += 1;
            let fits = |x: u64| series.samples.iter().find(|s| s.x == x).map(|s| s.fits);
            assert_eq!((fits(at), fits(at + 1)), (Some(true), Some(false)), "{name} {axis:?} {at}");
        }
    }
    assert!(crossings >= 6, "only {crossings} of the jobs cross anything");
}

#[test]
fn the_plane_agrees_with_its_frontier_and_with_the_ledger() {
    for (name, resolved) in jobs() {
        let inputs = resolved.inputs();
        let plane = plane(&inputs, 24, 16).unwrap();
        // A mask whose length is no multiple of 8 is copied for every head (sdpa's efficient kernel), so that
        // beyond the window one token more may need less. Everywhere else longer requests are never more.
        let aligned_matters = inputs.serve.attention == Some(AttentionImpl::Sdpa)
            && inputs.serve.engine == "transformers"
            && inputs.model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Sliding { .. }));
        let falls = plane.frontier.windows(2).all(|w| w[0] >= w[1]);
        assert!(falls || aligned_matters, "{name}: longer requests, more of them?");
        for (row, sequences) in plane.sequences.iter().enumerate() {
            for (column, tokens) in plane.tokens.iter().enumerate() {
                let fits = plane.fits[row * plane.tokens.len() + column];
                assert_eq!(fits, *sequences <= plane.frontier[column], "{name}: {sequences} of {tokens}");
            }
        }
        // The ledger itself, on a few cells.
        for (row, column) in [(0, 0), (4, 7), (8, 12), (15, 5), (3, 23), (15, 23)] {
            let (Some(sequences), Some(tokens)) = (plane.sequences.get(row), plane.tokens.get(column)) else {
                continue;
            };
            let settings = ServeSettings {
                sequences: *sequences,
                new_tokens: 1.min(tokens - 1),
                prompt_tokens: (tokens - 1).max(1),
                ..inputs.serve.clone()
            };
            let fits = plane.fits[row * plane.tokens.len() + column];
            assert_eq!(served(&inputs, &settings), fits, "{name}: {sequences} of {tokens}");
        }
    }
}

#[test]
fn the_longest_lengths_that_can_be_written_are_answered() {
    for (name, resolved) in jobs() {
        let serve = ServeSettings {
            prompt_tokens: u64::MAX,
            new_tokens: u64::MAX,
            max_model_len: None,
            ..resolved.serve.clone()
        };
        let inputs = Inputs { serve: &serve, ..resolved.inputs() };
        if let Ok(found) = series(&inputs, Axis::Tokens, 8) {
            assert_eq!(found.samples.last().map(|s| s.x), Some(u64::MAX), "{name}");
        }
    }
}

#[test]
fn scales_start_at_one_rise_and_end_at_the_most() {
    for (most, n) in [(1, 2), (8, 256), (131_072, 256), (10_000_000, 64)] {
        let all = geometric(most, n);
        assert_eq!((all.first(), all.last()), (Some(&1), Some(&most)));
        assert!(all.windows(2).all(|w| w[0] < w[1]), "{most}: {all:?}");
    }
}

proptest! {
    #[test]
    fn the_search_finds_the_last_value_that_fits(bound in 0_u64..1 << 40, most in 0_u64..1 << 40) {
        prop_assert_eq!(largest(most, |n| n <= bound), bound.min(most));
    }

    #[test]
    fn a_search_over_lengths_stops_at_the_first_that_does_not_fit(
        bound in 0_u64..1 << 20,
        aligned in 0_u64..1 << 21,
        most in 0_u64..1 << 22,
        residue in 0_u64..8,
    ) {
        // Lengths of one residue fit further than the others.
        let fits = |n: u64| n <= bound || n % 8 == residue && n <= aligned;
        let found = largest_throughout(most, fits);
        let first = (bound + 1..=bound + 2 + aligned).find(|n| !fits(*n)).unwrap();
        prop_assert_eq!(found, (first - 1).min(most));
    }

    #[test]
    fn no_load_makes_limits_or_series_panic(
        sequences in 1_u64..1 << 24,
        prompt in 1_u64..1 << 32,
        new in 0_u64..1 << 32,
        job in 0..JOBS.len(),
    ) {
        let (_, resolved) = &jobs()[job];
        let serve = ServeSettings { sequences, prompt_tokens: prompt, new_tokens: new, ..resolved.serve.clone() };
        let inputs = Inputs { serve: &serve, ..resolved.inputs() };
        if let Ok(answer) = estimate(&inputs) {
            prop_assert!(answer.limits.max_sequences.is_some());
        }
        let _ = series(&inputs, Axis::Tokens, 4);
        let _ = plane(&inputs, 4, 4);
    }
}

/// What a page offers as KV format, the engine takes.
#[test]
fn every_kv_format_on_offer_is_accepted() {
    use oom_ledger_core::engines::{ENGINES, KV_CHOICES, kv_choices};
    for engine in ENGINES {
        assert_eq!(kv_choices(engine.id()).first(), Some(&"auto"));
        assert!(KV_CHOICES.iter().any(|(id, _)| *id == engine.id()), "{}", engine.id());
    }
    for (id, all) in KV_CHOICES {
        for kv in *all {
            let model = if *kv == "fp8_ds_mla" { "deepseek-v3" } else { "llama-3.1-8b" };
            let text = format!(
                r#"{{"model": {{"preset": "{model}"}}, "device": {{"preset": "b200", "count": 8}},
                "job": {{"serve": {{"engine": "{id}", "kv_cache_dtype": "{kv}",
                "max_model_len": 4096, "cache": "quantized", "attention": "eager"}}}}}}"#
            );
            // transformers quantises its cache by the cache's class.
            let plain = *id != "transformers" || *kv == "auto";
            let text = if plain { text.replace("quantized", "dynamic") } else { text };
            let resolved = scenario_of(&text).resolve().unwrap();
            let answer = engine(id).unwrap().ledger(&resolved.inputs());
            assert!(answer.is_ok(), "{id} {kv}: {answer:?}");
        }
    }
}

/// Each replica of data parallelism has devices of its own: eight copies on eight cards need what one needs on one.
#[test]
fn data_parallel_replicas_do_not_share_devices() {
    let answer = |count: u64, data: u64| {
        let text = format!(
            r#"{{"model": {{"preset": "llama-3.1-8b"}}, "device": {{"preset": "h100-80gb", "count": {count}}},
            "parallel": {{"data": {data}}}, "job": {{"serve": {{"engine": "transformers"}}}}}}"#
        );
        estimate(&scenario_of(&text).resolve().unwrap().inputs()).unwrap().peak_bytes
    };
    assert_eq!(answer(8, 8), answer(1, 1));
    assert_eq!(answer(8, 4), answer(2, 1));
    assert!(answer(2, 1) < answer(1, 1));
}
