//! What speed must not change: limits and peaks of jobs of every kind, as they were before the searches were made
//! cheap. A figure here moves only with a rule of the accounting, and then CHANGELOG says so.

use crate::scenario_of;
use oom_ledger_core::engines::engine;
use oom_ledger_core::memory::{Ledger, Term, TermId, Working};
use oom_ledger_core::plan::estimate;
use oom_ledger_core::share::{Scenario, run};
use serde_json::{Value, json};

/// One Scenario a line: both engines, every kind of attention, whatever stops a job, with and without a length.
const JOBS: &str = include_str!("../fixtures/limits/jobs.jsonl");

#[test]
fn limits_and_peaks_are_what_they_were() {
    let answer = |line: &str| {
        let answer = match scenario_of(line).resolve().and_then(|r| estimate(&r.inputs())) {
            Ok(e) => {
                let peak = [e.peak_low, e.peak_bytes, e.peak_high];
                json!({"limits": e.limits, "peak": peak, "verdict": e.verdict})
            }
            Err(problem) => json!({"problem": problem.message.id}),
        };
        json!({"job": line, "answer": answer})
    };
    let answers: Vec<Value> = JOBS.lines().map(answer).collect();
    insta::assert_json_snapshot!(answers);
}

/// A ledger without what `Engine::figures` may leave out.
fn bare(ledger: Ledger) -> Ledger {
    let term = |t: Term| Term { working: Working::new("", t.working.result), ..t };
    Ledger { terms: ledger.terms.into_iter().map(term).collect(), warnings: Vec::new(), ..ledger }
}

#[test]
fn figures_are_those_of_the_ledger() {
    for line in JOBS.lines() {
        let resolved = scenario_of(line).resolve().unwrap();
        let inputs = resolved.inputs();
        let engine = engine(&inputs.serve.engine).unwrap();
        let (whole, figures) = (engine.ledger(&inputs).unwrap(), engine.figures(&inputs).unwrap());
        let lines = |ledger: &Ledger| ledger.term(TermId::Weights).map(|t| t.working.parts.len());
        assert!(lines(&whole) > Some(0) && lines(&figures) == Some(0), "{line}: what the figures save");
        assert!(whole.terms.iter().chain(&figures.terms).all(|t| t.working.result == t.bytes), "{line}");
        assert_eq!(bare(whole), bare(figures), "{line}");
    }
}

/// Shares and steps of the scheduler: the value fits, its neighbour does not.
#[test]
fn limits_of_options_are_exact() {
    use oom_ledger_core::memory::Verdict;
    use oom_ledger_core::plan::option_limits;
    for document in [
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
               "job": {"serve": {"max_model_len": 16_384}}}),
        json!({"model": {"preset": "qwen3-next-80b-a3b"}, "device": {"preset": "h200-141gb", "count": 2},
               "parallel": {"tensor": 2}, "job": {"serve": {"max_model_len": 65_536}}}),
    ] {
        let resolved = Scenario::from_json(document.clone()).unwrap().resolve().unwrap();
        let found = option_limits(engine("vllm").unwrap(), &resolved.inputs());
        let fits = |field: &str, value: serde_json::Value| {
            let mut changed = document.clone();
            changed["job"]["serve"][field] = value;
            run(&Scenario::from_json(changed).unwrap()).unwrap().verdict != Verdict::DoesNotFit
        };
        let share = found.share.unwrap();
        assert_eq!(share.field, "gpu_memory_utilization");
        for (inside, outside) in [(share.low, share.low - 0.001), (share.high, share.high + 0.001)] {
            assert!(fits(share.field, json!(inside)), "{share:?} {document}");
            assert!(outside > 1.0 || !fits(share.field, json!(outside)), "{share:?} {document}");
        }
        let batched = found.max_num_batched_tokens.unwrap();
        assert!(fits("max_num_batched_tokens", json!(batched)));
        assert!(!fits("max_num_batched_tokens", json!(batched + 1)), "{batched}");
    }
}

/// Along the frontier the most sequences fit, one more does not, and the term named is one of the ledger's.
#[test]
fn the_frontier_names_what_breaks_first() {
    use oom_ledger_core::memory::{TermId, Verdict};
    use oom_ledger_core::plan::frontier;
    for (engine, stop) in [("vllm", TermId::KvCache), ("transformers", TermId::KvCache)] {
        let document = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
            "job": {"serve": {"engine": engine, "new_tokens": 64}}});
        let resolved = Scenario::from_json(document.clone()).unwrap().resolve().unwrap();
        let rows = frontier(&resolved.inputs(), 8).unwrap();
        assert_eq!(rows.len(), 8);
        assert!(rows.windows(2).all(|w| w[0].tokens < w[1].tokens && w[0].sequences >= w[1].sequences));
        assert!(rows.iter().any(|r| r.stopped_by == Some(stop)), "{rows:?}");
        let middle = rows[5];
        let fits = |n: u64| {
            let mut changed = document.clone();
            changed["job"]["serve"]["sequences"] = json!(n);
            changed["job"]["serve"]["prompt_tokens"] = json!(middle.tokens - 64);
            if engine == "vllm" {
                changed["job"]["serve"]["max_model_len"] = json!(middle.tokens);
            }
            run(&Scenario::from_json(changed).unwrap()).unwrap().verdict != Verdict::DoesNotFit
        };
        assert!(fits(middle.sequences) && !fits(middle.sequences + 1), "{middle:?}");
    }
}
