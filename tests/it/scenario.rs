//! The Scenario document: what is read, what is refused, and in which words.

use oom_ledger_core::share::{Job, Kind, SCENARIO, Scenario, field, paths, run};
use oom_ledger_core::text::{Lang, message};
use oom_ledger_core::units::Problem;
use serde_json::{Value, json};

fn base() -> Value {
    json!({"schema": 1, "model": {"preset": "llama-3.1-8b"},
           "device": {"total_bytes": 85_899_345_920_u64, "count": 1}, "job": {"serve": {}}})
}

/// `base` with the value at a dotted path replaced.
fn with(path: &str, value: Value) -> Value {
    let mut doc = base();
    let mut at = &mut doc;
    for name in path.split('.') {
        at = at.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({}));
    }
    *at = value;
    doc
}

fn refusal(doc: &Value) -> Problem {
    match Scenario::from_json_str(&doc.to_string()).and_then(|s| s.resolve().map(|_| ())) {
        Err(problem) => problem,
        Ok(()) => panic!("accepted: {doc}"),
    }
}

/// The sentence must be filled in, in both languages.
fn sentence(problem: &Problem) -> String {
    let zh = message(Lang::Zh, &problem.message);
    let en = message(Lang::En, &problem.message);
    assert_ne!(en, problem.message.id, "no text");
    assert!(zh.chars().any(|c| c as u32 > 0x3000), "not Chinese: {zh}");
    for (name, _) in &problem.message.args {
        assert!(!en.contains(&format!("{{{name}}}")), "{en}");
    }
    en
}

/// A value of that kind which is not a default.
fn sample(path: &str, kind: Kind) -> Value {
    match kind {
        Kind::Whole(low, high) => json!((low + 1).min(high)),
        Kind::Share | Kind::Ratio => json!(0.5),
        Kind::Flag => json!(true),
        Kind::Choice(all) => json!(all.last().unwrap()),
        Kind::Text if path == "weights.quantization" => json!("fp8"),
        Kind::Text => json!("text"),
        Kind::Names => json!(["q_proj", "v_proj"]),
        Kind::File => json!({"format": "safetensors", "tensors": ["model.layers.*.w BF16 8 0-3"]}),
        Kind::Config | Kind::Object(_) => json!({"a": 1}),
    }
}

#[test]
fn the_table_of_fields_and_the_types_agree() {
    for path in paths() {
        let kind = field(&path).unwrap();
        let value = sample(&path, kind);
        let mut doc = with(&path, value.clone());
        if path.starts_with("job.train.") {
            doc["job"].as_object_mut().unwrap().remove("serve");
        }
        if path.starts_with("job.train.lora.") {
            let lora = doc["job"]["train"]["lora"].as_object_mut().unwrap();
            lora.entry("rank").or_insert_with(|| 8.into());
            lora.entry("targets").or_insert_with(|| "all-linear".into());
        }
        let scenario = Scenario::from_json_str(&doc.to_string()).unwrap_or_else(|p| panic!("{path}: {p:?}"));
        let back = serde_json::to_value(&scenario).unwrap();
        assert_eq!(back.pointer(&format!("/{}", path.replace('.', "/"))), Some(&value), "{path}");
    }
    // And the types have no field that the table lacks.
    let doc = serde_json::to_value(Scenario::from_json(base()).unwrap()).unwrap();
    let mut stack = vec![(String::new(), doc)];
    while let Some((path, value)) = stack.pop() {
        if let Value::Object(map) = value {
            for (name, inner) in map {
                let here = if path.is_empty() { name } else { format!("{path}.{name}") };
                assert!(field(&here).is_some(), "{here} is not in the table");
                stack.push((here, inner));
            }
        }
    }
    assert_eq!(SCENARIO.len(), 8);
}

#[test]
fn left_out_fields_take_their_defaults() {
    let short = r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"total_bytes": 85899345920}}"#;
    let long = with("parallel", json!({"tensor": 1, "pipeline": 1, "data": 1, "expert": 1, "context": 1}));
    let short = Scenario::from_json_str(short).unwrap();
    assert_eq!(short, Scenario::from_json(long).unwrap());
    let nulls = with("job.serve.sequences", Value::Null);
    assert_eq!(short, Scenario::from_json(nulls).unwrap());
    // A BOM and bare NaN (Python writes both) do not stop it.
    let text = r#"{"model": {"config": {"x": NaN}}, "device": {"preset": "t4"}}"#;
    assert!(Scenario::from_json_str(&format!("\u{feff}{text}")).is_ok());
}

#[test]
fn unknown_fields_are_named_with_the_nearest() {
    for (path, near) in [
        ("job.serve.max_model_length", "max_model_len"),
        ("job.serve.gpuMemoryUtilization", "gpu_memory_utilization"),
        ("modle", "model"),
        ("device.presets", "preset"),
        ("parallel.tensors", "tensor"),
        ("measured.weight_bytes", "weights_bytes"),
        ("max_num_seqs", "job.serve.max_num_seqs"),
        ("job.serve.dtype", "weights.dtype"),
    ] {
        let problem = refusal(&with(path, json!(1)));
        assert_eq!(problem.field, path);
        let text = sentence(&problem);
        assert!(text.contains(path) && text.contains(near), "{text}");
    }
    let nonsense = refusal(&with("device.colour", json!(1)));
    assert!(sentence(&nonsense).contains("total_bytes"));
}

#[test]
fn wrong_types_name_the_path() {
    for (path, value) in [
        ("job.serve.max_model_len", json!("8k")),
        ("job.serve.max_model_len", json!(8192.5)),
        ("job.serve.max_model_len", json!(-1)),
        ("job.serve.sequences", json!(1e30)),
        ("job.serve.enforce_eager", json!("yes")),
        ("job.serve.attention", json!("flashy")),
        ("job.serve.engine_version", json!(0.1)),
        ("job.serve", json!([])),
        ("job", json!("serve")),
        ("model", json!("llama-3.1-8b")),
        ("model.config", json!("config.json")),
        ("device.total_bytes", json!("24GiB")),
        ("weights.dtype", json!("bfloat16")),
        ("weights.quantization", json!("int3")),
        ("schema", json!("one")),
    ] {
        let problem = refusal(&with(path, value.clone()));
        assert_eq!(problem.field, path, "{value}");
        let text = sentence(&problem);
        assert!(text.contains(path) && text.contains("accepted"), "{text}");
    }
}

#[test]
fn absurd_values_are_refused_with_what_is_accepted() {
    for (path, value) in [
        ("job.serve.max_model_len", json!(0)),
        ("job.serve.max_model_len", json!(u64::MAX)),
        ("job.serve.gpu_memory_utilization", json!(0)),
        ("job.serve.gpu_memory_utilization", json!(1.5)),
        ("job.serve.gpu_memory_utilization", json!(-0.9)),
        ("job.serve.sequences", json!(0)),
        ("job.serve.prompt_tokens", json!(0)),
        ("job.serve.block_size", json!(0)),
        ("job.serve.max_num_seqs", json!(0)),
        ("job.serve.max_num_batched_tokens", json!(0)),
        ("job.serve.engine", json!("")),
        ("job.serve.engine", json!("vlm")),
        ("device.count", json!(0)),
        ("device.total_bytes", json!(0)),
        ("device.total_bytes", json!(24)),
        ("device.other_processes_bytes", json!(u64::MAX)),
        ("parallel.tensor", json!(0)),
        ("parallel.tensor", json!(u64::MAX)),
        ("measured.weights_bytes", json!(u64::MAX)),
        ("model.preset", json!("llama-9-8b")),
        ("device.preset", json!("h1000")),
    ] {
        let problem = refusal(&with(path, value.clone()));
        assert_eq!(problem.field, path, "{value}");
        sentence(&problem);
    }
    let mut scenario = Scenario::from_json(base()).unwrap();
    let Job::Serve(serve) = &mut scenario.job else { unreachable!("a serving job") };
    serve.gpu_memory_utilization = Some(f64::NAN);
    assert_eq!(scenario.resolve().unwrap_err().field, "job.serve.gpu_memory_utilization");
}

#[test]
fn parallelism_must_fit_the_devices() {
    for (path, value) in [
        ("parallel", json!({"tensor": 2})),
        ("parallel", json!({"pipeline": 2})),
        ("parallel", json!({"data": 2})),
        ("parallel", json!({"expert": 8})),
    ] {
        let problem = refusal(&with(path, value));
        assert_eq!(problem.field, "device.count");
        assert!(sentence(&problem).contains("needs"));
    }
    let mut fine = with("parallel", json!({"tensor": 2, "pipeline": 2, "expert": 4}));
    fine["device"]["count"] = json!(4);
    Scenario::from_json(fine).unwrap().resolve().unwrap();
}

#[test]
fn other_documents_are_recognised() {
    let id = |text: &str| Scenario::from_json_str(text).unwrap_err().message.id;
    assert_eq!(id(""), "scenario.empty");
    assert_eq!(id("  \n"), "scenario.empty");
    assert_eq!(id("[1]"), "scenario.not_an_object");
    assert_eq!(id(r#"{"model_type": "llama", "hidden_size": 4096}"#), "scenario.is_config");
    assert_eq!(id(r#"{"schema": 1, "terms": [], "verdict": "fits"}"#), "scenario.is_result");
    assert_eq!(id(r#"{"schema": 2, "model": {}, "device": {}, "worlds": 3}"#), "scenario.newer");
    assert_eq!(id(r#"{"model": {"preset": "a"}}"#), "scenario.missing");
    assert_eq!(id(r#"{"device": {"preset": "a"}}"#), "scenario.missing");
    let train = r#"{"model": {"preset": "a"}, "device": {"preset": "b"}, "job": {"train": {}, "serve": {}}}"#;
    assert_eq!(id(train), "scenario.two_jobs");
    for text in ["", "[1]", r#"{"model_type": "llama"}"#, r#"{"schema": 9, "model": {}}"#, train] {
        sentence(&Scenario::from_json_str(text).unwrap_err());
    }
}

#[test]
fn broken_json_says_where() {
    let problem = Scenario::from_json_str("{\"model\": {\n  \"preset\": \"a\",,\n}}").unwrap_err();
    assert!(sentence(&problem).contains("line 2, column 17"), "{}", sentence(&problem));
}

#[test]
fn models_need_exactly_one_source() {
    let mut doc = base();
    doc["model"] = json!({});
    assert_eq!(refusal(&doc).message.id, "scenario.no_model");
    doc["model"] = json!({"preset": "llama-3.1-8b", "config": {}});
    assert_eq!(refusal(&doc).message.id, "scenario.two_models");
    doc["model"] = json!({"preset": "llama-3.1-8b", "overrides": {"num_hidden_layers": 4}});
    let resolved = Scenario::from_json(doc).unwrap().resolve().unwrap();
    assert_eq!(resolved.model.layers.len(), 4);
    let mut doc = base();
    doc["device"] = json!({"count": 1});
    assert_eq!(refusal(&doc).message.id, "scenario.no_device");
}

#[test]
fn arguments_are_filled_in_once() {
    // What a person typed may look like a placeholder.
    let problem = refusal(&with("job.serve.engine", json!("{accepted}")));
    let text = message(Lang::En, &problem.message);
    assert!(text.contains("\"{accepted}\""), "{text}");
}

/// Accepted values, extremes among them: every engine answers or refuses, and never panics or wraps.
mod extremes {
    use super::{Scenario, json, run};
    use oom_ledger_core::engines::ENGINES;
    use oom_ledger_core::model::PRESETS;
    use oom_ledger_core::share::{Kind, field, paths};
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn no_accepted_value_breaks_an_engine(
            preset in any::<Index>(),
            engine in select(ENGINES.iter().map(|e| e.id()).collect::<Vec<_>>()),
            choices in prop::collection::vec((any::<Index>(), any::<Index>(), 0.0..1.0f64), 0..8),
        ) {
            let mut doc = json!({
                "schema": 1,
                "model": {"preset": preset.get(PRESETS).id},
                "device": {"total_bytes": 85_899_345_920_u64, "count": 64},
                "parallel": {}, "weights": {}, "measured": {},
                "job": {"serve": {"engine": engine}},
            });
            let paths: Vec<_> = paths()
                .into_iter()
                .filter(|p| p.contains('.') && !p.starts_with("job.train."))
                .collect();
            for (path, which, share) in choices {
                let path = path.get(&paths);
                let value = match field(path).unwrap() {
                    // Low, high, or a power in between.
                    Kind::Whole(low, high) => match which.index(3) {
                        0 => json!(low),
                        1 => json!(high),
                        _ => json!(((high as f64).powf(share) as u64).clamp(low, high)),
                    },
                    Kind::Share => json!(share.max(1e-9)),
                    Kind::Flag => json!(share > 0.5),
                    Kind::Choice(all) => json!(which.get(all)),
                    Kind::Text if path == "weights.quantization" => {
                        json!(which.get(&["fp8", "int8", "awq-int4", "gptq-int4", "bnb-nf4", "bnb-int8", "mxfp4",
                                          "nvfp4", "gguf:Q4_K_M", "gguf:IQ1_S"]))
                    }
                    Kind::Text if path == "job.serve.kv_cache_dtype" => {
                        json!(which.get(&["auto", "fp8", "fp16", "q8_0", "int8", "x"]))
                    }
                    Kind::Text if path == "job.serve.engine_version" => {
                        json!(which.get(&["0.6.4.post1 (v0)", "0.8.5", "0.11", "", "99999999999999999999", "é"]))
                    }
                    _ => continue,
                };
                *doc.pointer_mut(&format!("/{}", path.rsplit_once('.').map_or("", |p| p.0).replace('.', "/")))
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .entry(path.rsplit('.').next().unwrap().to_owned())
                    .or_insert(json!(null)) = value;
            }
            let scenario = Scenario::from_json(doc.clone()).unwrap();
            if let Ok(answer) = run(&scenario) {
                for term in &answer.terms {
                    prop_assert!(term.low <= term.bytes && term.bytes <= term.high, "{:?} in {doc}", term);
                }
                prop_assert!(answer.peak_low <= answer.peak_bytes, "{doc}");
                prop_assert!(answer.peak_bytes <= answer.peak_high, "{doc}");
                for phase in &answer.phases {
                    prop_assert!(phase.allocated_bytes <= phase.peak_bytes, "{:?} in {doc}", phase);
                    prop_assert!(phase.peak_bytes <= answer.peak_bytes, "{:?} in {doc}", phase);
                }
            }
        }
    }
}

#[test]
fn a_load_that_nobody_gave_is_cut_to_a_short_length() {
    let load = |serve: &str| {
        let text = format!(
            r#"{{"model": {{"preset": "llama-3.1-8b"}}, "device": {{"preset": "h100-80gb"}}, "job": {{"serve": {serve}}}}}"#
        );
        let scenario = Scenario::from_json_str(&text).unwrap();
        let again = Scenario::from_permalink(&scenario.permalink().unwrap()).unwrap();
        assert_eq!(again, scenario, "{serve}");
        let Job::Serve(serve) = scenario.job else { unreachable!("a serving job") };
        (serve.prompt_tokens, serve.new_tokens)
    };
    assert_eq!(load(r#"{"max_model_len": 1024}"#), (820, 204));
    assert_eq!(load(r#"{"max_model_len": 1}"#), (1, 0));
    assert_eq!(load(r#"{"max_model_len": 1280}"#), (1024, 256));
    assert_eq!(load("{}"), (1024, 256));
    // What a person gave stands, and is answered for.
    assert_eq!(load(r#"{"max_model_len": 1024, "prompt_tokens": 1024}"#), (1024, 256));
}
