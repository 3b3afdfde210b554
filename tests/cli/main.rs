//! The `oom-ledger` command, run as a person runs it.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail loudly, like the tests")]

mod checkpoint;
mod imports;
mod read;

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run_with(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oom-ledger"))
        .args(args)
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end without reading everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn run(args: &[&str]) -> Output {
    run_with(args, b"")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const LLAMA: &[&str] = &["estimate", "--model", "llama-3.1-8b", "--gpu", "80GiB", "--engine", "transformers"];

fn llama(more: &[&str]) -> Output {
    run(&[LLAMA, more].concat())
}

fn result(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A fresh folder under the target directory.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_result_has_the_documented_shape() {
    let result = result(&llama(&["--format", "json"]));
    for path in ["peak_bytes", "device.total_bytes", "device.budget_bytes", "parameters", "verdict", "limits"]
    {
        assert!(oom_ledger_core::share::lookup(&result, path).is_some(), "{path}");
    }
    assert_eq!(result["schema"], 1);
    assert_eq!(result["parameters"], 8_030_261_248_u64);
    assert_eq!(result["verdict"], "fits");
    for term in result["terms"].as_array().unwrap() {
        for name in ["id", "bytes", "low", "high", "residency", "phases", "provenance", "working"] {
            assert!(term.get(name).is_some(), "{name} in {term}");
        }
        assert!(term["low"].as_u64() <= term["bytes"].as_u64());
        assert!(term["bytes"].as_u64() <= term["high"].as_u64());
    }
    for phase in result["phases"].as_array().unwrap() {
        assert!(phase["peak_bytes"].as_u64() >= phase["allocated_bytes"].as_u64(), "{phase}");
    }
    assert!(
        result["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|w| w["id"].is_string() && w["message"].is_string())
    );
}

#[test]
fn every_flag_sets_its_field() {
    // The permalink holds the Scenario: read it back to see what the flags did.
    let flags: &[(&str, &str, &str, Value)] = &[
        ("--gpu-count", "8", "device.count", json!(8)),
        ("--engine", "vllm", "job.serve.engine", json!("vllm")),
        ("--engine-version", "0.10.1", "job.serve.engine_version", json!("0.10.1")),
        ("--dtype", "fp16", "weights.dtype", json!("fp16")),
        ("--quantization", "gguf:Q4_K_M", "weights.quantization", json!("gguf:Q4_K_M")),
        ("--kv-cache-dtype", "fp8", "job.serve.kv_cache_dtype", json!("fp8")),
        ("--block-size", "32", "job.serve.block_size", json!(32)),
        ("--tensor-parallel-size", "2", "parallel.tensor", json!(2)),
        ("--pipeline-parallel-size", "2", "parallel.pipeline", json!(2)),
        ("--data-parallel-size", "2", "parallel.data", json!(2)),
        ("--max-model-len", "8,192", "job.serve.max_model_len", json!(8192)),
        ("--gpu-memory-utilization", "0.85", "job.serve.gpu_memory_utilization", json!(0.85)),
        ("--max-num-seqs", "64", "job.serve.max_num_seqs", json!(64)),
        ("--max-num-batched-tokens", "4096", "job.serve.max_num_batched_tokens", json!(4096)),
        ("--attention", "eager", "job.serve.attention", json!("eager")),
        ("--logits", "all", "job.serve.logits", json!("all")),
        ("--cache", "static", "job.serve.cache", json!("static")),
        ("--sequences", "3", "job.serve.sequences", json!(3)),
        ("--prompt-tokens", "77", "job.serve.prompt_tokens", json!(77)),
        ("--new-tokens", "0", "job.serve.new_tokens", json!(0)),
        ("--set", "job.serve.ubatch=512", "job.serve.ubatch", json!(512)),
        (
            "--set",
            "device.other_processes_bytes=1.5GiB",
            "device.other_processes_bytes",
            json!(1_610_612_736),
        ),
        ("--set", "job.serve.prefix_caching=false", "job.serve.prefix_caching", json!(false)),
        (
            "--set",
            "model.overrides={\"num_hidden_layers\": 4}",
            "model.overrides.num_hidden_layers",
            json!(4),
        ),
        ("--set", "model.overrides.num_hidden_layers=4", "model.overrides.num_hidden_layers", json!(4)),
    ];
    for (flag, text, path, value) in flags {
        let args = ["estimate", "--model", "llama-3.1-8b", "--gpu", "80GiB", "--permalink", flag, text];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{flag}: {}", err(&output));
        let scenario = oom_ledger_core::share::Scenario::from_permalink(&out(&output)).unwrap();
        let doc = serde_json::to_value(scenario).unwrap();
        assert_eq!(doc.pointer(&format!("/{}", path.replace('.', "/"))), Some(value), "{flag}");
        if flag.ends_with("parallel-size") {
            assert_eq!(doc["device"]["count"], 2, "{flag}");
        }
    }
    for (flag, path) in [("--enforce-eager", "enforce_eager"), ("--padding-mask", "padding_mask")] {
        let output = run(&["estimate", "--model", "llama-3.1-8b", "--gpu", "80GiB", "--permalink", flag]);
        let scenario = oom_ledger_core::share::Scenario::from_permalink(&out(&output)).unwrap();
        assert_eq!(serde_json::to_value(scenario).unwrap()["job"]["serve"][path], true);
    }
}

#[test]
fn a_permalink_gives_the_answer_back() {
    let link = out(&llama(&["--permalink", "--prompt-tokens", "4000"]));
    let address = format!("https://example.org/ledger/#{}", link.trim());
    let again = result(&run(&["estimate", "--link", &address, "--format", "jsonl"]));
    assert_eq!(again, result(&llama(&["--format", "jsonl", "--prompt-tokens", "4000"])));
    let cut = run(&["estimate", "--link", &address[..address.len() - 9]]);
    assert_eq!(cut.status.code(), Some(2));
    assert!(err(&cut).contains("incomplete"), "{}", err(&cut));
}

#[test]
fn scenarios_come_from_files_and_from_standard_input() {
    let doc = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"total_bytes": 85_899_345_920_u64},
                     "job": {"serve": {"engine": "transformers"}}});
    let path = folder("files").join("scenario.json");
    std::fs::write(&path, format!("\u{feff}{doc}")).unwrap();
    let path = path.to_str().unwrap();
    let file = result(&run(&["estimate", path, "--format", "json"]));
    let input = run_with(&["estimate", "-", "--format", "json"], doc.to_string().as_bytes());
    assert_eq!(file, result(&input));
    assert_eq!(file, result(&llama(&["--format", "json"])));
    let more = result(&run(&["estimate", path, "--format", "json", "--sequences", "8"]));
    assert!(more["peak_bytes"].as_u64() > file["peak_bytes"].as_u64());
}

#[test]
fn a_config_in_a_file_or_folder_is_a_model() {
    let folder = folder("config");
    let config = json!({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "vocab_size": 32000,
        "num_hidden_layers": 2, "num_attention_heads": 8, "architectures": ["LlamaForCausalLM"]});
    let path = folder.join("config.json");
    std::fs::write(&path, config.to_string()).unwrap();
    for model in [path.to_str().unwrap(), folder.to_str().unwrap()] {
        let args =
            ["estimate", "--model", model, "--gpu", "8 GiB", "--engine", "transformers", "--format", "json"];
        assert_eq!(result(&run(&args))["verdict"], "fits");
    }
    let pasted = run(&["estimate", path.to_str().unwrap()]);
    assert_eq!(pasted.status.code(), Some(2));
    assert!(err(&pasted).contains("--model config.json"), "{}", err(&pasted));
    let named = ["estimate", "--model", "meta-llama/llama-3.1-8b", "--gpu", "80GiB", "--permalink"];
    assert_eq!(run(&named).status.code(), Some(0));
}

#[test]
fn check_answers_by_exit_code() {
    assert_eq!(llama(&["--check"]).status.code(), Some(0));
    let small = ["--gpu", "12GiB", "--engine", "transformers", "--model", "llama-3.1-8b"];
    assert_eq!(run(&[&["estimate", "--check"], &small[..]].concat()).status.code(), Some(1));
    assert_eq!(run(&[&["estimate"], &small[..]].concat()).status.code(), Some(0));
}

#[test]
fn bad_input_is_explained_and_ends_with_2() {
    let path = folder("bad").join("broken.json");
    std::fs::write(&path, "{\"model\": {\n \"preset\": ").unwrap();
    let broken = path.to_str().unwrap().to_owned();
    let base = ["estimate", "--model", "llama-3.1-8b", "--gpu", "80GiB"];
    let cases: &[(&[&str], &str)] = &[
        (&["estimate"], "--model"),
        (&["estimate", &broken], "line 2"),
        (&["estimate", "/no/such/file.json"], "cannot read"),
        (&["estimate", "--model", "llama-3.1-8b"], "no device"),
        (&["estimate", "--gpu", "80GiB"], "no model"),
        (&["estimate", "--model", "no/such/config.json", "--gpu", "80GiB"], "no file"),
        (&["estimate", "--model", "llama-31-8b", "--gpu", "80GiB"], "llama-3.1-8b"),
        (&[&base[..], &["--max-model-len", "8k"]].concat(), "job.serve.max_model_len"),
        (&[&base[..], &["--max-model-len", "0"]].concat(), "job.serve.max_model_len"),
        (&[&base[..], &["--max-model-len=-1"]].concat(), "1 … 4,294,967,296"),
        (&[&base[..], &["--set", "schema=x"]].concat(), "accepted: 1"),
        (&[&base[..], &["--gpu-memory-utilization", "90"]].concat(), "0 < x ≤ 1"),
        (&[&base[..], &["--gpu-memory-utilization", "NaN"]].concat(), "0 < x ≤ 1"),
        (&[&base[..], &["--quantization", "int3"]].concat(), "awq-int4"),
        (&[&base[..], &["--set", "job.serve.max_num_seq=3"]].concat(), "max_num_seqs"),
        (&[&base[..], &["--set", "sequences"]].concat(), "PATH=VALUE"),
        (&[&base[..], &["--set", "model=3"]].concat(), "model"),
        (&[&base[..], &["--tensor-parallel-size", "2", "--gpu-count", "1"]].concat(), "device.count"),
        (&[&base[..], &["--engine", "sglong"]].concat(), "sglang"),
        (&["estimate", "--link", "2.abc"], "newer"),
        (&["man", "nothing"], "estimate"),
    ];
    for (args, expected) in cases {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(expected), "{args:?}: {}", err(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let zh = run(&[&base[..], &["--lang", "zh", "--max-num-seqs", "0"]].concat());
    assert!(err(&zh).contains("不接受"), "{}", err(&zh));
}

#[test]
fn a_batch_answers_every_line_in_order() {
    let good = |tokens: u64| {
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"total_bytes": 85_899_345_920_u64},
               "job": {"serve": {"engine": "transformers", "prompt_tokens": tokens}}})
        .to_string()
    };
    let input =
        [good(1000), "{".to_owned(), String::new(), good(2000), "{\"modle\": 1}".to_owned(), good(3000)];
    let output = run_with(&["estimate", "--batch", "-"], input.join("\n").as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let lines: Vec<Value> = out(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    let peak = |i: usize| lines[i]["peak_bytes"].as_u64().unwrap();
    assert!(peak(0) < peak(2) && peak(2) < peak(4));
    assert_eq!(lines[1]["error"]["line"], 2);
    assert!(lines[1]["error"]["message"].as_str().unwrap().contains("line 2, column 1"));
    assert_eq!(lines[3]["error"]["line"], 5);
    assert_eq!(lines[3]["error"]["field"], "modle");
    let checked = run_with(&["estimate", "--batch", "-", "--check"], input.join("\n").as_bytes());
    assert_eq!(checked.status.code(), Some(2));
    let small = ["estimate", "--batch", "-", "--check", "--gpu", "10GiB"];
    assert_eq!(run_with(&small, good(1000).as_bytes()).status.code(), Some(1));
    // Bytes that are no text are one bad line.
    let output = run_with(&["estimate", "--batch", "-"], b"\xff\xfe\x00\n{}\n");
    assert_eq!(out(&output).lines().count(), 2);
}

#[test]
fn a_batch_answers_before_the_next_line_comes() {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(env!("CARGO_BIN_EXE_oom-ledger"))
        .args(["estimate", "--batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        input.write_all(b"{}\n").unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert!(line.contains("error"), "{line}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn nothing_is_written_over() {
    let path = folder("output").join("answer.md");
    let path = path.to_str().unwrap();
    assert_eq!(llama(&["--format", "markdown", "--output", path]).status.code(), Some(0));
    let first = std::fs::read_to_string(path).unwrap();
    assert!(first.starts_with("## OOM Ledger"), "{first}");
    let second = llama(&["--format", "json", "--output", path]);
    assert_eq!(second.status.code(), Some(2));
    assert!(err(&second).contains("exists"));
    assert_eq!(std::fs::read_to_string(path).unwrap(), first);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    for args in [&["list", "models"][..], &["man", "estimate"], LLAMA] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_oom-ledger"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(output.stderr.is_empty(), "{}", err(&output));
    }
}

#[test]
fn a_batch_under_check_answers_for_every_line_though_nobody_reads() {
    let path = folder("unread").join("batch.jsonl");
    let line =
        |gpu| format!("{{\"model\":{{\"preset\":\"llama-3.1-8b\"}},\"device\":{{\"preset\":\"{gpu}\"}}}}\n");
    std::fs::write(&path, line("h100-80gb") + &line("t4")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_oom-ledger"))
        .args(["estimate", "--check", "--batch", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let output = run(&["estimate", "--gpu", "80GiB", "--set", "model.preset=\u{1b}[31mred"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("\u{fffd}[31mred") && !err(&output).contains('\u{1b}'), "{}", err(&output));
}

#[test]
fn lists_completions_and_manual_page() {
    for (what, expected) in [
        ("models", "llama-3.1-8b\t8,030,261,248"),
        ("gpus", "h100-80gb\t"),
        ("engines", "sglang\tSGLang"),
        ("quantizations", "gguf:Q4_K_M"),
        ("fields", "job.serve.max_model_len\t1 … 4,294,967,296"),
    ] {
        let output = out(&run(&["list", what]));
        assert!(output.contains(expected), "{output}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(out(&run(&["completions", shell])).contains("max-num-seqs"), "{shell}");
    }
    assert!(out(&run(&["man"])).starts_with(".ie"));
    assert!(out(&run(&["man", "estimate"])).contains("kv\\-cache\\-dtype"));
    for command in ["read", "triage", "diagnose"] {
        assert_eq!(run(&[command]).status.code(), Some(2), "{command}");
    }
}

#[test]
fn the_text_is_in_the_language_asked_for() {
    assert!(out(&llama(&[])).starts_with("fits: Llama 3.1 8B"));
    assert!(out(&llama(&["--lang", "zh", "--workings"])).starts_with("放得下"));
}

#[test]
fn parameters_are_told_where_only_the_engine_is_not_modelled() {
    let asked = json!({"model": {"preset": "flan-t5-xl"}, "device": {"preset": "h100-80gb"},
                       "job": {"serve": {"engine": "sglang"}}})
    .to_string();
    for args in [&["estimate", "--batch", "-"][..], &["estimate", "-", "--format", "json"]] {
        let output = run_with(args, asked.as_bytes());
        let answer: Value = serde_json::from_str(out(&output).trim()).unwrap();
        assert_eq!(answer["parameters"], 2_783_959_040_u64, "{args:?}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("SGLang"), "{answer}");
    }
}

/// `--suggest` names every lever with bytes and cost, in each form of the answer.
#[test]
fn suggestions_in_every_format() {
    let asked = |rest: &[&str]| {
        let mut args = vec!["estimate", "--model", "llama-3.1-8b", "--gpu", "rtx-3090", "--suggest"];
        args.extend_from_slice(rest);
        run(&args)
    };
    let text = out(&asked(&[]));
    assert!(text.contains("* --max-model-len →") && text.contains("still missing"), "{text}");
    let json: Value = serde_json::from_str(&out(&asked(&["--format", "json"]))).unwrap();
    let advice = &json["suggestions"];
    assert!(advice["missing_bytes"].as_i64().unwrap() > 0);
    let first = &advice["levers"][0];
    assert_eq!(first["id"], "max_model_len");
    assert_eq!(first["direction"], "lower");
    // What it sets can be given back.
    let length = first["set"]["job.serve.max_model_len"].to_string();
    let fits = asked(&["--max-model-len", &length, "--check"]);
    assert!(fits.status.success(), "{}", out(&fits));
    assert!(out(&asked(&["--format", "markdown"])).contains("| `--max-model-len → "));
    let plain: Value = serde_json::from_str(&out(&run(&[
        "estimate",
        "--model",
        "llama-3.1-8b",
        "--gpu",
        "l4",
        "--format",
        "json",
    ])))
    .unwrap();
    assert!(plain.get("suggestions").is_none());
}

/// A training step has levers of its own; what frees nothing is in the list, with the reason.
#[test]
fn suggestions_of_a_training_step() {
    let doc = r#"{"model": {"preset": "qwen2.5-7b"}, "device": {"preset": "a100-40gb"},
                  "job": {"train": {"seq_len": 256}}}"#;
    let path = std::env::temp_dir().join(format!("oom-ledger-train-levers-{}.json", std::process::id()));
    std::fs::write(&path, doc).unwrap();
    let asked = |rest: &[&str]| {
        let mut args = vec!["estimate", path.to_str().unwrap(), "--suggest"];
        args.extend_from_slice(rest);
        out(&run(&args))
    };
    let json: Value = serde_json::from_str(&asked(&["--format", "json"])).unwrap();
    let levers = json["suggestions"]["levers"].as_array().unwrap();
    let zero = levers.iter().find(|l| l["id"] == "checkpointing").unwrap();
    assert_eq!(zero["no_effect"], "optimizer_step");
    assert!(zero["reason"].is_string());
    assert!(levers[0].get("no_effect").is_none() && levers[0].get("reason").is_none());
    assert!(asked(&[]).contains("- job.train.checkpointing none → "));
    assert!(asked(&["--format", "markdown", "--lang", "zh"]).contains("无效：峰值在优化器步阶段"));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn read_tells_what_a_pasted_message_says() {
    let path = std::env::temp_dir().join(format!("oom-ledger-read-{}.txt", std::process::id()));
    std::fs::write(
        &path,
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.11 GiB",
    )
    .unwrap();
    let run = |format: &str| {
        std::process::Command::new(env!("CARGO_BIN_EXE_oom-ledger"))
            .args(["read", path.to_str().unwrap(), "--format", format])
            .output()
            .unwrap()
    };
    let json = run("json");
    assert_eq!(json.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["evidence"]["error_kind"], "torch_oom");
    assert_eq!(document["evidence"]["tried_to_allocate"], 2u64 << 30);
    assert_eq!(document["evidence"]["rank"], 1);
    let text = String::from_utf8(run("text").stdout).unwrap();
    assert!(text.contains("tried_to_allocate = 2.00 GiB  [1]"), "{text}");
    // An engine's log has sizes too: it is no trace.
    std::fs::write(&path, "INFO 08-05 00:00:00 [gpu_worker.py:276] Available KV cache memory: 5.01 GiB\n")
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&run("json").stdout).unwrap();
    assert_eq!(document["format"], "vllm-log");
    let _ = std::fs::remove_file(&path);
}
