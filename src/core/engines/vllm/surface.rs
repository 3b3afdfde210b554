//! The answer at many points: sequences times tokens.

use super::costs::Costs;
use super::ledger::answer;
use super::refusal::starts;
use crate::engines::{Detail, Inputs, Point, Stop, Surface};
use crate::units::Problem;

/// Costs resolved once. The pool is reserved at start, so the peak does not move with the load; only what the load
/// occupies of the pool does.
///
/// A point asks for an engine started with the given `max_model_len`, or, where none is given, started for
/// requests of exactly the point's tokens (not more than the model knows).
struct VllmSurface {
    costs: Costs,
    longest: u64,
    peak: u64,
    high: u64,
    /// With an explicit length, whether the engine starts does not depend on the point.
    starts: Option<bool>,
    over_device: bool,
}

/// The surface of a job.
///
/// Errors: as the ledger.
pub(super) fn surface(inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
    let (costs, weights) = Costs::new(inputs, Detail::Figures)?;
    let ledger = answer(inputs, &costs, weights, Detail::Figures)?;
    let explicit = costs.settings.explicit_len;
    Ok(Box::new(VllmSurface {
        longest: costs.settings.max_len,
        peak: ledger.peak_bytes,
        high: ledger.peak.high,
        starts: explicit.then(|| starts(&costs, costs.settings.max_len)),
        over_device: costs.impossible(ledger.peak_bytes, ledger.peak.low),
        costs,
    }))
}

impl Surface for VllmSurface {
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point {
        let tokens = prompt.saturating_add(new);
        let len = if self.starts.is_some() { self.longest } else { tokens.max(1) };
        let load = self.costs.load_blocks(sequences, tokens, len);
        let stop = if self.over_device {
            Some(Stop::Device)
        } else if tokens > self.longest || sequences > self.costs.settings.max_seqs {
            Some(Stop::Option)
        } else if load > self.costs.blocks(self.costs.available(len))
            || !self.starts.unwrap_or_else(|| starts(&self.costs, len))
        {
            Some(Stop::Pool)
        } else {
            None
        };
        let kv_bytes = load.saturating_mul(self.costs.layout.block_bytes);
        Point { peak_bytes: self.peak, high_bytes: self.high, kv_bytes, fits: stop.is_none(), stop }
    }
}
