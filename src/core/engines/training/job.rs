//! A training job as it is asked: what is accepted, warned about and fixed before a step runs.

use super::program::{Names, Program};
use super::settings::{FULL_SHARD, Precision, SHARD_GRAD_OP, TrainSettings};
use super::shards::Shards;
use super::style::style;
use crate::engines::transformers::layout::Layout;
use crate::engines::{CacheImpl, LogitsKept, ServeSettings};
use crate::hardware::Device;
use crate::memory::{Measured, Parallel, WeightsSpec};
use crate::model::{AttentionKind, Model};
use crate::units::{Message, Problem};
use std::cell::RefCell;

/// Everything that a training answer needs; borrowed, resolved and validated by `share`.
#[derive(Clone, Copy, Debug)]
pub struct TrainInputs<'a> {
    /// The model.
    pub model: &'a Model,
    /// The device.
    pub device: &'a Device,
    /// Parallelism.
    pub parallel: Parallel,
    /// Storage of weights.
    pub weights: &'a WeightsSpec,
    /// Settings of the step.
    pub train: &'a TrainSettings,
    /// Figures that replace modelled terms.
    pub measured: Measured,
}

/// Share by which transients of a class without a checked trace may be off, in percent.
pub(super) const UNTRACED_PERCENT: u64 = 15;

/// A job that can be run: its program and what a person should know.
pub(super) struct Job<'a> {
    pub(super) program: Program<'a>,
    pub(super) warnings: Vec<Message>,
    /// By how much transients may be off, in percent.
    pub(super) spread: u64,
}

/// The scheme of a quantised base that is modelled.
const NF4: &str = "bnb-nf4";

fn refused(field: &str, id: &'static str) -> Problem {
    Problem::new(field, Message::new(id).with("field", field))
}

impl<'a> Job<'a> {
    /// Checks what is modelled.
    pub(super) fn new(inputs: &TrainInputs<'a>) -> Result<Job<'a>, Problem> {
        let TrainInputs { model, train, .. } = *inputs;
        if !model.encoder_layers.is_empty() {
            let message = Message::new("transformers.encoder_decoder");
            return Err(Problem::new("model", message.with("model_type", model.model_type.as_str())));
        }
        if model.layers.iter().any(|l| matches!(l.attention.kind, AttentionKind::Recurrent(_))) {
            let message = Message::new("training.recurrent");
            return Err(Problem::new("model", message.with("model_type", model.model_type.as_str())));
        }
        not_yet(inputs)?;
        let (class, style) = style(model);
        if model.attention_sinks || class.dense_experts || class.biased_experts {
            let message = Message::new("training.class");
            return Err(Problem::new("model", message.with("model_type", model.model_type.as_str())));
        }
        let serve = ServeSettings {
            attention: Some(train.attention),
            logits: LogitsKept::All,
            cache: CacheImpl::None,
            padding_mask: train.padding_mask,
            ..ServeSettings::default()
        };
        let shards = Shards::new(model, train, inputs.parallel.data);
        // Sharded parameters are gathered in half precision, where that is asked for; autocast has nothing to do.
        let mixed = train.precision.mixed();
        let e = if shards.is_some() && mixed { 2 } else { train.precision.parameter_bytes() };
        let fast = (mixed && shards.is_none()).then_some(2);
        let mut warnings = Vec::new();
        if class.attention(&serve) != train.attention {
            let message = Message::new("transformers.no_sdpa");
            warnings.push(message.with("model_type", model.model_type.as_str()));
        }
        if model.vision.is_some() {
            warnings.push(Message::new("training.vision"));
        }
        if !class.traced {
            let message = Message::new("transformers.untraced");
            let message = message.with("model_type", model.model_type.as_str());
            warnings.push(message.with("percent", UNTRACED_PERCENT));
        }
        let spread = if class.traced { 0 } else { UNTRACED_PERCENT };
        let program = Program {
            model,
            class,
            style,
            train,
            layout: Layout::new(model, class, &serve, e),
            names: Names { up: "up_proj", down: "down_proj", output: "o_proj", qkv: "qkv_proj" },
            e,
            fast,
            shards,
            half_to_float: train.precision == Precision::Fp16Mixed,
            full_width_qk_norm: matches!(
                model.model_type.as_str(),
                "olmo2" | "olmo3" | "olmoe" | "minimax_m2"
            ),
            dropout: model.dropout,
            returned: RefCell::new(None),
            casts: RefCell::new(Vec::new()),
        };
        Ok(Job { program, warnings, spread })
    }
}

/// What is accepted by name but not modelled yet: told, not guessed.
fn not_yet(inputs: &TrainInputs<'_>) -> Result<(), Problem> {
    let TrainInputs { train, parallel, .. } = *inputs;
    let split = parallel.tensor > 1 || parallel.pipeline > 1 || parallel.expert > 1 || parallel.context > 1;
    if split {
        return Err(refused("parallel", "training.one_device"));
    }
    if let Some(fsdp) = &train.fsdp
        && ![FULL_SHARD, SHARD_GRAD_OP].contains(&fsdp.as_str())
    {
        let accepted = format!("null, {FULL_SHARD}, {SHARD_GRAD_OP}");
        return Err(Problem::not_accepted("job.train.fsdp", fsdp.as_str(), accepted));
    }
    if train.shards_parameters() && parallel.data > 1 && train.base_quantization.is_some() {
        return Err(refused("job.train.base_quantization", "training.sharded_base"));
    }
    if train.offload_optimizer {
        return Err(refused("job.train.offload_optimizer", "training.no_offload"));
    }
    if train.offload_params {
        return Err(refused("job.train.offload_params", "training.no_offload"));
    }
    if let Some(scheme) = &train.base_quantization {
        if scheme != NF4 {
            return Err(Problem::not_accepted("job.train.base_quantization", scheme.as_str(), NF4));
        }
        if train.lora.is_none() {
            return Err(refused("job.train.base_quantization", "training.frozen_base"));
        }
        if train.precision != Precision::Bf16 {
            return Err(Problem::not_accepted("job.train.precision", train.precision.id(), "bf16"));
        }
    }
    Ok(())
}
