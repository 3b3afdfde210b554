//! `oom-ledger read`.

use super::{err, out, run, run_with};
use serde_json::Value;
use std::fmt::Write;

/// A log of one card: idle, then a load, then a level.
fn log() -> String {
    let mut text = String::from("timestamp, index, memory.used [MiB], memory.total [MiB]\n");
    for second in 0..60 {
        let used = if second < 6 { 4 } else { 9000 };
        let _ = writeln!(text, "2024/01/02 12:34:{second:02}.000, 0, {used} MiB, 24576 MiB");
    }
    text
}

#[test]
fn a_log_from_standard_input_is_judged() {
    let output = run_with(&["read", "-", "--format", "json"], log().as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let value: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(value["format"], "nvidia-smi-query-csv");
    assert_eq!(value["series"][0]["shape"], "ramp_plateau");
    assert_eq!(value["series"][0]["samples"], 60);
    assert_eq!(value["series"][0]["total_mib"], 24576.0);
    assert!(value["evidence"].as_object().unwrap().is_empty());
    let text = out(&run_with(&["read", "-"], log().as_bytes()));
    assert!(text.contains("ramp_plateau") && text.contains("9000 MiB"), "{text}");
    let zh = out(&run_with(&["read", "-", "--lang", "zh"], log().as_bytes()));
    assert!(zh.contains("加载"), "{zh}");
}

#[test]
fn what_is_no_log_says_which_command_makes_one() {
    let output = run_with(&["read", "-"], b"dear diary");
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("nvidia-smi --query-gpu="), "{}", out(&output));
    let missing = run(&["read", "no-such-file.csv"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("no-such-file.csv"));
}
