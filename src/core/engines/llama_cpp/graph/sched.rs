//! ggml's scheduler: on which backend each operation runs, and what has to be copied between them
//! (`ggml_backend_sched_split_graph` in ggml-backend.cpp).

use super::alloc::{Step, lay_out};
use super::tensor::{Graph, Id, Op, Runs, Tensor};

/// The backends: devices first, the host last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backends {
    pub(super) devices: usize,
    /// Copies of every input, so that devices can work on different batches (pipeline parallelism).
    pub(super) copies: usize,
    /// Matrices on the host are copied to a device for batches of 32 tokens and more.
    pub(super) offload_op: bool,
}

/// Batch from which a matrix on the host is worth its copy (`ggml_backend_cuda_device_offload_op`).
const OFFLOAD_BATCH: u64 = 32;
/// Alignment of device and host buffers.
const ALIGN: (u64, u64) = (128, 32);

/// What keeps which tensors until which operation: set by a backend that runs several operations as one.
pub(super) type KeepUntil = Vec<(Id, Vec<Id>)>;

/// Sizes of the compute buffers: devices first, the host last.
pub(super) fn compute_buffers(graph: &mut Graph, backends: Backends, keep: &KeepUntil) -> Vec<u64> {
    let mut sched = Sched { ids: vec![None; graph.tensors.len()], host: backends.devices, backends };
    sched.assign(graph);
    let splits = sched.split(graph);
    let mut pinned = vec![false; graph.tensors.len()];
    let mut first = Vec::new();
    if backends.copies > 1 {
        sched.copies(graph, &splits, &mut first, &mut pinned);
    }
    first.extend(graph.leaves.iter().map(|id| (*id, sched.id(*id))));
    let mut aligns = vec![ALIGN.0; backends.devices];
    aligns.push(ALIGN.1);
    let mut steps = Vec::new();
    for split in &splits {
        for (input, copy) in &split.inputs {
            steps.push(Step::Keep(vec![*input]));
            steps.push(Step::Node(*copy, split.backend));
        }
        for id in &split.nodes {
            steps.push(Step::Node(*id, sched.id(*id)));
            for (_, kept) in keep.iter().filter(|(until, _)| until == id) {
                steps.push(Step::Keep(kept.clone()));
            }
        }
    }
    pinned.resize(graph.tensors.len(), false);
    lay_out(graph, &first, &steps, &pinned, &aligns)
}

/// Operations in a row on one backend, and what is copied there before them.
struct Split {
    backend: usize,
    /// Tensor elsewhere, and its copy here.
    inputs: Vec<(Id, Id)>,
    nodes: Vec<Id>,
}

struct Sched {
    ids: Vec<Option<usize>>,
    host: usize,
    backends: Backends,
}

impl Sched {
    fn id(&self, id: Id) -> usize {
        self.ids.get(id).copied().flatten().unwrap_or(self.host)
    }

    fn supports(&self, graph: &Graph, backend: usize, id: Id) -> bool {
        let node = &graph.tensors[id];
        if backend == self.host {
            return true;
        }
        let elsewhere = |src: &Id| graph.tensors[*src].home.is_some_and(|h| h != backend && h != self.host);
        node.runs == Runs::Anywhere && !node.src.iter().any(elsewhere)
    }

    /// The backend of a tensor that lies somewhere already, where that can compute `user`.
    fn lies_on(&self, graph: &Graph, tensor: &Tensor, user: Id) -> Option<usize> {
        tensor.home.filter(|home| self.supports(graph, *home, user))
    }

    fn own_backend(&self, graph: &Graph, id: Id) -> Option<usize> {
        let tensor = &graph.tensors[id];
        if tensor.home.is_some() {
            return tensor.home;
        }
        if let Some(home) = tensor.view_of.and_then(|owner| graph.tensors[owner].home) {
            return Some(home);
        }
        if tensor.input {
            return Some(self.host);
        }
        if tensor.free_of_weights {
            return None;
        }
        let weight = tensor.src.iter().map(|src| &graph.tensors[*src]).find(|src| src.weight)?;
        let home = self.lies_on(graph, weight, id);
        if home == Some(self.host) && self.backends.offload_op && batch(graph, tensor) >= OFFLOAD_BATCH {
            return (0..self.host).find(|b| self.supports(graph, *b, id)).or(home);
        }
        home
    }

    fn assign(&mut self, graph: &Graph) {
        for id in graph.leaves.iter().chain(&graph.nodes) {
            self.ids[*id] = graph.tensors[*id].wanted.or_else(|| self.own_backend(graph, *id));
        }
        let down: Vec<Id> =
            graph.nodes.iter().copied().filter(|id| graph.tensors[*id].op != Op::View).collect();
        let up: Vec<Id> = down.iter().rev().copied().collect();
        for (order, host_too) in [(&down, false), (&up, false), (&down, true), (&up, true)] {
            self.expand(graph, order, host_too);
        }
        for &id in &down {
            if self.ids[id].is_none() {
                self.ids[id] = Some(self.best(graph, id));
            }
        }
        for &id in &graph.nodes {
            if self.ids[id].is_none() {
                self.ids[id] = graph.tensors[id].view_of.and_then(|owner| self.ids[owner]);
            }
            for &src in &graph.tensors[id].src {
                if self.ids[src].is_none() {
                    let owner = graph.tensors[src].view_of;
                    self.ids[src] = owner.map_or(self.ids[id], |owner| self.ids[owner]);
                }
            }
            if self.ids[id].is_none() {
                self.ids[id] = (0..=self.host).find(|b| self.supports(graph, *b, id));
            }
        }
    }

    /// Neighbours of an assigned operation run where it does.
    fn expand(&mut self, graph: &Graph, order: &[Id], host_too: bool) {
        let mut current = None;
        for &id in order {
            match (self.ids[id], current) {
                (Some(backend), _) => current = Some(backend).filter(|b| host_too || *b != self.host),
                (None, Some(backend)) if self.supports(graph, backend, id) => self.ids[id] = current,
                _ => {}
            }
        }
    }

    /// The backend that holds most operands.
    fn best(&self, graph: &Graph, id: Id) -> usize {
        let held =
            |b: usize| graph.tensors[id].src.iter().filter(|src| self.at_home(graph, **src, b)).count();
        let able = (0..=self.host).filter(|b| self.supports(graph, *b, id));
        // The first of equals.
        able.rev().max_by_key(|b| held(*b)).unwrap_or(self.host)
    }

    /// Whether `backend` can read the tensor where it lies.
    fn at_home(&self, graph: &Graph, id: Id, backend: usize) -> bool {
        let tensor = &graph.tensors[id];
        let owner = tensor.view_of.unwrap_or(id);
        graph.tensors[owner].home.or(self.ids[id]).or(self.ids[owner]) == Some(backend)
    }

    fn split(&mut self, graph: &mut Graph) -> Vec<Split> {
        let is_view = |graph: &Graph, id: Id| graph.tensors[id].op == Op::View;
        let nodes = graph.nodes.clone();
        let start = nodes.iter().find(|id| !is_view(graph, **id)).map_or(self.host, |id| self.id(*id));
        let mut splits = vec![Split { backend: start, inputs: Vec::new(), nodes: Vec::new() }];
        let mut copies: Vec<Vec<Option<Id>>> = vec![vec![None; graph.tensors.len()]; self.host + 1];
        for id in nodes {
            let last = splits.len() - 1;
            if is_view(graph, id) {
                splits[last].nodes.push(id);
                continue;
            }
            let backend = self.id(id);
            let fresh_weight = |src: &Id| {
                graph.tensors[*src].weight && self.id(*src) != backend && !self.at_home(graph, *src, backend)
            };
            let crowded = !splits[last].inputs.is_empty() && graph.tensors[id].src.iter().any(fresh_weight);
            if splits[last].backend != backend || crowded {
                splits.push(Split { backend, inputs: Vec::new(), nodes: Vec::new() });
            }
            let split = splits.len() - 1;
            for index in 0..graph.tensors[id].src.len() {
                let src = graph.tensors[id].src[index];
                if self.id(src) == backend || self.at_home(graph, src, backend) {
                    continue;
                }
                let copy = if let Some(copy) = copies[backend][src] {
                    copy
                } else {
                    let copy = self.copy(graph, src, backend);
                    copies[backend][src] = Some(copy);
                    splits[split].inputs.push((src, copy));
                    copy
                };
                graph.tensors[id].src[index] = copy;
            }
            splits[split].nodes.push(id);
        }
        splits
    }

    /// A tensor of the same layout on `backend`.
    fn copy(&mut self, graph: &mut Graph, of: Id, backend: usize) -> Id {
        let Tensor { ne, nb, width, .. } = graph.tensors[of];
        let id = graph.input(ne, width);
        (graph.tensors[id].nb, graph.tensors[id].input) = (nb, false);
        self.ids.resize(graph.tensors.len(), None);
        self.ids[id] = Some(backend);
        id
    }

    /// With several copies, inputs on both sides are placed first and never freed.
    fn copies(
        &mut self,
        graph: &mut Graph,
        splits: &[Split],
        first: &mut Vec<(Id, usize)>,
        pinned: &mut Vec<bool>,
    ) {
        let inputs: Vec<Id> = graph.leaves.iter().copied().filter(|id| graph.tensors[*id].input).collect();
        let mut all: Vec<(Id, usize)> = inputs.iter().map(|id| (*id, self.host)).collect();
        all.extend(splits.iter().flat_map(|s| s.inputs.iter().map(|(_, copy)| (*copy, s.backend))));
        for (id, backend) in all {
            first.push((id, backend));
            let more: Vec<Id> = (1..self.backends.copies).map(|_| self.copy(graph, id, backend)).collect();
            pinned.resize(graph.tensors.len(), false);
            for copy in more.into_iter().chain([id]) {
                pinned[copy] = true;
                if copy != id {
                    first.push((copy, backend));
                }
            }
        }
    }
}

/// Tokens that an operation on a matrix works on (`get_op_batch_size` in ggml-cuda.cu).
fn batch(graph: &Graph, tensor: &Tensor) -> u64 {
    // A lookup of rows has the table as its first operand and is left where the table lies.
    let first_is_weight = tensor.src.first().is_some_and(|src| graph.tensors[*src].weight);
    match (first_is_weight, tensor.op) {
        (true, Op::Into) => 0,
        (true, _) => tensor.ne[1].max(tensor.ne[2]),
        (false, _) => tensor.rows(),
    }
}
