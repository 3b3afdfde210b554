//! The report: rows, Markdown and plain text say the same, in both languages.

use oom_ledger_core::engines::{ENGINES, Engine};
use oom_ledger_core::memory::Verdict;
use oom_ledger_core::share::{Layout, Report, Scenario, markdown, plain, run};
use oom_ledger_core::text::{Lang, message};
use oom_ledger_core::units::{Bytes, bytes_human};
use serde_json::json;

/// A Scenario of every engine, on a device of that many bytes.
fn scenarios(total: u64) -> Vec<Scenario> {
    let scenario = |engine: &&dyn Engine| {
        Scenario::from_json(json!({
            "model": {"preset": "llama-3.1-8b"},
            "device": {"total_bytes": total},
            "job": {"serve": {"engine": engine.id(), "max_model_len": 8192, "prompt_tokens": 4096}},
        }))
        .unwrap()
    };
    ENGINES.iter().map(scenario).collect()
}

const WIDE: Layout = Layout { width: 100, workings: true };

#[test]
fn everything_that_is_computed_is_shown() {
    for scenario in scenarios(85_899_345_920) {
        let (report, answer) = (Report::of(&scenario).unwrap(), run(&scenario).unwrap());
        assert_eq!(report.verdict, Verdict::Fits);
        let shown = answer.terms.iter().filter(|t| t.high > 0).count();
        assert_eq!(report.rows.len(), shown);
        assert!(report.phases.iter().any(|p| p.highest && p.peak_bytes == answer.peak_bytes));
        for lang in [Lang::En, Lang::Zh] {
            let mark = markdown(lang, &scenario, &report, Some("https://example.org/#1.abc"));
            let text = plain(lang, &report, WIDE);
            for row in &report.rows {
                let name = oom_ledger_core::text::text(lang, &format!("term.{}", row.id.id())).to_owned();
                let bytes = bytes_human(Bytes(row.bytes));
                assert!(mark.contains(&format!("| {name} | {bytes} |")), "{mark}");
                assert!(text.lines().any(|l| l.starts_with(&name) && l.contains(&bytes)), "{text}");
                assert!(text.contains(&row.working.to_string()), "{text}");
                assert!(row.working.to_string().ends_with(&row.working.result));
            }
            assert!(mark.contains("```json\n{") && mark.contains("llama-3.1-8b"), "{mark}");
            assert!(mark.contains("<https://example.org/#1.abc>"));
            for out in [&mark, &text] {
                assert!(
                    !out.contains("report.") && !out.contains("term.") && !out.contains("phase."),
                    "{out}"
                );
                assert!(!out.contains("limit.") && !out.contains("provenance."), "{out}");
            }
        }
    }
}

#[test]
fn the_scenario_in_the_markdown_is_the_scenario() {
    for scenario in scenarios(85_899_345_920) {
        let report = Report::of(&scenario).unwrap();
        let text = markdown(Lang::En, &scenario, &report, None);
        let json = text.split_once("```json\n").unwrap().1.split_once("\n```").unwrap().0;
        assert_eq!(Scenario::from_json_str(json), Ok(scenario));
    }
}

#[test]
fn the_sentence_gives_the_shortfall() {
    for scenario in scenarios(12 << 30) {
        let report = Report::of(&scenario).unwrap();
        assert_eq!(report.verdict, Verdict::DoesNotFit);
        let en = message(Lang::En, &report.sentence);
        let zh = message(Lang::Zh, &report.sentence);
        assert!(en.starts_with("does not fit: Llama 3.1 8B") && en.contains("12.00 GiB"), "{en}");
        assert!(zh.starts_with("放不下") && zh.contains("12.00 GiB"), "{zh}");
        assert!(!en.contains('{') && !zh.contains('{'), "{en} {zh}");
    }
}

/// vLLM 0.10.1 for Llama 3.1 8B on 80 GB: a pool of 51.4 GiB, context outside the budget.
fn vllm(serve: &serde_json::Value) -> Report {
    let mut job = json!({"engine": "vllm", "engine_version": "0.10.1", "max_model_len": 8192});
    job.as_object_mut().unwrap().extend(serve.as_object().unwrap().clone());
    let scenario = json!({
        "model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"}, "job": {"serve": job},
    });
    Report::of(&Scenario::from_json(scenario).unwrap()).unwrap()
}

#[test]
fn a_load_that_does_not_fit_is_not_blamed_on_the_budget() {
    // The peak lies above the budget by the context alone, and the engine starts: the load is what fails.
    for serve in [json!({"max_num_seqs": 4, "sequences": 5}), json!({"prompt_tokens": 9000})] {
        let report = vllm(&serve);
        assert_eq!(report.verdict, Verdict::DoesNotFit);
        assert_eq!(report.sentence.id, "report.does_not_fit");
        assert!(report.warnings.iter().any(|w| w.id.starts_with("vllm.")));
    }
}

#[test]
fn tight_names_the_pool_where_the_device_holds_even_the_high_end() {
    // 0.29 · 79.19 GiB = 22.96 GiB. Weights 14.99, sampler 2.55 (at most 4.75), growth 0.13 (at most 0.14) leave
    // 5.29 GiB for the pool, at worst 3.08 GiB; one request of 32,768 tokens needs 4.00 GiB.
    let report = vllm(&json!({
        "engine_version": "0.20.0", "gpu_memory_utilization": 0.29, "max_model_len": 32768,
    }));
    assert_eq!((report.verdict, report.sentence.id), (Verdict::Tight, "report.tight_pool"));
    for (lang, word) in [(Lang::En, "tight: "), (Lang::Zh, "勉强：")] {
        assert!(message(lang, &report.sentence).starts_with(word));
    }
}

#[test]
fn plain_text_keeps_to_the_width_outside_of_tables() {
    for scenario in scenarios(85_899_345_920) {
        let report = Report::of(&scenario).unwrap();
        let text = plain(Lang::En, &report, Layout { width: 60, workings: false });
        let sentence: Vec<_> = text.lines().take_while(|l| !l.is_empty()).collect();
        assert!(sentence.len() > 1 && sentence.iter().all(|l| l.chars().count() <= 60), "{text}");
    }
}

#[test]
fn markup_in_what_a_person_typed_stays_text() {
    let mut scenario = scenarios(85_899_345_920).pop().unwrap();
    scenario.model.preset = None;
    scenario.model.config = Some(json!({
        "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2,
        "num_attention_heads": 8, "vocab_size": 32000, "_name_or_path": "a ``` | <b>b</b> ```"
    }));
    let report = Report::of(&scenario).unwrap();
    let text = markdown(Lang::En, &scenario, &report, None);
    let json = text.split_once("````json\n").unwrap().1.split_once("\n````").unwrap().0;
    assert_eq!(Scenario::from_json_str(json), Ok(scenario));
}
