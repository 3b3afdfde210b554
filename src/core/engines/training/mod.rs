//! Training: every byte of one step of a Hugging Face model on one device, alone or one of data-parallel ranks.
//!
//! `graph` is a small autograd over tensors without values (`tensor`, `pool`), `ops`, `kernels` and `norms` are
//! PyTorch's operators with what each keeps for backward, `program`, `attention`, `feed_forward`, `experts`, `decoder`
//! and `head` write the modelling code with them, `shards` gathers and scatters, `states` and `optimizer` know what
//! stays, `step` runs it all, and `ledger` reads the peaks off. transformers 5.24, torch 2.15, peft 0.21.

mod attention;
mod checkpoint;
mod decoder;
mod experts;
mod feed_forward;
mod graph;
mod head;
mod job;
mod kernels;
mod latent;
mod ledger;
mod norms;
mod ops;
mod optimizer;
mod pool;
mod program;
mod rotary;
mod settings;
mod shards;
mod states;
mod step;
mod style;
mod tensor;

pub use job::TrainInputs;
pub use ledger::{ledger, peak_bytes};
pub use settings::{
    ALL_LINEAR, Checkpointing, Lora, Loss, Optimizer, OptimizerImpl, Precision, Targets, TrainSettings,
};
