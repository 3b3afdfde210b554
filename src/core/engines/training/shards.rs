//! Parameters sharded over data-parallel ranks (FSDP, ZeRO 3): gathered layer by layer, gradients reduced and
//! scattered. From `torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py`: a layer is gathered before its forward
//! and before its backward, the one before it ahead of time; the rest of the model is one group that stays gathered.

use super::graph::{Data, Graph, Tensor};
use super::pool::Kind;
use super::settings::{Precision, TrainSettings};
use crate::model::Model;
use std::cell::RefCell;

/// How the parameters of a step are sharded.
#[derive(Debug)]
pub(super) struct Shards {
    /// Ranks.
    world: u64,
    /// Layers are let go after forward.
    reshard: bool,
    /// Bytes of an element while computing, while reducing, and of the shard.
    e: u64,
    reduce_e: u64,
    shard_e: u64,
    /// Elements of each layer, and of everything else.
    layers: Vec<u64>,
    root: u64,
    gathered: RefCell<Vec<Option<Data>>>,
    /// What a layer was gathered into ahead of time, before it is copied out.
    ahead: RefCell<Option<(usize, Data)>>,
    /// In forward the last one stays until the next has been gathered.
    flat: RefCell<Option<Data>>,
    whole: RefCell<Option<Data>>,
    /// What the last reduction read: let go when the next begins.
    reducing: RefCell<Option<Data>>,
    /// Shards of gradients.
    reduced: RefCell<Vec<Data>>,
}

impl Shards {
    /// Shards over `world` ranks, where the settings ask for sharded parameters.
    pub(super) fn new(model: &Model, train: &TrainSettings, world: u64) -> Option<Shards> {
        if world < 2 || !train.shards_parameters() {
            return None;
        }
        let mut layers = vec![0u64; model.layers.len()];
        let mut root = 0u64;
        for t in &model.tensors {
            let holding: u64 = t.layers.iter().map(|(a, b)| u64::from(b - a) + 1).sum();
            let all = t.elements().saturating_mul(t.count);
            let Some(each) = all.checked_div(holding) else {
                root = root.saturating_add(all);
                continue;
            };
            for (a, b) in &t.layers {
                let last = (*b as usize + 1).min(layers.len());
                for layer in layers.get_mut(*a as usize..last).into_iter().flatten() {
                    *layer = layer.saturating_add(each);
                }
            }
        }
        let mixed = train.precision.mixed();
        Some(Shards {
            world,
            reshard: train.fsdp.as_deref() != Some(super::settings::SHARD_GRAD_OP),
            e: if mixed { 2 } else { train.precision.parameter_bytes() },
            reduce_e: if mixed || train.precision == Precision::Bf16Master {
                4
            } else {
                train.precision.parameter_bytes()
            },
            shard_e: if train.precision == Precision::Bf16Master {
                4
            } else {
                train.precision.parameter_bytes()
            },
            gathered: RefCell::new(vec![None; layers.len()]),
            ahead: RefCell::new(None),
            flat: RefCell::new(None),
            layers,
            root,
            whole: RefCell::new(None),
            reducing: RefCell::new(None),
            reduced: RefCell::new(Vec::new()),
        })
    }

    fn buffer(&self, g: &Graph<'_>, op: &'static str, elements: u64) -> Data {
        g.as_kind(Kind::Gathered, || g.new_data(op, elements, self.e))
    }

    /// Starts a forward pass: everything outside the layers is gathered and stays.
    pub(super) fn begin(&self, g: &Graph<'_>) {
        self.flat.replace(Some(self.buffer(g, "all_gather", self.root)));
        self.whole.replace(Some(self.buffer(g, "copy_out", self.root)));
    }

    fn missing(&self, layer: usize) -> bool {
        self.gathered.borrow().get(layer).is_some_and(Option::is_none)
    }

    /// Gathers a layer in forward.
    fn gather(&self, g: &Graph<'_>, layer: usize) {
        if self.missing(layer) {
            let flat = self.buffer(g, "all_gather", self.layers[layer]);
            self.flat.replace(Some(flat));
            let made = self.buffer(g, "copy_out", self.layers[layer]);
            self.gathered.borrow_mut()[layer] = Some(made);
        }
    }

    /// Gathers a layer before its backward, into what was made ahead of time where it was.
    fn gather_again(&self, g: &Graph<'_>, layer: usize) {
        if self.missing(layer) {
            let ahead = self.ahead.take().filter(|(at, _)| *at == layer).map(|(_, flat)| flat);
            let flat = ahead.unwrap_or_else(|| self.buffer(g, "all_gather", self.layers[layer]));
            let made = self.buffer(g, "copy_out", self.layers[layer]);
            self.gathered.borrow_mut()[layer] = Some(made);
            drop(flat);
        }
    }

    /// Gathers a layer ahead of time.
    fn prefetch(&self, g: &Graph<'_>, layer: usize) {
        if self.missing(layer) {
            self.ahead.replace(Some((layer, self.buffer(g, "all_gather", self.layers[layer]))));
        }
    }

    /// Enters a layer in forward; in backward its gradients are reduced here and its parameters let go.
    pub(super) fn enter<'p>(&'p self, g: &Graph<'p>, layer: usize, x: &Tensor) -> Tensor {
        self.gather(g, layer);
        if !g.records(&[x]) {
            return x.clone();
        }
        g.node(x.data.clone(), &[x], move |g, grad| {
            self.gathered.borrow_mut()[layer] = None;
            self.reduce(g);
            vec![Some(grad)]
        })
    }

    /// Leaves a layer in forward; in backward it is gathered here, and the one before it ahead of time.
    pub(super) fn leave<'p>(&'p self, g: &Graph<'p>, layer: usize, x: &Tensor) -> Tensor {
        if self.reshard {
            self.gathered.borrow_mut()[layer] = None;
        }
        if !g.records(&[x]) {
            return x.clone();
        }
        g.node(x.data.clone(), &[x], move |g, grad| {
            self.gather_again(g, layer);
            if let Some(before) = layer.checked_sub(1) {
                self.prefetch(g, before);
            }
            vec![Some(grad)]
        })
    }

    /// Before backward the last layer is gathered ahead of time, while the loss is at work.
    pub(super) fn before_backward(&self, g: &Graph<'_>) {
        self.flat.replace(None);
        if let Some(last) = self.layers.len().checked_sub(1) {
            self.prefetch(g, last);
        }
    }

    /// Copies the gradients at hand into one buffer, lets them go, and keeps this rank's share of the sum.
    fn reduce(&self, g: &Graph<'_>) {
        let whole = g.take_gradients();
        let n = whole.iter().fold(0u64, |sum, d| sum.saturating_add(d.n));
        if n == 0 {
            return;
        }
        self.reducing.replace(None);
        let input = g.as_kind(Kind::Gathered, || g.new_data("reduce_scatter input", n, self.reduce_e));
        drop(whole);
        let share = n.div_ceil(self.world);
        let output = g.as_kind(Kind::Gradients, || g.new_data("reduce_scatter", share, self.reduce_e));
        let output = if self.reduce_e == self.shard_e {
            output
        } else {
            g.as_kind(Kind::Gradients, || g.new_data("to(dtype)", share, self.shard_e))
        };
        self.reduced.borrow_mut().push(output);
        self.reducing.replace(Some(input));
    }

    /// Ends backward: what is outside the layers is reduced, and everything gathered let go.
    pub(super) fn finish(&self, g: &Graph<'_>) {
        self.whole.replace(None);
        self.ahead.replace(None);
        self.gathered.borrow_mut().fill(None);
        self.reduce(g);
        self.reducing.replace(None);
    }

    /// Drops this rank's gradients.
    pub(super) fn clear(&self) {
        self.reduced.borrow_mut().clear();
    }
}
