//! The training half of the Scenario document: one step, under the names that Hugging Face and PyTorch use.

use crate::engines::AttentionImpl;
use serde::{Deserialize, Serialize};

/// In which dtypes parameters, gradients and arithmetic are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precision {
    /// Everything in bf16.
    #[default]
    #[serde(rename = "bf16")]
    Bf16,
    /// fp32 parameters under `torch.autocast` to bf16.
    #[serde(rename = "bf16-mixed")]
    Bf16Mixed,
    /// fp32 parameters under `torch.autocast` to fp16, with loss scaling.
    #[serde(rename = "fp16-mixed")]
    Fp16Mixed,
    /// bf16 parameters and gradients beside fp32 master weights (Megatron, DeepSpeed).
    #[serde(rename = "bf16-master")]
    Bf16Master,
    /// Everything in fp32.
    #[serde(rename = "fp32")]
    Fp32,
}

impl Precision {
    /// The id in the Scenario document.
    pub const fn id(self) -> &'static str {
        match self {
            Precision::Bf16 => "bf16",
            Precision::Bf16Mixed => "bf16-mixed",
            Precision::Fp16Mixed => "fp16-mixed",
            Precision::Bf16Master => "bf16-master",
            Precision::Fp32 => "fp32",
        }
    }

    /// Bytes of a parameter that the model computes with.
    pub const fn parameter_bytes(self) -> u64 {
        match self {
            Precision::Bf16 | Precision::Bf16Master => 2,
            Precision::Bf16Mixed | Precision::Fp16Mixed | Precision::Fp32 => 4,
        }
    }

    /// Arithmetic runs in half precision on casts of fp32 parameters.
    pub const fn mixed(self) -> bool {
        matches!(self, Precision::Bf16Mixed | Precision::Fp16Mixed)
    }
}

/// Which optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// `torch.optim.AdamW`.
    #[default]
    Adamw,
    /// bitsandbytes `AdamW8bit`.
    Adamw8bit,
    /// bitsandbytes `PagedAdamW8bit`.
    PagedAdamw8bit,
    /// `Adafactor` without first moment.
    Adafactor,
    /// `torch.optim.SGD`.
    Sgd,
    /// `torch.optim.SGD` with momentum.
    SgdMomentum,
    /// Lion.
    Lion,
    /// `torch.optim.Muon` on matrices, AdamW on the rest.
    Muon,
}

/// How PyTorch runs the optimizer over many tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptimizerImpl {
    /// All tensors in one list: temporaries of every tensor at once.
    #[default]
    Foreach,
    /// One kernel, no temporaries.
    Fused,
    /// One tensor after the other.
    #[serde(alias = "forloop", alias = "for_loop")]
    Loop,
}

/// What is recomputed in the backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpointing {
    /// Nothing.
    #[default]
    None,
    /// Every layer (`gradient_checkpointing_enable`).
    Full,
    /// The attention core of every layer.
    Selective,
}

/// How the loss is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// transformers' own: logits upcast to fp32, then cross-entropy.
    #[default]
    Hf,
    /// Cross-entropy on logits in the model's dtype.
    Plain,
    /// Logits never materialised as a whole (Liger, Unsloth, cut cross-entropy).
    Fused,
    /// No cross-entropy: the mean of the logits in fp32.
    None,
}

/// Which linear layers get an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Targets {
    /// `all-linear`: every linear layer but the head.
    Named(String),
    /// Layers by the last part of their name, e.g. `q_proj`.
    Layers(Vec<String>),
}

impl Targets {
    /// Whether a layer of this name gets an adapter.
    pub fn hold(&self, name: &str) -> bool {
        match self {
            Targets::Named(all) => all == ALL_LINEAR,
            Targets::Layers(names) => names.iter().any(|n| n == name),
        }
    }
}

/// The name for every linear layer but the head.
pub const ALL_LINEAR: &str = "all-linear";

/// Low-rank adapters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// r: inner width.
    pub rank: u64,
    /// Which layers.
    pub targets: Targets,
}

/// Settings of a training job. `None` means: the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSettings {
    /// B: sequences of one forward pass on one device.
    pub micro_batch: u64,
    /// S: tokens of each sequence.
    pub seq_len: u64,
    /// Forward passes whose gradients are summed before the optimizer runs.
    pub gradient_accumulation: u64,
    /// Precision scheme.
    pub precision: Precision,
    /// Optimizer.
    pub optimizer: Optimizer,
    /// How it runs.
    pub optimizer_impl: OptimizerImpl,
    /// ZeRO stage.
    pub zero_stage: u64,
    /// FSDP variant.
    pub fsdp: Option<String>,
    /// Optimizer states in host memory.
    pub offload_optimizer: bool,
    /// Parameters in host memory.
    pub offload_params: bool,
    /// Elements of a reduce bucket.
    pub reduce_bucket_elements: u64,
    /// Recomputation.
    pub checkpointing: Checkpointing,
    /// Attention implementation.
    pub attention: AttentionImpl,
    /// Loss.
    pub loss: Loss,
    /// The caller keeps the model's outputs (the logits) through the backward pass.
    pub hold_outputs: bool,
    /// A mask with at least one padded position.
    pub padding_mask: bool,
    /// Adapters; the base is frozen.
    pub lora: Option<Lora>,
    /// Scheme of the frozen base's weights.
    pub base_quantization: Option<String>,
}

/// FSDP that shards parameters, gradients and optimizer states.
pub const FULL_SHARD: &str = "full_shard";
/// FSDP whose gathered parameters stay from forward to backward.
pub const SHARD_GRAD_OP: &str = "shard_grad_op";

impl TrainSettings {
    /// From which states on a rank holds a share: 0 none, 1 optimizer, 2 gradients as well, 3 parameters as well.
    pub fn stage(&self) -> u64 {
        if self.fsdp.is_some() { 3 } else { self.zero_stage }
    }

    /// Whether a rank holds a share of the parameters only.
    pub fn shards_parameters(&self) -> bool {
        self.stage() >= 3
    }
}

impl Default for TrainSettings {
    fn default() -> Self {
        TrainSettings {
            micro_batch: 1,
            seq_len: 2048,
            gradient_accumulation: 1,
            precision: Precision::Bf16,
            optimizer: Optimizer::Adamw,
            optimizer_impl: OptimizerImpl::Foreach,
            zero_stage: 0,
            fsdp: None,
            offload_optimizer: false,
            offload_params: false,
            reduce_bucket_elements: 500_000_000,
            checkpointing: Checkpointing::None,
            attention: AttentionImpl::Sdpa,
            loss: Loss::Hf,
            hold_outputs: true,
            padding_mask: false,
            lora: None,
            base_quantization: None,
        }
    }
}
