//! The ledger against what the device showed: what its rows do not explain is a row of its own.

use crate::memory::{Ledger, PhaseId, Provenance, Range, Residency, Term, TermId, Verdict, Working};
use crate::units::{Bytes, Message};

/// Closes `ledger` to `used` bytes, as nvidia-smi showed them for the whole device at its fullest.
///
/// What was seen above the highest peak becomes the term `unexplained`, alive in every phase; a reading cannot be
/// taken apart, so the ledger's range then ends in it. A reading below the peak adds no row: a sentence says by how
/// much the accounting is above it.
pub(super) fn close(ledger: &mut Ledger, used: u64) {
    let peak = ledger.peak_bytes;
    let Some(more) = used.checked_sub(peak).filter(|n| *n > 0) else {
        if used < peak {
            let message = Message::new("plan.used_below").with("used", Bytes(used)).with("peak", Bytes(peak));
            ledger.warnings.push(message.with("less", Bytes(peak - used)));
        }
        return;
    };
    let phases: Vec<PhaseId> = ledger.phases.iter().map(|p| p.id).collect();
    let working = Working::new("device_used_bytes − peak", more)
        .with("device_used_bytes", Bytes(used), "B")
        .with("peak", Bytes(peak), "B");
    match ledger.terms.iter_mut().find(|t| t.id == TermId::Unexplained) {
        Some(term) => {
            term.bytes += more;
            (term.low, term.high) = (term.low + more, term.high + more);
            term.phases = phases;
            term.working.result = term.bytes;
            term.working.parts.push(crate::memory::Part {
                label: "measured.device_used".into(),
                detail: "device_used_bytes − peak".to_owned(),
                bytes: more,
            });
        }
        None => ledger.terms.push(Term {
            id: TermId::Unexplained,
            bytes: more,
            low: more,
            high: more,
            residency: Residency::Resident,
            phases,
            provenance: Provenance::Measured,
            source: "measured.device_used_bytes",
            working,
        }),
    }
    for phase in &mut ledger.phases {
        phase.peak_bytes = phase.peak_bytes.saturating_add(more);
    }
    ledger.peak_bytes = used;
    ledger.peak = Range { low: used, high: used };
    if used > ledger.device.total_bytes {
        ledger.verdict = Verdict::DoesNotFit;
    }
}
