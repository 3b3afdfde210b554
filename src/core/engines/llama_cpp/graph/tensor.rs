//! Tensors of a compute graph, by shape alone: what ggml's allocator and scheduler look at.

/// Index of a tensor.
pub(super) type Id = usize;

/// What the allocator needs to know of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// No operation: weight, cache or input.
    Leaf,
    /// The result may take the place of an operand (`ggml_op_can_inplace` in ggml-alloc.c).
    InPlace,
    /// The result has its own place.
    Fresh,
    /// Another look at a tensor: no bytes.
    View,
    /// Writes into the tensor that it views.
    Into,
}

/// Where an operation runs at best; what a CUDA device refuses goes to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// Device or host.
    Anywhere,
    /// The device has no kernel for it.
    HostOnly,
}

/// One tensor.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) op: Op,
    pub(super) runs: Runs,
    /// Bytes of an element; quantised and opaque tensors are one row of bytes.
    pub(super) width: u64,
    /// Elements along each axis, innermost first.
    pub(super) ne: [u64; 4],
    /// Bytes between neighbours along each axis.
    pub(super) nb: [u64; 4],
    /// Scratch behind the result, on a device only.
    pub(super) scratch: u64,
    pub(super) src: Vec<Id>,
    /// The tensor that owns the bytes, where this is a view.
    pub(super) view_of: Option<Id>,
    pub(super) input: bool,
    /// Where the bytes lie already: weights and caches.
    pub(super) home: Option<usize>,
    pub(super) weight: bool,
    /// The backend that the model asks for.
    pub(super) wanted: Option<usize>,
    /// A rotary or attention operation: small operands do not choose its backend.
    pub(super) free_of_weights: bool,
}

impl Tensor {
    /// Bytes from the first to the last element.
    pub(super) fn bytes(&self) -> u64 {
        if self.ne.contains(&0) {
            return 0;
        }
        self.ne.iter().zip(self.nb).fold(self.width, |sum, (n, stride)| {
            sum.saturating_add(n.saturating_sub(1).saturating_mul(stride))
        })
    }

    pub(super) fn elements(&self) -> u64 {
        self.ne.iter().fold(1, |a, &n| a.saturating_mul(n))
    }

    /// Rows of the innermost axis.
    pub(super) fn rows(&self) -> u64 {
        self.elements() / self.ne[0].max(1)
    }

    pub(super) fn same_layout(&self, other: &Tensor) -> bool {
        self.width == other.width && self.ne == other.ne && self.nb == other.nb
    }
}

/// Strides of a contiguous tensor.
pub(super) fn contiguous(ne: [u64; 4], width: u64) -> [u64; 4] {
    let mut nb = [width; 4];
    for axis in 1..4 {
        nb[axis] = nb[axis - 1].saturating_mul(ne[axis - 1]);
    }
    nb
}

/// A graph: tensors and the order in which they are computed.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) tensors: Vec<Tensor>,
    /// Operations, in order.
    pub(super) nodes: Vec<Id>,
    /// Weights, caches and inputs that are used.
    pub(super) leaves: Vec<Id>,
    seen: Vec<bool>,
}

impl Graph {
    fn push(&mut self, tensor: Tensor) -> Id {
        self.tensors.push(tensor);
        self.seen.push(false);
        self.tensors.len() - 1
    }

    fn leaf(&mut self, ne: [u64; 4], width: u64) -> Id {
        self.push(Tensor {
            op: Op::Leaf,
            runs: Runs::Anywhere,
            width,
            ne,
            nb: contiguous(ne, width),
            scratch: 0,
            src: Vec::new(),
            view_of: None,
            input: false,
            home: None,
            weight: false,
            wanted: None,
            free_of_weights: false,
        })
    }

    /// An input of the graph, filled by the host.
    pub(super) fn input(&mut self, ne: [u64; 4], width: u64) -> Id {
        let id = self.leaf(ne, width);
        self.tensors[id].input = true;
        id
    }

    /// A weight of so many bytes that lies on `home`.
    pub(super) fn weight(&mut self, bytes: u64, home: usize) -> Id {
        let id = self.leaf([bytes, 1, 1, 1], 1);
        (self.tensors[id].home, self.tensors[id].weight) = (Some(home), true);
        id
    }

    /// A cache that lies on `home`.
    pub(super) fn cache(&mut self, bytes: u64, home: usize) -> Id {
        let id = self.leaf([bytes, 1, 1, 1], 1);
        self.tensors[id].home = Some(home);
        id
    }

    /// An operation with a result of its own.
    pub(super) fn op(&mut self, op: Op, src: &[Id], ne: [u64; 4], width: u64) -> Id {
        let id = self.leaf(ne, width);
        (self.tensors[id].op, self.tensors[id].src) = (op, src.to_vec());
        id
    }

    /// An elementwise operation shaped as its first operand.
    pub(super) fn like(&mut self, src: &[Id]) -> Id {
        let (ne, width) = (self.tensors[src[0]].ne, self.tensors[src[0]].width);
        self.op(Op::InPlace, src, ne, width)
    }

    /// A view with strides of its own.
    pub(super) fn view(&mut self, of: Id, ne: [u64; 4], nb: [u64; 4]) -> Id {
        let width = self.tensors[of].width;
        let id = self.op(Op::View, &[of], ne, width);
        self.tensors[id].nb = nb;
        self.tensors[id].view_of = Some(self.tensors[of].view_of.unwrap_or(of));
        id
    }

    /// The same elements in another shape.
    pub(super) fn reshape(&mut self, of: Id, ne: [u64; 4]) -> Id {
        let width = self.tensors[of].width;
        self.view(of, ne, contiguous(ne, width))
    }

    /// Axes in another order: axis `i` becomes axis `to[i]`.
    pub(super) fn permute(&mut self, of: Id, to: [usize; 4]) -> Id {
        let (ne, nb) = (self.tensors[of].ne, self.tensors[of].nb);
        let (mut new_ne, mut new_nb) = (ne, nb);
        for axis in 0..4 {
            (new_ne[to[axis]], new_nb[to[axis]]) = (ne[axis], nb[axis]);
        }
        self.view(of, new_ne, new_nb)
    }

    /// Rows written into a cache: a view of it.
    pub(super) fn store(&mut self, rows: Id, at: Option<Id>, cache: Id) -> Id {
        let (ne, nb) = (self.tensors[cache].ne, self.tensors[cache].nb);
        let id = self.view(cache, ne, nb);
        (self.tensors[id].op, self.tensors[id].src) =
            (Op::Into, [Some(rows), at, Some(cache)].into_iter().flatten().collect());
        id
    }

    /// Adds a tensor and what it needs to the order of computation, operands first.
    pub(super) fn expand(&mut self, id: Id) {
        if std::mem::replace(&mut self.seen[id], true) {
            return;
        }
        for index in 0..self.tensors[id].src.len() {
            self.expand(self.tensors[id].src[index]);
        }
        if self.tensors[id].op == Op::Leaf { self.leaves.push(id) } else { self.nodes.push(id) }
    }
}
