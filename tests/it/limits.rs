//! What speed must not change: limits and peaks of jobs of every kind, as they were before the searches were made
//! cheap. A figure here moves only with a rule of the accounting, and then CHANGELOG says so.

use crate::scenario_of;
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
