//! The figures that other software printed or measured, against their tolerances.

#[path = "../accuracy/cases.rs"]
mod cases;

use cases::{Outcome, Row, evaluate, summarise};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

fn shipped(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/cases").join(name);
    evaluate(&read_to_string(path).unwrap(), None).unwrap()
}

fn listing(rows: &[&Row]) -> String {
    let line = |row: &&Row| {
        let said = match &row.outcome {
            Outcome::Figure { got, error } => format!("got {got}, error {:.3} %", error * 100.0),
            Outcome::NotModelled(why) | Outcome::Refused(why) => why.clone(),
        };
        format!("{} {} {}: expected {}, {said}\n", row.group, row.id, row.path, row.expected)
    };
    rows.iter().map(line).collect()
}

/// Figures that depend on a setting the case does not state: no rule can reach them from what is given.
const UNSTATED: &[(&str, &str, &str)] = &[
    (
        "vllm-rec-kimi-k2-think-tp8-dcp8",
        "kv.token_line",
        "the log ran decode context parallel 8; with `context: 8` the figure is reproduced (vllm.rs)",
    ),
    (
        "vllm-ul-llama32-3b-a100",
        "terms.weights.bytes",
        "most likely LoRA adapter slots, since the notebook trains a rank 64 adapter: 3.7 % above the model",
    ),
];

/// Every figure of a vLLM log within the tolerance that its rounding leaves; llama.cpp says that it is not
/// modelled, and is counted here so that no row is lost.
#[test]
fn figures_of_serving_logs() {
    let rows = shipped("serving.jsonl");
    let outside = rows.iter().filter(|row| !row.within() && !matches!(row.outcome, Outcome::NotModelled(_)));
    let (unstated, missed): (Vec<_>, Vec<_>) =
        outside.partition(|row| UNSTATED.iter().any(|(id, path, _)| row.id == *id && row.path == *path));
    assert_eq!(unstated.len(), UNSTATED.len(), "{}", listing(&unstated));
    assert!(missed.is_empty(), "{}", listing(&missed));
    let silent: Vec<_> = rows.iter().filter(|row| matches!(row.outcome, Outcome::NotModelled(_))).collect();
    assert_eq!(silent.len(), 4, "{}", listing(&silent));
    assert!(silent.iter().all(|row| row.group == "llama_cpp"), "{}", listing(&silent));
}

/// Peaks of prefill and decode against the real model code: median at most 1 %, worst at most 5 %.
#[test]
fn peaks_of_prefill_and_decode() {
    let rows = shipped("prefill.jsonl");
    assert_eq!(rows.len(), 338);
    let silent: Vec<_> = rows.iter().filter(|r| !matches!(r.outcome, Outcome::Figure { .. })).collect();
    assert!(silent.is_empty(), "{}", listing(&silent));
    for summary in summarise(&rows) {
        let (median, worst) = (summary.median().unwrap(), summary.quantile(1.0).unwrap());
        assert!(
            median <= 0.01 && worst <= 0.05,
            "{} {}: median {median}, worst {worst}",
            summary.group,
            summary.path
        );
    }
}

#[test]
fn cases_are_not_lost_and_errors_are_counted() {
    let case = |scenario: &str, expect: &str| {
        format!("{{\"id\": \"a\", \"scenario\": {scenario}, \"expect\": [{expect}]}}\n")
    };
    let text = case("{\"model\": {}, \"device\": {}}", "{\"path\": \"kv.blocks\", \"value\": 1}")
        + &case(
            "{\"model\": {\"config_file\": \"no-such.json\"}, \"device\": {\"total_bytes\": 80000000000}}",
            "{\"path\": \"kv.blocks\", \"value\": 1}, {\"path\": \"kv.tokens\", \"value\": 1}",
        )
        + "{\"note\": \"no case\"}\n";
    let rows = evaluate(&text, Some(&PathBuf::from("/nowhere"))).unwrap();
    assert_eq!(rows.len(), 3);
    let summaries = summarise(&rows);
    assert_eq!(
        summaries.iter().map(|s| (s.all, s.refused, s.within)).collect::<Vec<_>>(),
        [(2, 2, 0), (1, 1, 0)]
    );
    assert!(summaries.iter().all(|s| s.mean().is_none() && s.median().is_none()));
    assert!(evaluate("{", None).is_err());
}
