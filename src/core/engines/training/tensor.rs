//! Tensors without values: storage counted by reference, and where their gradient goes.

use super::pool::{Kind, Storage};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A tensor's storage with its size: elements, and bytes of each.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) storage: Rc<Storage>,
    pub(super) n: u64,
    pub(super) e: u64,
    /// Memory goes head by head ([B, H, S, D]) where the projections want token by token.
    pub(super) heads_first: bool,
}

impl Data {
    /// Counts the storage as kept for backward, if it only was a temporary.
    pub(super) fn keep(&self) {
        if matches!(self.storage.kind(), Kind::Activations | Kind::Scores) {
            self.storage.set_kind(Kind::Saved);
        }
    }

    pub(super) fn set_kind(&self, kind: Kind) {
        self.storage.set_kind(kind);
    }
}

/// Where a gradient goes.
#[derive(Clone, Debug)]
pub(super) enum Edge {
    /// Output `1` of node `0`.
    Node(usize, usize),
    /// A parameter.
    Leaf(Rc<Leaf>),
}

/// A parameter that takes a gradient.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) e: u64,
    /// Its gradient stays for the optimizer; that of an activation goes with the graph.
    pub(super) stays: bool,
    /// Uses whose gradients have not come yet.
    pub(super) pending: Cell<u64>,
    pub(super) buffer: RefCell<Option<Data>>,
}

/// A tensor as the modelling code sees it.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) data: Data,
    pub(super) edge: Option<Edge>,
}

impl Tensor {
    /// Whether a gradient flows back through it.
    pub(super) fn tracked(&self) -> bool {
        self.edge.is_some()
    }

    /// A tensor without history.
    pub(super) fn plain(data: Data) -> Tensor {
        Tensor { data, edge: None }
    }

    /// The same storage, seen as `n` elements (a view of a part, or another shape).
    pub(super) fn viewed(&self, n: u64) -> Tensor {
        Tensor { data: Data { n, ..self.data.clone() }, edge: self.edge.clone() }
    }
}
