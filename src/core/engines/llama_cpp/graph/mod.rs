//! The compute buffers: the graph of a batch, on which device each operation runs, and how ggml lays out the
//! results.
//!
//! Accuracy: against the engine's own allocator (tests/fixtures/llama_cpp/oracle.json, 244 jobs of 23 models on one to
//! four devices, devices, host and both) at most 0.01 %, nine in ten to the byte. Mamba 2 with its states on the host
//! (two jobs) misses by up to 39 % and is not among them. Older builds are the same graph with the rules of
//! `version`: CUDA and SYCL logs of 2024 and 2025 are met to the digit (logs.json). The fork ik_llama.cpp holds one
//! more row of the batch beside the logits in some versions (+2.6 to 3 % in four logs, -3.5 % in one), and its latent
//! attention (FlashMLA) is not replayed: logs print 884 to 13,569 MiB where this says less. Builds before 2024-03
//! lay graphs out differently (108 MiB printed, 137 here, for ggml-org/llama.cpp#4957).

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
