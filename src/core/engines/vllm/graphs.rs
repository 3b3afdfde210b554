//! CUDA graphs: the one term that no shape gives.

use super::profile::Span;
use super::settings::Settings;
use crate::engines::Inputs;

const MIB: u64 = 1 << 20;

/// Where the band was read.
pub(super) const SOURCE: &str = "vLLM start-up lines \"Graph capturing finished … took\" and the estimates of 0.21 and later (n=24): median 0.5 GiB; one rank -0.88 to 1.15, several ranks -0.42 to 2.60; differences of free memory may be negative";

/// Bytes of captured graphs and their private pool; nothing under `--enforce-eager`.
///
/// Observed: one rank 0.04 to 1.15 GiB, two and more up to 2.60 GiB (0.10.0, eight ranks, 67 sizes); a difference
/// of free memory before and after, so it may even be negative, which is clamped here. `calib` probe `graphs`
/// re-measures it.
pub(super) fn graphs(inputs: &Inputs<'_>, s: &Settings) -> Span {
    if let Some(bytes) = inputs.measured.cuda_graph_bytes {
        return Span::exactly(bytes);
    }
    if s.eager {
        return Span::default();
    }
    if inputs.parallel.tensor > 1 {
        Span { point: 800 * MIB, low: 0, high: 2662 * MIB }
    } else {
        Span { point: 450 * MIB, low: 0, high: 1178 * MIB }
    }
}
