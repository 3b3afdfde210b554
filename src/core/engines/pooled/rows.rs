//! Rows of a ledger and its phases.

use super::Span;
use crate::memory::{Phase, PhaseId, Provenance, Residency, Term, TermId, Working};

/// Phases of serving.
pub(in crate::engines) const SERVING: &[PhaseId] =
    &[PhaseId::Load, PhaseId::Warmup, PhaseId::Prefill, PhaseId::Decode, PhaseId::Sampling];
/// Phases once the weights are there.
pub(in crate::engines) const STARTED: &[PhaseId] =
    &[PhaseId::Warmup, PhaseId::Prefill, PhaseId::Decode, PhaseId::Sampling];
/// Phases once the pool exists.
pub(in crate::engines) const RUNNING: &[PhaseId] = &[PhaseId::Prefill, PhaseId::Decode, PhaseId::Sampling];

/// A row that is a rule of thumb until its maker says otherwise.
pub(in crate::engines) fn row(
    id: TermId,
    span: Span,
    residency: Residency,
    phases: &[PhaseId],
    working: Working,
) -> Term {
    Term {
        id,
        bytes: span.point,
        low: span.low,
        high: span.high,
        residency,
        phases: phases.to_vec(),
        provenance: Provenance::RuleOfThumb,
        source: "",
        working: Working { result: span.point, ..working },
    }
}

/// The same row as read from a log or a measurement.
pub(in crate::engines) fn measured(term: Term, source: &'static str) -> Term {
    Term { provenance: Provenance::Measured, source, ..term }
}

/// What other processes hold; none where they hold nothing.
pub(in crate::engines) fn other_processes(bytes: u64) -> Option<Term> {
    (bytes > 0).then(|| {
        let span = Span::exactly(bytes);
        let term =
            row(TermId::OtherProcesses, span, Residency::Resident, SERVING, Working::new("as given", 0));
        measured(term, "device.other_processes_bytes")
    })
}

/// Buffers of collectives; none where there is one rank.
pub(in crate::engines) fn communication(span: Span, ranks: u64) -> Option<Term> {
    (span.point > 0).then(|| {
        let working = Working::new("observed", 0).with("ranks", ranks, "");
        let term = row(TermId::Communication, span, Residency::Resident, SERVING, working);
        Term { source: "as for vLLM: NCCL", ..term }
    })
}

/// The peak of a phase: everything alive in it, and what of it the framework's allocator handed out.
pub(in crate::engines) fn phase(id: PhaseId, terms: &[Term]) -> Phase {
    let alive = || terms.iter().filter(|t| t.phases.contains(&id));
    let allocator = |t: &&Term| {
        matches!(
            t.id,
            TermId::Weights
                | TermId::KvCache
                | TermId::RecurrentState
                | TermId::Activations
                | TermId::Sampling
                | TermId::Encoder
                | TermId::Logits
                | TermId::Adapter
                | TermId::DraftModel
        )
    };
    Phase {
        id,
        peak_bytes: alive().map(|t| t.bytes).sum(),
        allocated_bytes: alive().filter(allocator).map(|t| t.bytes).sum(),
    }
}
