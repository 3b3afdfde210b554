//! What speed must not change: limits and peaks of jobs of every kind, as they were before the searches were made
//! cheap. A figure here moves only with a rule of the accounting, and then CHANGELOG says so.

use crate::scenario_of;
use oom_ledger_core::engines::engine;
use oom_ledger_core::memory::{Ledger, Term, TermId, Working};
use oom_ledger_core::plan::estimate;
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
