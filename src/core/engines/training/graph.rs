//! A small autograd: tensors without values, what each operator keeps for backward, and the backward engine.
//!
//! Storage is counted by reference, as in PyTorch: a tensor's bytes go back when the last variable, saved
//! tensor or gradient buffer that names it is dropped. So code written with these operators in the order of the
//! modelling code holds what that code holds.

use super::pool::{Kind, Pool};
pub(super) use super::tensor::{Data, Tensor};
use super::tensor::{Edge, Leaf};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Gradients by output or input of a node.
pub(super) type Grads = Vec<Option<Data>>;
type Run<'a> = Box<dyn FnOnce(&Graph<'a>, Grads) -> Grads + 'a>;

pub(super) struct Node<'a> {
    run: Option<Run<'a>>,
    edges: Vec<Option<Edge>>,
    /// Gradient, and bytes per element, of each output.
    buffers: Vec<Option<Data>>,
    kinds: Vec<u64>,
}

/// How a step is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Gradients exist already: each new one is added and dropped.
    pub(super) accumulated: bool,
    /// A second gradient of a tensor is added into the first where nobody else holds it; else into a new one.
    pub(super) in_place_sums: bool,
    /// Whole gradients are there only until they have been scattered over the ranks.
    pub(super) scattered: bool,
    /// Dropout is one kernel with a mask of one byte; else noise in the input's dtype and a product.
    pub(super) fused_dropout: bool,
}

/// The graph of one step.
pub(super) struct Graph<'a> {
    pub(super) pool: Rc<Pool>,
    pub(super) nodes: RefCell<Vec<Node<'a>>>,
    /// Operators are recorded (`torch.is_grad_enabled`).
    pub(super) recording: Cell<bool>,
    /// Saved tensors counted since a checkpoint began, and the one at which recomputation stops.
    pub(super) saves: Cell<u64>,
    pub(super) stop_at: Cell<Option<u64>>,
    pub(super) stopped: Cell<bool>,
    /// Kind of new blocks.
    pub(super) kind: Cell<Kind>,
    /// Gradients of parameters.
    gradients: RefCell<Vec<Data>>,
    pub(super) rules: Rules,
}

impl<'a> Graph<'a> {
    pub(super) fn new(pool: &Rc<Pool>, rules: Rules) -> Graph<'a> {
        Graph {
            pool: Rc::clone(pool),
            nodes: RefCell::new(Vec::with_capacity(1024)),
            recording: Cell::new(true),
            saves: Cell::new(0),
            stop_at: Cell::new(None),
            stopped: Cell::new(false),
            kind: Cell::new(Kind::Activations),
            gradients: RefCell::new(Vec::new()),
            rules,
        }
    }

    /// A new block of `n` elements of `e` bytes.
    pub(super) fn new_data(&self, op: &'static str, n: u64, e: u64) -> Data {
        let bytes = if self.stopped.get() { 0 } else { n.saturating_mul(e) };
        let storage = Rc::new(self.pool.take(op, bytes, self.kind.get()));
        Data { storage, n, e, heads_first: false }
    }

    /// A new block shaped and laid out like `like`, in elements of `e` bytes.
    pub(super) fn new_like(&self, op: &'static str, like: &Data, e: u64) -> Data {
        Data { heads_first: like.heads_first, ..self.new_data(op, like.n, e) }
    }

    /// A tensor that needs no gradient.
    pub(super) fn constant(&self, op: &'static str, n: u64, e: u64) -> Tensor {
        Tensor { data: self.new_data(op, n, e), edge: None }
    }

    /// A parameter of `n` elements; its own bytes are counted elsewhere.
    pub(super) fn parameter(&self, n: u64, e: u64, trained: bool) -> Tensor {
        let storage = Rc::new(self.pool.take("parameter", 0, Kind::Weights));
        let leaf = || {
            Edge::Leaf(Rc::new(Leaf { e, stays: true, pending: Cell::new(0), buffer: RefCell::new(None) }))
        };
        Tensor { data: Data { storage, n, e, heads_first: false }, edge: trained.then(leaf) }
    }

    /// Whether an operator on these inputs is recorded.
    pub(super) fn records(&self, inputs: &[&Tensor]) -> bool {
        self.recording.get() && inputs.iter().any(|t| t.tracked())
    }

    /// Keeps a tensor for backward. With a checkpoint's stop reached, nothing is made any more.
    pub(super) fn save(&self, data: &Data) -> Data {
        data.keep();
        let count = self.saves.get() + 1;
        self.saves.set(count);
        if self.stop_at.get() == Some(count) {
            self.stopped.set(true);
        }
        data.clone()
    }

    /// Whether a tensor that `needed` says backward needs is kept; counts it.
    pub(super) fn save_if(&self, needed: bool, data: &Data) -> Option<Data> {
        needed.then(|| self.save(data))
    }

    /// Records a node with one output.
    pub(super) fn node(
        &self,
        data: Data,
        inputs: &[&Tensor],
        run: impl FnOnce(&Graph<'a>, Data) -> Grads + 'a,
    ) -> Tensor {
        let run: Run<'a> = Box::new(move |graph, mut grads| match grads.pop().flatten() {
            Some(grad) => run(graph, grad),
            None => Vec::new(),
        });
        let [out] = self.nodes_of([data], inputs, run);
        out
    }

    /// Records a node with several outputs.
    pub(super) fn nodes_of<const N: usize>(
        &self,
        outputs: [Data; N],
        inputs: &[&Tensor],
        run: Run<'a>,
    ) -> [Tensor; N] {
        let edges: Vec<_> = inputs.iter().map(|t| t.edge.clone()).collect();
        for edge in edges.iter().flatten() {
            if let Edge::Leaf(leaf) = edge {
                leaf.pending.set(leaf.pending.get() + 1);
            }
        }
        let mut nodes = self.nodes.borrow_mut();
        let index = nodes.len();
        nodes.push(Node {
            run: Some(run),
            edges,
            buffers: vec![None; N],
            kinds: outputs.iter().map(|d| d.e).collect(),
        });
        let mut output = 0;
        outputs.map(|data| {
            let edge = Some(Edge::Node(index, output));
            output += 1;
            Tensor { data, edge }
        })
    }

    /// Runs backward from `root` with gradient `grad` down to (and without) node `floor`.
    pub(super) fn backward(&self, root: &Tensor, grad: Data, floor: usize) {
        let Some(edge) = &root.edge else { return };
        self.arrive(edge, grad);
        let mut at = self.nodes.borrow().len();
        // Every edge leads to an earlier node, so the latest waiting node is always ready: PyTorch's order.
        while at > floor {
            at -= 1;
            let (run, grads, edges) = {
                let mut nodes = self.nodes.borrow_mut();
                let Some(node) = nodes.get_mut(at) else { continue };
                if node.buffers.iter().all(Option::is_none) {
                    continue;
                }
                let buffers = std::mem::take(&mut node.buffers);
                (node.run.take(), buffers, std::mem::take(&mut node.edges))
            };
            let Some(run) = run else { continue };
            let out = run(self, grads);
            for (grad, edge) in out.into_iter().zip(&edges) {
                if let (Some(grad), Some(edge)) = (grad, edge) {
                    self.arrive(edge, grad);
                }
            }
        }
        // What the walk did not reach has no gradient; its saved tensors go with the graph.
        self.nodes.borrow_mut().truncate(floor);
    }

    /// Nodes recorded so far.
    pub(super) fn len(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// Hands a gradient on, in the dtype of what it belongs to.
    fn arrive(&self, edge: &Edge, grad: Data) {
        match edge {
            Edge::Node(index, output) => {
                let wanted = self.nodes.borrow()[*index].kinds[*output];
                let grad = self.as_dtype(grad, wanted);
                let old = self.nodes.borrow_mut()[*index].buffers.get_mut(*output).and_then(Option::take);
                let sum = self.summed(old, grad);
                if let Some(slot) = self.nodes.borrow_mut()[*index].buffers.get_mut(*output) {
                    *slot = Some(sum);
                }
            }
            Edge::Leaf(leaf) => {
                let grad = self.as_dtype(grad, leaf.e);
                let sum = self.summed(leaf.buffer.take(), grad);
                leaf.pending.set(leaf.pending.get().saturating_sub(1));
                if leaf.pending.get() > 0 {
                    leaf.buffer.replace(Some(sum));
                } else if leaf.stays && !self.rules.accumulated {
                    sum.set_kind(if self.rules.scattered { Kind::Gathered } else { Kind::Gradients });
                    self.gradients.borrow_mut().push(sum);
                }
            }
        }
    }

    /// A gradient in elements of `e` bytes: cast where it comes in others.
    pub(super) fn as_dtype(&self, grad: Data, e: u64) -> Data {
        if grad.e == e { grad } else { self.new_like("to(dtype)", &grad, e) }
    }

    fn summed(&self, old: Option<Data>, grad: Data) -> Data {
        match old {
            None => grad,
            Some(old) if self.rules.in_place_sums && Rc::strong_count(&old.storage) == 1 => old,
            Some(old) => self.new_like("add(gradients)", &old, old.e),
        }
    }

    /// Runs `body` without recording.
    pub(super) fn no_grad<T>(&self, body: impl FnOnce() -> T) -> T {
        let before = self.recording.replace(false);
        let out = body();
        self.recording.set(before);
        out
    }

    /// Runs `body` with new blocks counted under `kind`; what is made again while recomputing stays told apart.
    pub(super) fn as_kind<T>(&self, kind: Kind, body: impl FnOnce() -> T) -> T {
        let before = self.kind.get();
        if before != Kind::Recompute {
            self.kind.set(kind);
        }
        let out = body();
        self.kind.set(before);
        out
    }

    /// Whether a layer is being run again.
    pub(super) fn recomputes(&self) -> bool {
        self.stop_at.get().is_some() || self.stopped.get()
    }

    /// A tensor made a leaf that takes a gradient (`enable_input_require_grads`).
    pub(super) fn requiring_grad(&self, x: &Tensor) -> Tensor {
        if x.tracked() || !self.recording.get() {
            return x.clone();
        }
        let leaf = Leaf { e: x.data.e, stays: false, pending: Cell::new(0), buffer: RefCell::new(None) };
        Tensor { data: x.data.clone(), edge: Some(Edge::Leaf(Rc::new(leaf))) }
    }

    /// Bytes of the gradients that parameters hold now.
    pub(super) fn take_gradients(&self) -> Vec<Data> {
        self.gradients.take()
    }
}
