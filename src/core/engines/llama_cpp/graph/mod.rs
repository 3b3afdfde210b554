//! The compute buffers: the graph of a batch, on which device each operation runs, and how ggml lays out the
//! results.

mod alloc;
mod build;
mod experts;
mod latent;
mod mixer;
mod recurrent;
mod sched;
mod tensor;

use super::parts::Layout;
use super::settings::Settings;
use crate::model::Model;
use build::Job;
pub(super) use mixer::row;
use sched::{Backends, compute_buffers};

/// Copies of inputs when devices work on different batches (`GGML_SCHED_MAX_COPIES`).
const COPIES: usize = 4;

/// Bytes of the compute buffer of every device, and of the host's last.
pub(super) fn buffers(model: &Model, settings: &Settings, layout: &Layout) -> Vec<u64> {
    let tokens = settings.ubatch.min(settings.context).max(1);
    let tokens = tokens.checked_next_multiple_of(settings.seqs).unwrap_or(tokens);
    let outputs = settings.outputs.min(tokens).max(1);
    let job = Job { model, settings, layout, tokens, outputs, host: settings.devices };
    let (mut graph, keep) = build::graph(job);
    let copies = if settings.pipeline(layout) { COPIES } else { 1 };
    let backends =
        Backends { devices: settings.devices, copies, offload_op: settings.build.offloads_operations() };
    compute_buffers(&mut graph, backends, &keep)
}
