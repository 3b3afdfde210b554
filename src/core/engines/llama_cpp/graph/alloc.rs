//! ggml's graph allocator: every result gets the best-fitting free block, or grows the buffer, and is freed after
//! its last use (`ggml_gallocr_alloc_graph_impl` in ggml-alloc.c).

use super::tensor::{Graph, Id, Op};

/// One buffer while it is laid out.
#[derive(Debug)]
struct Buffer {
    align: u64,
    /// Free blocks by offset: the last one is open-ended.
    free: Vec<(u64, u64)>,
    most: u64,
}

impl Buffer {
    fn new(align: u64) -> Buffer {
        Buffer { align, free: vec![(0, u64::MAX / 2)], most: 0 }
    }

    fn padded(&self, size: u64) -> u64 {
        size.checked_next_multiple_of(self.align).unwrap_or(u64::MAX / 4)
    }

    fn take(&mut self, size: u64) -> u64 {
        let size = self.padded(size);
        let last = self.free.len().saturating_sub(1);
        let mut best = None;
        for (i, block) in self.free.iter().enumerate().take(last) {
            if block.1 >= size && best.is_none_or(|(_, smallest)| block.1 <= smallest) {
                best = Some((i, block.1));
            }
        }
        let i = best.map_or(last, |(i, _)| i);
        let block = &mut self.free[i];
        let offset = block.0;
        block.0 = block.0.saturating_add(size);
        block.1 = block.1.saturating_sub(size);
        if block.1 == 0 {
            self.free.remove(i);
        }
        self.most = self.most.max(offset.saturating_add(size));
        offset
    }

    fn give(&mut self, offset: u64, size: u64) {
        let size = self.padded(size);
        for i in 0..self.free.len() {
            let (start, length) = self.free[i];
            if start + length == offset {
                self.free[i].1 += size;
                if self.free.get(i + 1).is_some_and(|next| start + length + size == next.0) {
                    self.free[i].1 += self.free[i + 1].1;
                    self.free.remove(i + 1);
                }
                return;
            }
            if offset + size == start {
                self.free[i] = (offset, length + size);
                if i > 0 && self.free[i - 1].0 + self.free[i - 1].1 == offset {
                    self.free[i - 1].1 += self.free[i].1;
                    self.free.remove(i);
                }
                return;
            }
        }
        let at = self.free.partition_point(|block| block.0 < offset);
        self.free.insert(at, (offset, size));
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    children: u32,
    views: u32,
    buffer: usize,
    offset: u64,
    allocated: bool,
}

/// A step of the order that is laid out: an operation, or a mark that keeps tensors until here.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A tensor is computed, or copied to, on a backend.
    Node(Id, usize),
    /// The tensors are still needed.
    Keep(Vec<Id>),
}

/// Bytes of a tensor in the buffer of `backend`; device buffers hold scratch behind results.
fn size(graph: &Graph, id: Id, backend: usize, host: usize) -> u64 {
    let tensor = &graph.tensors[id];
    tensor.bytes().saturating_add(if backend == host { 0 } else { tensor.scratch })
}

/// Sizes of the buffers of all backends, of which the last is the host. `first` are tensors placed before all
/// others, `pinned` ones that are never freed or overwritten.
pub(super) fn lay_out(
    graph: &Graph,
    first: &[(Id, usize)],
    steps: &[Step],
    pinned: &[bool],
    aligns: &[u64],
) -> Vec<u64> {
    let mut run = Run {
        graph,
        pinned,
        host: aligns.len() - 1,
        buffers: aligns.iter().map(|a| Buffer::new(*a)).collect(),
        states: vec![State::default(); graph.tensors.len()],
    };
    for (id, backend) in first {
        run.place(*id, *backend);
    }
    for step in steps {
        run.count(step);
    }
    for step in steps {
        run.step(step);
    }
    run.buffers.iter().map(|b| b.most).collect()
}

struct Run<'a> {
    graph: &'a Graph,
    pinned: &'a [bool],
    host: usize,
    buffers: Vec<Buffer>,
    states: Vec<State>,
}

impl Run<'_> {
    fn count(&mut self, step: &Step) {
        let (src, backend) = match step {
            Step::Node(id, backend) => {
                let tensor = &self.graph.tensors[*id];
                if let (Some(owner), true) = (tensor.view_of, tensor.op != Op::Leaf) {
                    self.states[owner].views += 1;
                }
                if tensor.input {
                    self.place(*id, *backend);
                }
                (&tensor.src, *backend)
            }
            Step::Keep(src) => (src, self.host),
        };
        for src in src {
            self.states[*src].children += 1;
            if self.graph.tensors[*src].input {
                self.place(*src, backend);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let src = match step {
            Step::Node(id, backend) => {
                let src = &self.graph.tensors[*id].src;
                for src in src {
                    self.place(*src, *backend);
                }
                self.place(*id, *backend);
                src
            }
            Step::Keep(src) => src,
        };
        for src in src {
            self.states[*src].children -= 1;
            let state = self.states[*src];
            if state.children > 0 || state.views > 0 {
                continue;
            }
            match self.graph.tensors[*src].view_of {
                Some(owner) => {
                    self.states[owner].views = self.states[owner].views.saturating_sub(1);
                    let owned = self.states[owner];
                    if owned.views == 0 && owned.children == 0 && owned.allocated {
                        self.release(owner);
                    }
                }
                None if state.allocated => self.release(*src),
                None => {}
            }
        }
    }

    fn release(&mut self, id: Id) {
        if self.pinned[id] {
            return;
        }
        let State { buffer, offset, .. } = self.states[id];
        let bytes = size(self.graph, id, buffer, self.host);
        self.buffers[buffer].give(offset, bytes);
        self.states[id].allocated = false;
    }

    fn place(&mut self, id: Id, backend: usize) {
        let tensor = &self.graph.tensors[id];
        if self.states[id].allocated || tensor.home.is_some() || tensor.view_of.is_some() {
            return;
        }
        self.states[id].allocated = true;
        if tensor.op == Op::InPlace && self.reuse(id) {
            return;
        }
        let bytes = size(self.graph, id, backend, self.host);
        let offset = self.buffers[backend].take(bytes);
        (self.states[id].buffer, self.states[id].offset) = (backend, offset);
    }

    /// Takes over the place of an operand that nobody else needs.
    fn reuse(&mut self, id: Id) -> bool {
        let tensor = &self.graph.tensors[id];
        for &parent in &tensor.src {
            let (p, state) = (&self.graph.tensors[parent], self.states[parent]);
            let owner = p.view_of.unwrap_or(parent);
            // A view is never allocated itself; ggml marks it when its owner is, and then looks at the owner.
            if p.home.is_some() || self.pinned[parent] || self.pinned[owner] || !tensor.same_layout(p) {
                continue;
            }
            if state.children != 1 || state.views != 0 || p.view_of.is_some() || !state.allocated {
                continue;
            }
            (self.states[id].buffer, self.states[id].offset) = (state.buffer, state.offset);
            self.states[parent].allocated = false;
            let old = self.buffers[state.buffer].padded(size(self.graph, parent, state.buffer, self.host));
            let new = self.buffers[state.buffer].padded(size(self.graph, id, state.buffer, self.host));
            if old > new {
                self.buffers[state.buffer].give(state.offset + new, old - new);
            }
            return true;
        }
        false
    }
}
