//! `TrainingArguments` of transformers as `to_json_string` writes them, with the names that TRL's scripts add for
//! adapters, quantised bases and lengths. Names: transformers 5.24 `training_args.py`, trl 0.24 `ModelConfig`.

use super::document::Document;
use super::reading::{Reading, word};
use super::trainer_keys::KEYS;
use super::{accelerate, deepspeed};
use crate::engines::training::ALL_LINEAR;
use crate::units::Message;
use serde_json::{Value, json};

const MARKS: &[&str] = &[
    "per_device_train_batch_size",
    "per_gpu_train_batch_size",
    "num_train_epochs",
    "gradient_checkpointing",
    "output_dir",
    "lr_scheduler_type",
];

pub(super) fn sniff(document: &Document) -> bool {
    MARKS.iter().any(|key| document.root.contains_key(*key))
}

pub(super) fn read(r: &mut Reading<'_>) {
    batch(r);
    length(r);
    recompute(r);
    optimizer(r);
    attention(r);
    r.take_flag("use_liger_kernel", "job.train.loss", "fused", "hf");
    if r.flag("use_liger_kernel") == Some(true) {
        // It replaces more than the loss.
        r.warn(Message::new("imports.liger"));
    }
    adapters(r);
    precision(r);
    sharding(r);
    if r.get("model_name_or_path").is_some() {
        r.leave("model_name_or_path");
    }
    r.rest(KEYS);
}

fn batch(r: &mut Reading<'_>) {
    const PATH: &str = "job.train.micro_batch";
    let key = "per_device_train_batch_size";
    let old = "per_gpu_train_batch_size";
    if r.get(key).is_some() {
        r.take_whole(key, PATH);
    } else if r.get(old).is_some() {
        r.take_whole(old, PATH);
    } else {
        r.imply(key, PATH, 8);
    }
    r.take_whole("gradient_accumulation_steps", "job.train.gradient_accumulation");
    if r.flag("auto_find_batch_size") == Some(true) {
        r.warn(Message::new("imports.finds_batch"));
    }
}

fn length(r: &mut Reading<'_>) {
    // Names of TRL; the older one last.
    for key in ["max_length", "max_seq_length"] {
        r.take_whole(key, "job.train.seq_len");
    }
}

fn recompute(r: &mut Reading<'_>) {
    // `activation_checkpointing` is the newer name for the same.
    for key in ["gradient_checkpointing", "activation_checkpointing"] {
        r.take_flag(key, "job.train.checkpointing", "full", "none");
    }
}

fn optimizer(r: &mut Reading<'_>) {
    const KEY: &str = "optim";
    if r.flag("adafactor") == Some(true) {
        return r.take("adafactor", "job.train.optimizer", "adafactor");
    }
    let Some(name) = r.word(KEY) else { return };
    let name = name.rsplit('.').next().unwrap_or(&name);
    let (id, implementation) = match name {
        "adamw_torch" => ("adamw", Some("foreach")),
        "adamw_torch_fused" => ("adamw", Some("fused")),
        // transformers' own loop over tensors, until 4.46.
        "adamw_hf" => ("adamw", Some("loop")),
        "adamw_8bit" | "adamw_bnb_8bit" => ("adamw8bit", None),
        "paged_adamw_8bit" => ("paged_adamw8bit", None),
        "adafactor" => ("adafactor", None),
        "sgd" => ("sgd", None),
        "lion_32bit" => ("lion", None),
        _ => return r.no_field(KEY),
    };
    r.take(KEY, "job.train.optimizer", id);
    if let Some(implementation) = implementation {
        r.take(KEY, "job.train.optimizer_impl", implementation);
    }
}

fn attention(r: &mut Reading<'_>) {
    const KEY: &str = "attn_implementation";
    let id = match r.word(KEY).as_deref() {
        None => return,
        Some("eager") => "eager",
        Some("sdpa") => "sdpa",
        Some("flash_attention_2" | "flash_attention_3") => "flash",
        Some(_) => return r.no_field(KEY),
    };
    r.take(KEY, "job.train.attention", id);
}

/// Adapters, either TRL's flat names or an object of PEFT's.
fn adapters(r: &mut Reading<'_>) {
    let inner =
        ["peft_config", "lora_config"].into_iter().find(|key| r.get(key).is_some_and(Value::is_object));
    let (rank, targets) = match inner {
        Some(outer) => (format!("{outer}.r"), format!("{outer}.target_modules")),
        None => ("lora_r".to_owned(), "lora_target_modules".to_owned()),
    };
    quantised_base(r);
    if r.flag("use_peft") == Some(false) {
        // Then the rest says nothing.
        return;
    }
    let names = match r.get(&targets) {
        Some(Value::String(text)) if text == ALL_LINEAR => Some(json!(text)),
        Some(Value::String(text)) if !text.is_empty() && plain_name(text) => Some(json!([text])),
        Some(Value::Array(all)) if all.len() == 1 && all.first().is_some_and(|v| word(v) == ALL_LINEAR) => {
            Some(json!(ALL_LINEAR))
        }
        Some(Value::Array(all))
            if !all.is_empty() && all.iter().all(|v| v.as_str().is_some_and(plain_name)) =>
        {
            Some(json!(all))
        }
        Some(_) => {
            r.bad(&targets, "\"all-linear\", [\"q_proj\", …]");
            return;
        }
        None => None,
    };
    if r.get(&rank).is_none() {
        if r.flag("use_peft") == Some(true) {
            r.no_field("use_peft");
        }
        return r.no_field(&targets);
    }
    let accepted = crate::share::fields::RANK;
    match (r.whole(&rank), names) {
        (Some(n @ 1..=65_536), Some(names)) => {
            r.take(&rank, "job.train.lora", json!({ "rank": n, "targets": names }));
            r.used(&targets);
        }
        (Some(1..=65_536), None) => {
            // PEFT then chooses by the model's architecture.
            r.no_field(&rank);
            r.warn(Message::new("imports.no_targets").with("key", targets));
        }
        _ => r.bad(&rank, &accepted.accepted()),
    }
}

/// A name of a module, not a regular expression.
fn plain_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn quantised_base(r: &mut Reading<'_>) {
    const PATH: &str = "job.train.base_quantization";
    if r.flag("load_in_4bit") == Some(true) {
        if r.word("bnb_4bit_quant_type").is_none_or(|kind| kind == "nf4") {
            r.take("load_in_4bit", PATH, "bnb-nf4");
            r.used("bnb_4bit_quant_type");
        } else {
            r.no_field("load_in_4bit");
        }
    }
    if r.flag("load_in_8bit") == Some(true) {
        r.take("load_in_8bit", PATH, "bnb-int8");
    }
}

fn precision(r: &mut Reading<'_>) {
    const PATH: &str = "job.train.precision";
    let loaded = ["dtype", "torch_dtype", "model_dtype"].into_iter().find(|key| r.get(key).is_some());
    let half = loaded.and_then(|key| r.word(key)).unwrap_or_default();
    let in_half = matches!(half.as_str(), "bfloat16" | "bf16" | "torch.bfloat16");
    let in_full = matches!(half.as_str(), "float32" | "fp32" | "torch.float32");
    let quantised = r.out.taken.iter().any(|t| t.path == "job.train.base_quantization");
    match (r.flag("bf16") == Some(true), r.flag("fp16") == Some(true)) {
        (true, true) => r.warn(Message::new("imports.both_precisions")),
        (true, false) if in_half || quantised => {
            // Autocast has nothing to cast; TRL casts adapters of a 4-bit base to bf16 as well.
            r.take("bf16", PATH, "bf16");
        }
        (true, false) => {
            r.take("bf16", PATH, "bf16-mixed");
            if !in_full {
                r.warn(Message::new("imports.loaded_in_fp32").with("key", "bf16"));
            }
        }
        (false, true) => r.take("fp16", PATH, "fp16-mixed"),
        (false, false) => match loaded {
            Some(key) if in_half => r.take(key, PATH, "bf16"),
            Some(key) if in_full => r.take(key, PATH, "fp32"),
            Some(key) => r.leave(key),
            None => {}
        },
    }
    for key in ["bf16", "fp16"] {
        match (r.get(key), r.flag(key)) {
            (Some(_), None) => r.bad(key, "true, false"),
            _ => r.used(key),
        }
    }
    if in_half || in_full {
        r.used(loaded.unwrap_or_default());
    }
}

fn sharding(r: &mut Reading<'_>) {
    match r.get("deepspeed") {
        Some(Value::Object(_)) => r.inside("deepspeed", deepspeed::read),
        Some(Value::String(_)) => {
            r.out.deepspeed = true;
            r.leave("deepspeed");
            r.warn(Message::new("imports.other_file").with("key", "deepspeed"));
        }
        _ => {}
    }
    const PATH: &str = "job.train.fsdp";
    let words = match r.get("fsdp") {
        Some(Value::String(text)) => text.to_ascii_lowercase(),
        Some(Value::Array(all)) => all.iter().map(word).collect::<Vec<_>>().join(" "),
        Some(Value::Bool(true)) => "full_shard".to_owned(),
        _ => String::new(),
    };
    let has = |name: &str| words.split([' ', ',']).any(|w| w == name);
    let all = ["full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2"];
    if let Some(id) = all.into_iter().find(|id| has(id)) {
        r.take("fsdp", PATH, id);
        if has("offload") {
            r.take("fsdp", "job.train.offload_params", true);
            r.take("fsdp", "job.train.offload_optimizer", true);
        }
        let inner = if r.get("fsdp_config.activation_checkpointing").is_some() {
            "fsdp_config."
        } else {
            "fsdp_config.fsdp_"
        };
        accelerate::recompute(r, inner);
    } else if !words.trim().is_empty() && words.trim() != "false" {
        r.bad("fsdp", &all.join(", "));
    }
}
