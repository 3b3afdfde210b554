//! Accelerate's `default_config.yaml`, as `accelerate config` writes it. Names: accelerate 1.15,
//! `commands/config/config_args.py` and `commands/launch.py`.

use super::accelerate_keys::KEYS;
use super::deepspeed;
use super::document::Document;
use super::reading::Reading;
use crate::units::Message;

const MARKS: &[&str] =
    &["distributed_type", "compute_environment", "main_training_function", "megatron_lm_config"];

pub(super) fn sniff(document: &Document) -> bool {
    MARKS.iter().any(|key| document.root.contains_key(*key))
}

pub(super) fn read(r: &mut Reading<'_>) {
    let how = r.word("distributed_type").unwrap_or_default();
    r.used("distributed_type");
    sections(r, &how);
    match how.as_str() {
        "deepspeed" => {
            r.out.deepspeed = true;
            zero(r);
        }
        "fsdp" => fsdp(r),
        "megatron_lm" => megatron(r),
        "no" | "false" | "" | "multi_gpu" => {}
        _ => {
            let key = "distributed_type";
            let accepted = "NO, MULTI_GPU, FSDP, DEEPSPEED, MEGATRON_LM";
            r.bad(key, accepted);
        }
    }
    precision(r, &how);
    degrees(r, &how);
    r.rest(KEYS);
}

/// A section that its `distributed_type` does not use says nothing.
fn sections(r: &mut Reading<'_>, how: &str) {
    for (section, user) in
        [("deepspeed_config", "deepspeed"), ("fsdp_config", "fsdp"), ("megatron_lm_config", "megatron_lm")]
    {
        let filled = r.get(section).and_then(serde_json::Value::as_object).is_some_and(|map| !map.is_empty());
        if filled && how != user {
            r.settle(section);
            let message = Message::new("imports.section_unused").with("section", section);
            r.warn(
                message.with("how", if how.is_empty() { "NO".to_owned() } else { how.to_ascii_uppercase() }),
            );
        }
    }
}

fn precision(r: &mut Reading<'_>, how: &str) {
    const PATH: &str = "job.train.precision";
    const KEY: &str = "mixed_precision";
    let half = matches!(how, "deepspeed" | "megatron_lm");
    match r.word(KEY).as_deref() {
        None => {}
        Some("bf16") => {
            r.take(KEY, PATH, if half { "bf16-master" } else { "bf16-mixed" });
            if matches!(how, "no" | "false" | "" | "multi_gpu") {
                r.warn(Message::new("imports.loaded_in_fp32").with("key", KEY));
            }
        }
        Some("fp16") if half => {
            r.take(KEY, PATH, "bf16-master");
            r.warn(Message::new("imports.fp16_as_bf16"));
        }
        Some("fp16") => r.take(KEY, PATH, "fp16-mixed"),
        Some("fp8") => r.no_field(KEY),
        // Then the dtype in which the model is loaded decides.
        Some("no" | "false") => r.leave(KEY),
        Some(_) => r.bad(KEY, "no, fp16, bf16, fp8"),
    }
}

/// `num_processes` counts every process of every machine.
fn degrees(r: &mut Reading<'_>, how: &str) {
    let p = "parallelism_config.parallelism_config_";
    let tensor = r.take_whole(&format!("{p}tp_size"), "parallel.tensor");
    let context = r.take_whole(&format!("{p}cp_size"), "parallel.context");
    let whole = |r: &Reading<'_>, key: &str| r.whole(key).unwrap_or(1).max(1);
    let inner = [
        tensor.unwrap_or(1),
        context.unwrap_or(1),
        whole(r, &format!("{p}sp_size")),
        if how == "megatron_lm" { whole(r, "megatron_lm_config.megatron_lm_tp_degree") } else { 1 },
        if how == "megatron_lm" { whole(r, "megatron_lm_config.megatron_lm_pp_degree") } else { 1 },
        if how == "megatron_lm" {
            whole(r, "megatron_lm_config.megatron_lm_context_parallel_size")
        } else {
            1
        },
    ];
    let key = "num_processes";
    let Some(all) = r.whole(key) else {
        if r.get(key).is_some() && r.word(key).as_deref() != Some("-1") {
            r.bad(key, "1 …");
        }
        // -1 is what the launcher makes of it.
        return r.leave(key);
    };
    let each = inner.iter().try_fold(1u64, |a, b| a.checked_mul(*b));
    match each {
        Some(each) if all > 0 && all % each == 0 && all / each <= 1 << 16 => {
            r.take(key, "parallel.data", all / each);
        }
        _ => {
            r.settle(key);
            let each = each.unwrap_or(u64::MAX);
            r.warn(Message::new("imports.processes").with("all", all).with("each", each));
        }
    }
}

/// The short form of DeepSpeed's options.
fn zero(r: &mut Reading<'_>) {
    let at = |name: &str| format!("deepspeed_config.{name}");
    let file = at("deepspeed_config_file");
    if r.get(&file).is_some() {
        r.leave(&file);
        r.warn(Message::new("imports.other_file").with("key", file));
    }
    let stage = r.take_whole(&at("zero_stage"), "job.train.zero_stage");
    r.take_whole(&at("gradient_accumulation_steps"), "job.train.gradient_accumulation");
    r.take_whole(&at("train_micro_batch_size_per_gpu"), "job.train.micro_batch");
    deepspeed::offload(r, &at("offload_optimizer_device"), "job.train.offload_optimizer");
    let parameters = deepspeed::offload(r, &at("offload_param_device"), "job.train.offload_params");
    if let Some(stage @ 0..=2) = stage
        && parameters
    {
        r.warn(Message::new("imports.offload_stage").with("stage", stage));
    }
}

/// FSDP's options.
fn fsdp(r: &mut Reading<'_>) {
    let outer = "fsdp_config.fsdp_";
    let at = |name: &str| format!("{outer}{name}");
    let second = r.whole(&at("version")) == Some(2);
    strategy(r, &at("sharding_strategy"), &at("reshard_after_forward"), second);
    let offload = at("offload_params");
    if r.flag(&offload) == Some(true) {
        // Parameters, gradients and what the optimizer keeps are on the host together.
        r.take(&offload, "job.train.offload_optimizer", true);
    }
    r.take_flag(&offload, "job.train.offload_params", true, false);
    recompute(r, outer);
}

/// Recomputation of every wrapped block.
pub(super) fn recompute(r: &mut Reading<'_>, outer: &str) {
    let key = format!("{outer}activation_checkpointing");
    r.take_flag(&key, "job.train.checkpointing", "full", "none");
}

fn strategy(r: &mut Reading<'_>, strategy: &str, reshard: &str, second: bool) {
    const PATH: &str = "job.train.fsdp";
    if second && r.get(strategy).is_some() {
        r.settle(strategy);
        r.warn(Message::new("imports.fsdp_version").with("key", strategy));
    }
    // The first version takes a strategy by either key, by name or number.
    let key = if second || r.get(strategy).is_none() { reshard } else { strategy };
    let id = match r.word(key).as_deref() {
        Some("full_shard" | "1") | None => "full_shard",
        Some("true") if second => "full_shard",
        Some("false") if second => "shard_grad_op",
        Some("shard_grad_op" | "2") => "shard_grad_op",
        Some("no_shard" | "3") => "no_shard",
        Some("hybrid_shard" | "4") => "hybrid_shard",
        Some("hybrid_shard_zero2" | "5") => "hybrid_shard_zero2",
        // The flag of the second version has no effect in the first.
        Some("true" | "false") => {
            r.used(key);
            return r.imply(key, PATH, "full_shard");
        }
        Some(_) => {
            let accepted = if second {
                "true, false"
            } else {
                "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2"
            };
            return r.bad(key, accepted);
        }
    };
    if r.get(key).is_some() { r.take(key, PATH, id) } else { r.imply(key, PATH, id) }
}

fn megatron(r: &mut Reading<'_>) {
    let at = |name: &str| format!("megatron_lm_config.megatron_lm_{name}");
    r.take_whole(&at("tp_degree"), "parallel.tensor");
    r.take_whole(&at("pp_degree"), "parallel.pipeline");
    r.take_whole(&at("context_parallel_size"), "parallel.context");
    r.take_whole(&at("expert_model_parallel_size"), "parallel.expert");
    r.take_flag(&at("optimizer_cpu_offload"), "job.train.offload_optimizer", true, false);
    let granularity = at("recompute_granularity");
    match r.word(&granularity).as_deref() {
        Some("full") => r.take(&granularity, "job.train.checkpointing", "full"),
        Some("selective") => r.take(&granularity, "job.train.checkpointing", "selective"),
        // The older flag alone means the selective form.
        _ => r.take_flag(&at("recompute_activations"), "job.train.checkpointing", "selective", "none"),
    }
}
