//! Every lever of a training step: which field it moves, what moving it costs, and the values worth trying.

use super::table::{Change, Cost, Steps, below, each, larger};
use super::training::TrainVariant;
use crate::engines::AttentionImpl;
use crate::engines::training::{ALL_LINEAR, Checkpointing, Loss, Optimizer, OptimizerImpl, Precision};
use serde_json::json;

/// One lever of a training step.
pub struct TrainingLever {
    /// Id: `lever.<id>` is its text, `lever.<id>.cost` what it costs in words.
    pub id: &'static str,
    /// The field it moves, by its path in the Scenario.
    pub field: &'static str,
    /// What it costs.
    pub cost: Cost,
    /// People try it first: where it frees nothing, that is said.
    pub tried: bool,
    /// The values worth trying; none where it does not apply.
    pub steps: fn(&TrainVariant) -> Steps,
}

const fn lever(
    id: &'static str,
    field: &'static str,
    cost: Cost,
    steps: fn(&TrainVariant) -> Steps,
) -> TrainingLever {
    TrainingLever { id, field, cost, tried: false, steps }
}

impl TrainingLever {
    const fn tried(self) -> TrainingLever {
        TrainingLever { tried: true, ..self }
    }
}

/// Rank of an adapter where none was given: what PEFT's examples take; every linear layer gets one.
const RANK: u64 = 16;

/// Most micro-batches that are tried.
const TRIED: usize = 16;

/// Every lever. What the ledger does not model it refuses, and no word is said of it.
pub const TRAINING_LEVERS: &[TrainingLever] = &[
    lever("other_processes", "device.other_processes_bytes", Cost::Nothing, |job| {
        each("device.other_processes_bytes", (job.device.other_processes_bytes > 0).then_some(0))
    }),
    lever("train_attention", "job.train.attention", Cost::Nothing, |job| {
        // FlashAttention has kernels for half precision alone.
        let half = job.train.precision != Precision::Fp32;
        let all: &[&str] = match job.train.attention {
            AttentionImpl::Eager => &["sdpa", "flash"],
            AttentionImpl::Sdpa => &["flash"],
            AttentionImpl::Flash => &[],
        };
        each("job.train.attention", all.iter().copied().filter(move |id| half || *id != "flash"))
    })
    .tried(),
    lever("train_loss", "job.train.loss", Cost::Nothing, |job| {
        let whole = matches!(job.train.loss, Loss::Hf | Loss::Plain);
        each("job.train.loss", whole.then_some("fused"))
    }),
    lever("hold_outputs", "job.train.hold_outputs", Cost::Nothing, |job| {
        each("job.train.hold_outputs", job.train.hold_outputs.then_some(false))
    }),
    lever("optimizer_fused", "job.train.optimizer_impl", Cost::Nothing, |job| {
        let slower = job.train.optimizer_impl != OptimizerImpl::Fused;
        let has = job.train.optimizer == Optimizer::Adamw;
        each("job.train.optimizer_impl", (slower && has).then_some("fused"))
    }),
    lever("optimizer_forloop", "job.train.optimizer_impl", Cost::Speed, |job| {
        let lists = job.train.optimizer_impl == OptimizerImpl::Foreach;
        each("job.train.optimizer_impl", lists.then_some("forloop"))
    }),
    lever("checkpointing", "job.train.checkpointing", Cost::Speed, |job| {
        let all: &[&str] = match job.train.checkpointing {
            Checkpointing::None => &["selective", "full"],
            Checkpointing::Selective => &["full"],
            Checkpointing::Full => &[],
        };
        each("job.train.checkpointing", all.iter().copied())
    })
    .tried(),
    lever("micro_batch", "job.train.micro_batch", Cost::Speed, smaller).tried(),
    lever("more_accumulation", "job.train.gradient_accumulation", Cost::Speed, |job| {
        // With one sequence at a time there is nothing to split; raised alone it is tried all the same.
        let more = job.train.gradient_accumulation.saturating_mul(2);
        each("job.train.gradient_accumulation", (job.train.micro_batch == 1).then_some(more))
    })
    .tried(),
    lever("offload_optimizer", "job.train.offload_optimizer", Cost::Speed, |job| {
        each("job.train.offload_optimizer", (!job.train.offload_optimizer).then_some(true))
    }),
    lever("offload_params", "job.train.offload_params", Cost::Speed, |job| {
        each("job.train.offload_params", (!job.train.offload_params).then_some(true))
    }),
    lever("seq_len", "job.train.seq_len", Cost::Requests, |job| below(job.train.seq_len, 128, 128)),
    lever("no_accumulation", "job.train.gradient_accumulation", Cost::Accuracy, |job| {
        each("job.train.gradient_accumulation", (job.train.gradient_accumulation > 1).then_some(1))
    }),
    lever("optimizer_8bit", "job.train.optimizer", Cost::Accuracy, |job| {
        each("job.train.optimizer", (job.train.optimizer == Optimizer::Adamw).then_some("adamw8bit"))
    }),
    lever("optimizer_paged", "job.train.optimizer", Cost::Accuracy, |job| {
        let adamw = matches!(job.train.optimizer, Optimizer::Adamw | Optimizer::Adamw8bit);
        each("job.train.optimizer", adamw.then_some("paged_adamw8bit"))
    }),
    lever("optimizer_adafactor", "job.train.optimizer", Cost::Accuracy, |job| {
        let other = job.train.optimizer != Optimizer::Adafactor;
        each("job.train.optimizer", other.then_some("adafactor"))
    }),
    lever("precision", "job.train.precision", Cost::Accuracy, |job| {
        let all: &[&str] = match job.train.precision {
            Precision::Fp32 => &["bf16-mixed", "bf16"],
            Precision::Bf16Mixed | Precision::Fp16Mixed | Precision::Bf16Master => &["bf16"],
            Precision::Bf16 => &[],
        };
        each("job.train.precision", all.iter().copied())
    }),
    lever("lora", "job.train.lora.rank", Cost::Accuracy, |job| {
        Steps::Each(job.train.lora.is_none().then(adapters).into_iter().collect())
    }),
    lever("base_quantization", "job.train.base_quantization", Cost::Accuracy, |job| {
        if job.train.base_quantization.is_some() {
            return Steps::Each(Vec::new());
        }
        let mut set: Vec<Change> = vec![("job.train.base_quantization", json!("bnb-nf4"))];
        if job.train.lora.is_none() {
            set.extend(adapters());
        }
        if job.train.precision != Precision::Bf16 {
            set.push(("job.train.precision", json!("bf16")));
        }
        Steps::Each(vec![set])
    }),
    lever("zero_stage", "job.train.zero_stage", Cost::Hardware, |job| {
        let stages = (job.train.zero_stage + 1)..=3;
        let set = |(devices, stage): (u64, u64)| sharded(("job.train.zero_stage", json!(stage)), devices);
        let all = more_devices(job).into_iter().flat_map(|n| stages.clone().map(move |stage| (n, stage)));
        Steps::Each(all.map(set).collect())
    }),
    lever("fsdp", "job.train.fsdp", Cost::Hardware, |job| {
        let none = job.train.fsdp.is_none() && job.train.zero_stage == 0;
        let all = more_devices(job).into_iter().filter(|_| none);
        Steps::Each(all.map(|n| sharded(("job.train.fsdp", json!("full_shard")), n)).collect())
    }),
    lever("device", "device.preset", Cost::Hardware, |job| each("device.preset", larger(&job.device))),
];

/// Micro-batches that divide the present one, the largest first, with the accumulation that keeps the batch of an
/// optimizer step.
fn smaller(job: &TrainVariant) -> Steps {
    let (now, passes) = (job.train.micro_batch, job.train.gradient_accumulation);
    let small: Vec<u64> = (1..=now.isqrt()).filter(|d| now % d == 0).collect();
    let mut all: Vec<u64> = small.iter().flat_map(|d| [*d, now / d]).filter(|d| *d < now).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    // Every so many of them, the last, 1, always among them.
    let stride = all.len().div_ceil(TRIED).max(1);
    let mut kept: Vec<u64> = all.iter().rev().step_by(stride).copied().collect();
    kept.reverse();
    let set = |n: u64| -> Vec<Change> {
        let raised = passes.saturating_mul(now / n);
        vec![("job.train.micro_batch", json!(n)), ("job.train.gradient_accumulation", json!(raised))]
    };
    Steps::Each(kept.into_iter().map(set).collect())
}

fn adapters() -> Vec<Change> {
    vec![("job.train.lora.rank", json!(RANK)), ("job.train.lora.targets", json!(ALL_LINEAR))]
}

/// Data-parallel ranks worth trying for a job that shards over them.
fn more_devices(job: &TrainVariant) -> Vec<u64> {
    let now = job.parallel.data;
    [2, 4, 8, 16].into_iter().filter(|n| *n >= now).collect()
}

fn sharded(first: Change, devices: u64) -> Vec<Change> {
    vec![first, ("parallel.data", json!(devices)), ("device.count", json!(devices))]
}
