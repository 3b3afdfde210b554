//! What the caching allocator has handed out while a step runs: bytes by purpose, and the highest moment.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The caching allocator hands out multiples of this many bytes (`kMinBlockSize`).
pub(super) const BLOCK: u64 = 512;

/// What bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Parameters.
    Weights,
    /// Gradients of parameters.
    Gradients,
    /// fp32 copies of parameters.
    Master,
    /// States of the optimizer.
    States,
    /// Temporaries of the optimizer.
    OptimizerTransient,
    /// Kept for the backward pass.
    Saved,
    /// Forward and backward temporaries, and inputs.
    Activations,
    /// Scores and masks of eager attention that are not kept.
    Scores,
    /// Output of the vocabulary projection.
    Logits,
    /// Copies of the logits and their gradients.
    Loss,
    /// Made again while recomputing.
    Recompute,
    /// Gathered parameters, and buffers that gradients are reduced in.
    Gathered,
}

/// Kinds there are.
pub(super) const KINDS: usize = 12;

/// Bytes by kind.
pub(super) type ByKind = [u64; KINDS];

/// The highest moment of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) bytes: u64,
    pub(super) by: ByKind,
    /// The operator that had just allocated.
    pub(super) op: &'static str,
    /// The layer it belongs to, 0 outside the stack.
    pub(super) layer: u64,
}

#[derive(Debug, Default)]
struct State {
    now: u64,
    by: ByKind,
    peak: Moment,
    overflowed: bool,
}

/// The allocator.
#[derive(Debug, Default)]
pub(super) struct Pool {
    state: RefCell<State>,
    pub(super) layer: Cell<u64>,
}

/// One block; gives its bytes back when the last reference goes.
#[derive(Debug)]
pub(super) struct Storage {
    pool: Rc<Pool>,
    bytes: u64,
    kind: Cell<Kind>,
}

impl Pool {
    /// A block of at least `bytes`.
    pub(super) fn take(self: &Rc<Pool>, op: &'static str, bytes: u64, kind: Kind) -> Storage {
        let mut state = self.state.borrow_mut();
        let rounded = bytes.checked_next_multiple_of(BLOCK);
        let now = rounded.and_then(|b| state.now.checked_add(b));
        // A size beyond 64 bits counts as nothing; the step is refused at its end.
        let bytes = if let (Some(bytes), Some(now)) = (rounded, now) {
            state.now = now;
            bytes
        } else {
            state.overflowed = true;
            0
        };
        state.by[kind as usize] += bytes;
        if state.now > state.peak.bytes {
            state.peak = Moment { bytes: state.now, by: state.by, op, layer: self.layer.get() };
        }
        Storage { pool: Rc::clone(self), bytes, kind: Cell::new(kind) }
    }

    /// Starts a phase: the peak is what is alive now.
    pub(super) fn start(&self) {
        let mut state = self.state.borrow_mut();
        state.peak = Moment { bytes: state.now, by: state.by, op: "start", layer: 0 };
    }

    /// The highest moment since the last start.
    pub(super) fn peak(&self) -> Moment {
        self.state.borrow().peak
    }

    /// A figure left 64 bits.
    pub(super) fn overflowed(&self) -> bool {
        self.state.borrow().overflowed
    }
}

impl Storage {
    pub(super) fn kind(&self) -> Kind {
        self.kind.get()
    }

    /// Counts the block under another kind from now on.
    pub(super) fn set_kind(&self, kind: Kind) {
        let mut state = self.pool.state.borrow_mut();
        state.by[self.kind.get() as usize] -= self.bytes;
        state.by[kind as usize] += self.bytes;
        self.kind.set(kind);
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let mut state = self.pool.state.borrow_mut();
        state.now -= self.bytes;
        state.by[self.kind.get() as usize] -= self.bytes;
    }
}
