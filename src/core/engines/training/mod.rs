//! Training: every byte of one step of a Hugging Face model on one device.
//!
//! `graph` is a small autograd over tensors without values, `ops`, `kernels` and `program` are PyTorch's operators
//! with what each keeps for backward, `attention`, `feed_forward`, `decoder` and `head` write the modelling code with
//! them, `step` runs it, and `ledger` reads the peaks off.

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
mod states;
mod step;
mod style;
mod tensor;

pub use job::TrainInputs;
pub use ledger::{ledger, peak_bytes};
pub use settings::{
    ALL_LINEAR, Checkpointing, Lora, Loss, Optimizer, OptimizerImpl, Precision, Targets, TrainSettings,
};
