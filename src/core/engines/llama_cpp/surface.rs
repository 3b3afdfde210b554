//! The answer at many points.

use super::account::Account;
use super::ledger::{answer, load_stop, refusal};
use crate::engines::{Detail, Inputs, Point, Stop, Surface};
use crate::units::Problem;

/// Everything is reserved at start, so that a load only asks whether it has a slot, and room in it.
///
/// Without a given context a point stands for an engine started with the largest one that fits.
struct LlamaSurface {
    account: Account,
    peak: u64,
    high: u64,
    refused: bool,
}

/// The surface of a job.
///
/// Errors: as the ledger.
pub(super) fn surface(inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
    let account = Account::new(inputs, true)?;
    let ledger = answer(inputs, &account, Detail::Figures)?;
    let refused = refusal(&account).is_some();
    Ok(Box::new(LlamaSurface { peak: ledger.peak_bytes, high: ledger.peak.high, refused, account }))
}

impl Surface for LlamaSurface {
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point {
        let tokens = prompt.saturating_add(new);
        let s = &self.account.settings;
        let stop = if self.peak > self.account.total {
            Some(Stop::Device)
        } else if self.refused || sequences > s.seqs {
            Some(Stop::Option)
        } else if load_stop(&self.account, sequences, tokens).is_some() {
            // The context stops it: an option where it was given, else what the device holds.
            let own = s.explicit_context || self.account.reduced_from.is_none();
            Some(if own { Stop::Option } else { Stop::Pool })
        } else {
            None
        };
        let kv_bytes = self.account.occupied(sequences, tokens);
        Point { peak_bytes: self.peak, high_bytes: self.high, kv_bytes, fits: stop.is_none(), stop }
    }
}
