//! `--import`.

use super::{err, folder, llama, out, result, run};
use serde_json::Value;

const TRAINER: &str = r#"{"output_dir": "x", "per_device_train_batch_size": 2, "bf16": true, "dtype": "bfloat16",
    "optim": "adamw_torch_fused", "not_an_option": 1}"#;

fn file(name: &str, text: &str) -> String {
    let path = folder(name).join("settings");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const TRAIN: &[&str] = &["estimate", "--model", "llama-3.2-1b", "--gpu", "80GiB", "--import"];

#[test]
fn settings_become_the_job_and_flags_go_before_them() {
    let path = file("import-json", TRAINER);
    let imported = result(&run(&[TRAIN, &[&path, "--format", "json"]].concat()));
    let set = ["micro_batch=2", "precision=bf16", "optimizer=adamw", "optimizer_impl=fused"];
    let flags: Vec<String> = set.iter().map(|s| format!("--set=job.train.{s}")).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let by_hand = result(&run(&[&TRAIN[..5], &flags, &["--format", "json"]].concat()));
    assert_eq!(imported["peak_bytes"], by_hand["peak_bytes"]);
    assert_eq!(imported["imported"]["files"][0]["unknown"][0]["key"], "not_an_option");
    assert_eq!(by_hand["imported"], Value::Null);
    let more =
        result(&run(&[TRAIN, &[&path, "--set", "job.train.micro_batch=4", "--format", "json"]].concat()));
    assert!(more["peak_bytes"].as_u64() > imported["peak_bytes"].as_u64());
}

#[test]
fn text_tells_on_standard_error() {
    let path = file("import-text", TRAINER);
    let answer = run(&[TRAIN, &[&path]].concat());
    assert_eq!(answer.status.code(), Some(0), "{}", err(&answer));
    assert!(err(&answer).contains("not_an_option (line 2)"), "{}", err(&answer));
    assert!(!out(&answer).contains("not_an_option"));
}

#[test]
fn a_file_of_no_kind_is_refused_by_name() {
    let path = file("import-other", "x: 1");
    let answer = llama(&["--import", &path]);
    assert_eq!(answer.status.code(), Some(2));
    assert!(err(&answer).contains(&path) && err(&answer).contains("deepspeed"), "{}", err(&answer));
}
