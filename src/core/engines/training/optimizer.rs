//! Optimizers: what each keeps for a tensor, and the temporaries of its widest moment.

use super::pool::BLOCK;
use super::settings::{Optimizer, OptimizerImpl, TrainSettings};
use super::states::{Held, rounded};
use crate::memory::training::{EIGHT_BIT_BLOCK, EIGHT_BIT_MAPS, EIGHT_BIT_MINIMUM, PAGED_MINIMUM};

/// Bytes of an optimizer's state that no tensor has to itself.
pub(super) fn fixed(optimizer: Optimizer) -> u64 {
    match optimizer {
        Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit => EIGHT_BIT_MAPS,
        _ => 0,
    }
}

/// Bytes of an optimizer's state for one tensor, and how many of them are paged.
pub(super) fn state(train: &TrainSettings, h: &Held, e: u64) -> (u64, u64) {
    let whole = rounded(h.elements, e);
    // A fused AdamW keeps its step counters on the device.
    let counter = if train.optimizer_impl == OptimizerImpl::Fused { BLOCK } else { 0 };
    let adamw = whole.saturating_mul(2).saturating_add(counter);
    match train.optimizer {
        Optimizer::Adamw => (adamw, 0),
        Optimizer::SgdMomentum | Optimizer::Lion => (whole, 0),
        Optimizer::Sgd => (0, 0),
        Optimizer::Muon => (if h.hidden_matrix { whole } else { adamw }, 0),
        Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit => {
            if h.elements < EIGHT_BIT_MINIMUM {
                return (rounded(h.elements, 4).saturating_mul(2), 0);
            }
            let quantised = rounded(h.elements, 1).saturating_mul(2);
            let scales = rounded(h.elements.div_ceil(EIGHT_BIT_BLOCK), 4).saturating_mul(2);
            let paged = train.optimizer == Optimizer::PagedAdamw8bit && h.elements >= PAGED_MINIMUM;
            (quantised.saturating_add(scales), if paged { quantised } else { 0 })
        }
        // fp32 always; the root mean square of the parameter is a tensor of one element.
        Optimizer::Adafactor => (factors(h).unwrap_or(rounded(h.elements, 4)).saturating_add(BLOCK), 0),
    }
}

/// Bytes of Adafactor's row and column statistics of a matrix; none for a vector.
fn factors(h: &Held) -> Option<u64> {
    let rows = rounded(h.rows.saturating_mul(h.stack), 4);
    let columns = rounded(h.columns.saturating_mul(h.stack), 4);
    (h.rows > 1 && h.columns > 1).then(|| rows.saturating_add(columns))
}

/// The widest moment of an optimizer's step.
pub(super) struct Transients {
    optimizer: Optimizer,
    implementation: OptimizerImpl,
    /// Of one tensor.
    largest: u64,
    /// Of all tensors that are updated as one list.
    together: u64,
}

impl Transients {
    pub(super) fn new(train: &TrainSettings) -> Transients {
        Transients {
            optimizer: train.optimizer,
            implementation: train.optimizer_impl,
            largest: 0,
            together: 0,
        }
    }

    /// Counts the tensors of one shape.
    pub(super) fn add(&mut self, h: &Held, e: u64) {
        let whole = rounded(h.elements, e);
        let own = match self.optimizer {
            Optimizer::Adamw => return self.adamw(whole, h.count),
            Optimizer::Muon if !h.hidden_matrix => return self.adamw(whole, h.count),
            Optimizer::Muon => {
                // The update; two iterates in bf16; their Gram matrix and its polynomial.
                let side = h.rows.min(h.columns);
                let iterate = rounded(h.elements, 2);
                let gram = rounded(side.saturating_mul(side), 2);
                whole.saturating_add(iterate.saturating_add(gram).saturating_mul(2))
            }
            // The interpolated momentum and its sum with the gradient.
            Optimizer::Lion => whole.saturating_mul(2),
            // fp32: the squared gradient and the update; before them copies of gradient and parameter in half
            // precision; the factors of the update.
            Optimizer::Adafactor => {
                let wide = rounded(h.elements, 4).saturating_mul(if e < 4 { 4 } else { 2 });
                wide.saturating_add(factors(h).unwrap_or(0))
            }
            Optimizer::Sgd | Optimizer::SgdMomentum | Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit => 0,
        };
        self.largest = self.largest.max(own);
    }

    /// AdamW's square root: of every tensor at once, or of one beside its quotient, or none.
    fn adamw(&mut self, whole: u64, count: u64) {
        match self.implementation {
            OptimizerImpl::Foreach => {
                self.together = self.together.saturating_add(whole.saturating_mul(count));
            }
            OptimizerImpl::Loop => self.largest = self.largest.max(whole.saturating_mul(2)),
            OptimizerImpl::Fused => {}
        }
    }

    pub(super) fn widest(&self) -> u64 {
        self.largest.max(self.together)
    }
}
