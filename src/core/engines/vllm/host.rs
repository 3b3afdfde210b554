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
    if costs.settings.version.v1 {
        return Vec::new();
    }
    let space = inputs.serve.swap_space_bytes.unwrap_or(SWAP_SPACE);
    let block = costs.layout.block_bytes;
    let blocks = space / block;
    if blocks == 0 {
        return Vec::new();
    }
    let working = Working::new("floor(swap space / block) · block", 0)
        .with("swap space", space, "B")
        .with("block", block, "B")
        .with("blocks", blocks, "blocks");
    let span = Span::exactly(blocks * block);
    let term = row(TermId::KvCache, span, Residency::ReservedPool, SERVING, working);
    vec![Term { provenance: Provenance::Exact, ..term }]
}
