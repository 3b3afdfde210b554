//! What an offloaded cache keeps in host memory.

use super::job::Job;
use super::layout::Layout;
use super::steps::longest;
use crate::memory::{PhaseId, Provenance, Residency, Term, TermId, Working};

/// K and V of the layers that wait on the host, after the last step, in pinned memory: a copy to the host that
/// does not block is pinned, and PyTorch's host allocator rounds each block up to a power of two
/// (`CachingHostAllocator`). The low end is what the tensors hold.
pub(super) fn offloaded(job: &Job<'_>, layout: &Layout<'_>) -> Vec<Term> {
    let lengths = &layout.lengths;
    if !lengths.offloads() {
        return Vec::new();
    }
    let serve = job.serve;
    let (prompt, new) = (serve.prompt_tokens, serve.new_tokens);
    let tokens =
        if lengths.fixed() { longest(serve.max_model_len, prompt, new) } else { prompt.saturating_add(new) };
    let rows = serve.sequences.saturating_mul(lengths.rows);
    let of = |width: u64| width.saturating_mul(layout.kv_element).saturating_mul(tokens).saturating_mul(rows);
    let leaving = layout.kept.iter().flatten().filter(|s| lengths.leaves(s.slot));
    let tensors: Vec<u64> = leaving.flat_map(|s| [of(s.key), of(s.value)]).collect();
    let low = tensors.iter().fold(0, |sum: u64, b| sum.saturating_add(*b));
    let rounded = |b: &u64| b.checked_next_power_of_two().unwrap_or(u64::MAX);
    let bytes = tensors.iter().map(rounded).fold(0, u64::saturating_add);
    vec![Term {
        id: TermId::KvCache,
        bytes,
        low,
        high: bytes,
        residency: Residency::Resident,
        phases: vec![PhaseId::Prefill, PhaseId::Decode, PhaseId::Sampling],
        provenance: Provenance::Bounded,
        source: "transformers 5.24 cache_utils.py, CacheLayerMixin.offload",
        working: Working::new("Σ layers 2^⌈log2(B · H_kv · T · D · e)⌉", bytes)
            .with("layers", tensors.len() as u64 / 2, "layers")
            .with("B", rows, "sequences")
            .with("T", tokens, "tokens")
            .with("e", layout.kv_element, "B/element"),
    }]
}
