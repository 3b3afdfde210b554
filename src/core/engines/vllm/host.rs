//! What a worker keeps in host memory.

use super::costs::Costs;
use super::profile::Span;
use crate::engines::Inputs;
use crate::engines::pooled::{SERVING, row};
use crate::memory::{Provenance, Residency, Term, TermId, Working};
use crate::units::Bytes;

/// V0's `--swap-space` where none is given, for each device (`CacheConfig.swap_space`).
const SWAP_SPACE: u64 = 4 * Bytes::GIB;

/// Rows of the host: CPU blocks of V0 (`CacheEngine`, `num_cpu_blocks = swap_space // block`). V1 recomputes
/// preempted requests and has none.
pub(super) fn host(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Term> {
    let mut out = Vec::new();
    out.extend(weights(inputs, costs));
    if costs.settings.version.v1 {
        return out;
    }
    let space = inputs.serve.swap_space_bytes.unwrap_or(SWAP_SPACE);
    let block = costs.layout.block_bytes;
    let blocks = space / block;
    if blocks == 0 {
        return out;
    }
    let working = Working::new("floor(swap space / block) · block", 0)
        .with("swap space", space, "B")
        .with("block", block, "B")
        .with("blocks", blocks, "blocks");
    let span = Span::exactly(blocks * block);
    let term = row(TermId::KvCache, span, Residency::ReservedPool, SERVING, working);
    out.push(Term { provenance: Provenance::Exact, ..term });
    out
}

/// Weights that `--cpu-offload-gb` keeps there, or all of them while the engine sleeps at level 1.
fn weights(inputs: &Inputs<'_>, costs: &Costs) -> Option<Term> {
    let asleep = inputs.serve.sleep_level == Some(1);
    let kept = if asleep { costs.weights.point } else { 0 };
    let add = |end: u64| end.saturating_add(kept);
    let moved = costs.offloaded;
    let span = Span { point: add(moved.point), low: add(moved.low), high: add(moved.high) };
    if span.high == 0 {
        return None;
    }
    let working = Working::new("cpu_offload_bytes + weights while asleep", 0)
        .with("cpu_offload_bytes", moved.point, "B")
        .with("weights while asleep", kept, "B");
    let term = row(TermId::Weights, span, Residency::Resident, SERVING, working);
    Some(Term { provenance: Provenance::Bounded, ..term })
}
