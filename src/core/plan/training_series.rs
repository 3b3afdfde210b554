//! Memory of a training step against sequence length and micro-batch.

use super::limits::{largest, largest_throughout};
use super::projection::{Axis, Sample, Series};
use crate::engines::training::{self, TrainInputs, TrainSettings};
use crate::memory::{self, Ledger, TermId, Verdict};
use crate::units::Problem;

/// Longest sequence shown where the model states no length.
const LONG: u64 = 1 << 17;

/// Memory of the fullest phase against `axis` (tokens of a sequence, or sequences of a micro-batch), in about
/// `samples` samples, the crossing point and its neighbour among them.
///
/// Errors: what is not modelled.
pub fn training_series(inputs: &TrainInputs<'_>, axis: Axis, samples: usize) -> Result<Series, Problem> {
    let at = |x: u64| {
        let mut train = inputs.train.clone();
        match axis {
            Axis::Tokens => train.seq_len = x,
            Axis::Sequences => train.micro_batch = x,
        }
        train
    };
    let ask = |train: &TrainSettings| training::ledger(&TrainInputs { train, ..*inputs });
    let total = inputs.device.total_bytes;
    let fits = |x: u64| {
        let train = at(x);
        training::peak_bytes(&TrainInputs { train: &train, ..*inputs }).is_ok_and(|peak| peak <= total)
    };
    let here = match axis {
        Axis::Tokens => inputs.train.seq_len,
        Axis::Sequences => inputs.train.micro_batch,
    };
    let longest = match inputs.model.max_position_embeddings {
        0 => LONG,
        n => n,
    };
    let (most, crossing) = match axis {
        Axis::Tokens => (longest.max(here), largest_throughout(longest.max(here), fits)),
        Axis::Sequences => {
            let fit = largest(1 << 16, fits);
            (fit.saturating_mul(2).clamp(8, 1 << 16).max(here.saturating_mul(2)), fit)
        }
    };
    let crossing = Some(crossing).filter(|x| *x > 0 && *x < most);
    // What lies far beyond the crossing would only squeeze the part that matters.
    let most = match (axis, crossing) {
        (Axis::Tokens, Some(x)) => most.min(x.saturating_mul(3).max(here.saturating_mul(2))),
        (Axis::Tokens, None) if !fits(1) => most.min(here.saturating_mul(4)),
        _ => most,
    };
    let n = samples.max(2) as u64;
    let part = |i: u64| (u128::from(most.saturating_sub(1)) * u128::from(i) / u128::from(n - 1)) as u64;
    let mut xs: Vec<u64> = (0..n).map(|i| 1 + part(i)).collect();
    xs.push(here.min(most));
    if let Some(x) = crossing {
        xs.extend([x, x + 1]);
    }
    xs.sort_unstable();
    xs.dedup();
    let ledgers = xs.iter().map(|x| Ok((*x, ask(&at(*x))?))).collect::<Result<Vec<_>, Problem>>()?;
    let present = |id: &TermId| ledgers.iter().any(|(_, l)| at_peak(l, *id) > 0);
    let terms: Vec<TermId> = TermId::ALL.iter().copied().filter(present).collect();
    let (device_total, budget) =
        ledgers.first().map_or((0, 0), |(_, l)| (l.device.total_bytes, l.device.budget_bytes));
    let samples = ledgers
        .into_iter()
        .map(|(x, ledger)| Sample {
            x,
            terms: terms.iter().map(|id| at_peak(&ledger, *id)).collect(),
            total: ledger.peak_bytes,
            low: ledger.peak.low,
            high: ledger.peak.high,
            used: 0,
            fits: ledger.verdict != Verdict::DoesNotFit,
        })
        .collect();
    Ok(Series { axis, terms, samples, device_total, budget, crossing, here })
}

/// Bytes of all rows of the term that are alive in the highest phase.
fn at_peak(ledger: &Ledger, id: TermId) -> u64 {
    memory::at_peak(&ledger.terms, &ledger.phases).filter(|t| t.id == id).map(|t| t.bytes).sum()
}
