//! Files of other tools: each is known by its content, every key ends in one list, and nothing is guessed.

use oom_ledger_core::share::{
    IMPORTS, Imported, Key, SCENARIO, Scenario, field, import, imported_json, kinds, merge,
};
use oom_ledger_core::text::Lang;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/imports/", $name))
    };
}

const ZERO2: &str = fixture!("deepspeed_zero2.json");
const ZERO3: &str = fixture!("deepspeed_zero3_offload.json");
const FSDP1: &str = fixture!("accelerate_fsdp1.yaml");
const FSDP2: &str = fixture!("accelerate_fsdp2.yaml");
const NESTED: &str = fixture!("accelerate_deepspeed.yaml");
const TRAINER: &str = fixture!("training_arguments.json");
const HOSTILE: &str = fixture!("hostile.yaml");

const FILES: &[(&str, &str)] = &[
    ("deepspeed", ZERO2),
    ("deepspeed", ZERO3),
    ("accelerate", FSDP1),
    ("accelerate", FSDP2),
    ("accelerate", NESTED),
    ("training-arguments", TRAINER),
    ("accelerate", HOSTILE),
];

fn read(text: &str) -> Imported {
    import(text).unwrap_or_else(|p| panic!("{p:?}"))
}

fn taken(file: &Imported) -> Value {
    let rows = file.taken.iter().map(|t| (t.path.to_owned(), t.value.clone()));
    Value::Object(rows.collect())
}

fn names(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(|k| k.key.as_str()).collect()
}

fn warned(file: &Imported) -> Vec<&str> {
    file.warnings.iter().map(|m| m.id).collect()
}

#[test]
fn each_file_is_of_one_kind_and_every_kind_has_a_file() {
    for (kind, text) in FILES {
        assert_eq!(kinds(text).unwrap(), [*kind]);
    }
    for kind in IMPORTS {
        assert!(FILES.iter().any(|(id, _)| *id == kind.id), "{}", kind.id);
    }
}

#[test]
fn other_documents_are_of_no_kind() {
    for text in [
        r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"}}"#,
        r#"{"model_type": "llama", "hidden_size": 4096, "torch_dtype": "bfloat16"}"#,
        r#"{"bf16": 1, "optimizer": "x"}"#,
        "version: 3\nservices:\n  a:\n    image: b\n",
        "{}",
        "x: 1",
    ] {
        assert_eq!(kinds(text).unwrap(), [""; 0], "{text}");
        assert_eq!(import(text).unwrap_err().message.id, "imports.not_known");
    }
}

#[test]
fn zero_2() {
    let file = read(ZERO2);
    let want = json!({
        "job.train.micro_batch": 4, "job.train.gradient_accumulation": 2, "parallel.data": 8,
        "job.train.precision": "bf16-master", "job.train.zero_stage": 2,
        "job.train.reduce_bucket_elements": 200_000_000,
        "job.train.optimizer": "adamw", "job.train.optimizer_impl": "fused",
    });
    assert_eq!(taken(&file), want);
    assert_eq!(names(&file.unknown), ["zero_optimisation.stage"]);
    assert_eq!(file.unknown[0].line, Some(15));
    assert_eq!(
        names(&file.not_modelled),
        ["zero_optimization.allgather_bucket_size", "zero_optimization.overlap_comm"]
    );
    assert!(names(&file.no_memory).contains(&"zero_optimization.contiguous_gradients"));
    assert_eq!(warned(&file), [""; 0]);
}

#[test]
fn zero_3_leaves_auto_open() {
    let file = read(ZERO3);
    let want = json!({
        "job.train.zero_stage": 3, "job.train.offload_optimizer": true, "job.train.offload_params": true,
    });
    assert_eq!(taken(&file), want);
    let open: BTreeSet<_> = names(&file.open).into_iter().collect();
    let want = [
        "bf16.enabled",
        "fp16.enabled",
        "gradient_accumulation_steps",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "zero_optimization.reduce_bucket_size",
        "zero_optimization.stage3_prefetch_bucket_size",
    ];
    assert_eq!(open, want.into_iter().collect());
    assert!(file.unknown.is_empty());
}

#[test]
fn both_versions_of_fsdp() {
    let first = read(FSDP1);
    let want = json!({
        "job.train.fsdp": "shard_grad_op", "job.train.offload_optimizer": true, "job.train.offload_params": true,
        "job.train.precision": "bf16-mixed", "parallel.data": 8,
    });
    assert_eq!(taken(&first), want);
    assert!(first.unknown.is_empty(), "{:?}", first.unknown);
    let second = read(FSDP2);
    let want = json!({
        "job.train.fsdp": "shard_grad_op", "job.train.offload_params": false,
        "job.train.checkpointing": "full", "parallel.tensor": 2, "parallel.data": 2,
    });
    assert_eq!(taken(&second), want);
    assert_eq!(names(&second.unknown), ["fsdp_config.fsdp_new_option"]);
    assert_eq!(second.unknown[0].line, Some(7));
    assert_eq!(names(&second.open), ["mixed_precision"]);
}

#[test]
fn deepspeed_inside_of_accelerate() {
    let file = read(NESTED);
    let want = json!({
        "job.train.zero_stage": 2, "job.train.gradient_accumulation": 4, "job.train.offload_optimizer": false,
        "job.train.offload_params": true, "job.train.precision": "bf16-master", "parallel.data": 2,
    });
    assert_eq!(taken(&file), want);
    assert_eq!(warned(&file), ["imports.section_unused", "imports.offload_stage"]);
}

#[test]
fn training_arguments() {
    let file = read(TRAINER);
    let want = json!({
        "job.train.micro_batch": 2, "job.train.gradient_accumulation": 16, "job.train.seq_len": 4096,
        "job.train.checkpointing": "full", "job.train.optimizer": "paged_adamw8bit",
        "job.train.attention": "flash", "job.train.base_quantization": "bnb-nf4",
        "job.train.lora": {"rank": 16, "targets": ["q_proj", "v_proj"]}, "job.train.precision": "bf16",
    });
    assert_eq!(taken(&file), want);
    assert_eq!(names(&file.unknown), ["my_own_flag"]);
    assert_eq!(names(&file.not_modelled), ["packing"]);
}

#[test]
fn deepspeed_inside_of_training_arguments() {
    let text = r#"{"output_dir": "x", "bf16": true,
        "deepspeed": {"zero_optimization": {"stage": 1, "stag": 2}, "bf16": {"enabled": "auto"}}}"#;
    let file = read(text);
    assert_eq!(names(&file.unknown), ["deepspeed.zero_optimization.stag"]);
    assert_eq!(file.unknown[0].line, Some(2));
    let (fields, messages) = merge(&[file]);
    assert!(fields.contains(&("job.train.precision".to_owned(), "bf16-master".into())), "{fields:?}");
    // No batch is given: the Trainer's own default of 8.
    assert!(fields.contains(&("job.train.micro_batch".to_owned(), 8.into())));
    assert!(messages.iter().any(|m| m.id == "imports.under_deepspeed"));
}

#[test]
fn null_is_the_default_and_no_unknown_key() {
    let text = r#"{"output_dir": "x", "optim": null, "max_length": null, "bf16": null, "deepspeed": null, "x": null}"#;
    let file = read(text);
    assert_eq!(names(&file.unknown), ["x"]);
    assert_eq!(taken(&file), json!({"job.train.micro_batch": 8}));
}

#[test]
fn contradictions_are_told() {
    for (text, id) in [
        (
            r#"{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}"#,
            "imports.batch_product",
        ),
        (r#"{"bf16": {"enabled": true}, "fp16": {"enabled": true}}"#, "imports.both_precisions"),
        (r#"{"zero_optimization": {"stage": 7}}"#, "imports.bad"),
        (r#"{"zero_optimization": {"stage": 2}, "zero_optimization": {"stage": 3}}"#, "imports.twice"),
        (r#"{"output_dir": "", "bf16": true, "fp16": true}"#, "imports.both_precisions"),
        (r#"{"output_dir": "", "use_peft": true, "lora_r": 8}"#, "imports.no_targets"),
        (
            "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_sharding_strategy: 1}",
            "imports.fsdp_version",
        ),
        (
            "distributed_type: MEGATRON_LM\nnum_processes: 6\nmegatron_lm_config: {megatron_lm_tp_degree: 4}",
            "imports.processes",
        ),
    ] {
        assert!(warned(&read(text)).contains(&id), "{text}: {:?}", warned(&read(text)));
    }
    let a = read(r#"{"output_dir": "", "per_device_train_batch_size": 2}"#);
    let b = read(r#"{"train_micro_batch_size_per_gpu": 4}"#);
    let (fields, messages) = merge(&[a.clone(), b]);
    assert!(fields.contains(&("job.train.micro_batch".to_owned(), 4.into())));
    assert_eq!(messages[0].id, "imports.conflict");
    assert!(merge(&[a.clone(), a]).1.is_empty());
}

#[test]
fn hostile_files_say_nothing_wrong() {
    let file = read(HOSTILE);
    assert_eq!(taken(&file), json!({}));
    let unknown = names(&file.unknown);
    assert!(unknown.contains(&"fsdp_config.fsdp_version"), "{unknown:?}");
    assert!(unknown.contains(&"fsdp_config"), "{unknown:?}");
    assert!(warned(&file).iter().filter(|id| **id == "imports.bad").count() >= 3, "{:?}", file.warnings);
    let deep = "{".repeat(100_000);
    let nested = format!("distributed_type: {}{}", "[".repeat(200), "]".repeat(200));
    let long = format!("distributed_type: {}", "x".repeat(2 << 20));
    for (text, id) in [
        (deep.as_str(), "imports.broken"),
        (&nested, "imports.too_deep"),
        (&long, "imports.too_long"),
        ("a: &a [1]\nb: *a", "imports.alias"),
        ("- 1\n- 2", "imports.no_options"),
        ("", "imports.no_options"),
        ("a: b: c", "imports.broken"),
        ("{\"a\":\n 1,}", "imports.broken"),
        ("? [a]\n: b", "imports.broken"),
    ] {
        assert_eq!(import(text).unwrap_err().message.id, id, "{}", &text[..text.len().min(40)]);
    }
}

/// Values of a JSON file, counted by path.
fn leaves(outer: &str, value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, inner) in map {
                let path = if outer.is_empty() { name.clone() } else { format!("{outer}.{name}") };
                leaves(&path, inner, out);
            }
        }
        _ => drop(out.insert(outer.to_owned())),
    }
}

/// No key is dropped in silence.
#[test]
fn every_key_is_in_a_list() {
    for text in [ZERO2, ZERO3, TRAINER] {
        let file = read(text);
        let mut all = BTreeSet::new();
        leaves("", &serde_json::from_str(text).unwrap(), &mut all);
        let lists = [&file.used, &file.open, &file.not_modelled, &file.no_memory, &file.unknown];
        let mut told: BTreeSet<&str> = lists.into_iter().flat_map(|l| names(l)).collect();
        told.extend(file.taken.iter().map(|t| t.from.key.as_str()));
        let lost: Vec<_> = all.iter().filter(|k| !told.contains(k.as_str())).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

/// What is imported is a Scenario, and one that resolves.
#[test]
fn fields_are_accepted() {
    assert!(!SCENARIO.is_empty());
    for (_, text) in FILES {
        let mut doc = json!({
            "model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb", "count": 64}, "job": {"train": {}},
        });
        for (path, value) in merge(&[read(text)]).0 {
            assert!(field(&path).is_some(), "{path}");
            let (section, name) = path.rsplit_once('.').unwrap();
            doc.pointer_mut("/job/train").unwrap();
            if section == "job.train" {
                doc["job"]["train"][name] = value;
            } else {
                doc[section][name] = value;
            }
        }
        let scenario = Scenario::from_json(doc).unwrap_or_else(|p| panic!("{p:?}"));
        scenario.resolve().unwrap_or_else(|p| panic!("{p:?}"));
        assert!(imported_json(Lang::Zh, &read(text))["taken"].is_array());
    }
}

proptest! {
    /// Whatever the text: an answer or a problem, never a panic.
    #[test]
    fn any_text_is_read(text in "\\PC{0,200}", at in 0usize..2000, which in 0usize..7) {
        let _ = import(&text);
        let whole = FILES[which].1;
        let mut at = at.min(whole.len());
        while !whole.is_char_boundary(at) { at -= 1; }
        let _ = import(&format!("{}{text}{}", &whole[..at], &whole[at..]));
        let _ = import(&whole[..at]);
    }
}
