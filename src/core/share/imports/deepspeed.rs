//! DeepSpeed's JSON config. Names: deepspeed 0.19, `deepspeed/runtime/{constants,config,zero/config}.py`,
//! <https://www.deepspeed.ai/docs/config-json/>.

use super::deepspeed_keys::KEYS;
use super::document::Document;
use super::reading::Reading;
use crate::units::Message;

/// Keys of which each is DeepSpeed's alone.
const MARKS: &[&str] = &[
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "train_batch_size",
    "zero_allow_untested_optimizer",
];

pub(super) fn sniff(document: &Document) -> bool {
    let section = |name: &str| document.at(&format!("{name}.enabled")).is_some();
    MARKS.iter().any(|key| document.root.contains_key(*key)) || section("bf16") || section("fp16")
}

pub(super) fn read(r: &mut Reading<'_>) {
    r.out.deepspeed = true;
    batch(r);
    precision(r);
    zero(r);
    optimizer(r);
    r.take_whole("tensor_parallel.autotp_size", "parallel.tensor");
    r.rest(KEYS);
}

/// train_batch_size = micro batch × accumulation × data-parallel devices.
fn batch(r: &mut Reading<'_>) {
    let micro = r.take_whole("train_micro_batch_size_per_gpu", "job.train.micro_batch");
    let steps = r.take_whole("gradient_accumulation_steps", "job.train.gradient_accumulation");
    let all = r.whole("train_batch_size");
    if all.is_none() && r.get("train_batch_size").is_some() && !r.auto("train_batch_size") {
        r.bad("train_batch_size", "1 …");
    }
    let (Some(all), Some(micro), Some(steps)) = (all, micro, steps) else {
        // Which of the other two factors it settles depends on how many processes are started.
        return r.leave("train_batch_size");
    };
    match micro.checked_mul(steps) {
        Some(each) if all > 0 && all % each == 0 && all / each <= 1 << 16 => {
            r.take("train_batch_size", "parallel.data", all / each);
        }
        _ => {
            r.settle("train_batch_size");
            let message = Message::new("imports.batch_product").with("all", all).with("micro", micro);
            r.warn(message.with("steps", steps));
        }
    }
}

/// Half precision of DeepSpeed: parameters and gradients of two bytes beside fp32 master weights.
fn precision(r: &mut Reading<'_>) {
    const PATH: &str = "job.train.precision";
    let bf16 = if r.get("bf16.enabled").is_some() { "bf16.enabled" } else { "bfloat16.enabled" };
    let open = [r.auto(bf16), r.auto("fp16.enabled")].contains(&true);
    match (r.flag(bf16) == Some(true), r.flag("fp16.enabled") == Some(true)) {
        (true, true) => {
            r.settle(bf16);
            r.settle("fp16.enabled");
            r.warn(Message::new("imports.both_precisions"));
        }
        (true, false) => r.take(bf16, PATH, "bf16-master"),
        (false, true) => {
            r.take("fp16.enabled", PATH, "bf16-master");
            r.warn(Message::new("imports.fp16_as_bf16"));
        }
        (false, false) if !open => r.imply(bf16, PATH, "fp32"),
        (false, false) => {}
    }
    for key in [bf16, "fp16.enabled"] {
        if r.get(key).is_some() && r.word(key).as_deref() != Some("auto") {
            match r.flag(key) {
                Some(_) => r.used(key),
                None => r.bad(key, "true, false, \"auto\""),
            }
        }
    }
    if r.flag("amp.enabled") == Some(true) {
        r.no_field("amp.enabled");
    }
}

fn zero(r: &mut Reading<'_>) {
    let z = "zero_optimization";
    if r.get(z).is_some_and(serde_json::Value::is_boolean) {
        // The oldest format: true is stage 1.
        return r.take_flag(z, "job.train.zero_stage", 1, 0);
    }
    let stage = r.take_whole("zero_optimization.stage", "job.train.zero_stage");
    r.take_whole("zero_optimization.reduce_bucket_size", "job.train.reduce_bucket_elements");
    offload(r, "zero_optimization.offload_optimizer.device", "job.train.offload_optimizer");
    let parameters = offload(r, "zero_optimization.offload_param.device", "job.train.offload_params");
    r.take_flag("zero_optimization.cpu_offload", "job.train.offload_optimizer", true, false);
    r.take_flag("zero_optimization.cpu_offload_param", "job.train.offload_params", true, false);
    let parameters = parameters || r.flag("zero_optimization.cpu_offload_param") == Some(true);
    if let Some(stage @ 0..=2) = stage
        && parameters
    {
        r.warn(Message::new("imports.offload_stage").with("stage", stage));
    }
}

/// Takes a device of offloading; whether there is one.
pub(super) fn offload(r: &mut Reading<'_>, key: &str, path: &'static str) -> bool {
    if r.get(key).is_none() || r.auto(key) {
        return false;
    }
    match r.word(key).as_deref() {
        Some("none" | "false") => r.take(key, path, false),
        Some("cpu" | "nvme") => {
            r.take(key, path, true);
            return true;
        }
        _ => r.bad(key, "none, cpu, nvme"),
    }
    false
}

fn optimizer(r: &mut Reading<'_>) {
    const PATH: &str = "job.train.optimizer";
    let Some(name) = r.word("optimizer.type") else { return };
    if r.auto("optimizer.type") {
        return;
    }
    let id = match name.as_str() {
        "adam" | "adamw" | "fusedadam" => "adamw",
        "lion" | "fusedlion" => "lion",
        "sgd" => {
            let momentum = r.get("optimizer.params.momentum").and_then(serde_json::Value::as_f64);
            if momentum.is_some_and(|m| m != 0.0) { "sgd_momentum" } else { "sgd" }
        }
        "muon" => "muon",
        _ => return r.no_field("optimizer.type"),
    };
    r.take("optimizer.type", PATH, id);
    if id == "adamw" {
        // Its own Adam is a fused kernel; torch's is what PyTorch makes of it.
        let fused = r.flag("optimizer.params.torch_adam") != Some(true);
        let implementation = if fused { "fused" } else { "foreach" };
        let from = if fused { "optimizer.type" } else { "optimizer.params.torch_adam" };
        r.take(from, "job.train.optimizer_impl", implementation);
    }
}
