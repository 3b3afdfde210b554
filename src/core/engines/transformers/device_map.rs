//! `device_map`: which device gets which module. The rule of `get_balanced_memory` and `infer_auto_device_map` in
//! `integrations/accelerate.py` of transformers 5.24 (before 5, the functions of the same names in
//! `accelerate/utils/modeling.py`): modules in order, each where it still fits, a decoder layer never split.

use crate::memory::weights;
use crate::memory::{Parallel, WeightsSpec};
use crate::model::{Model, TensorClass, TensorGroup};
use crate::units::Problem;

/// What one device runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Layers, in order.
    pub(super) layers: Vec<usize>,
    /// The embedding; generation itself runs beside it.
    pub(super) embedding: bool,
    /// Final norm.
    pub(super) norm: bool,
    /// Vocabulary projection.
    pub(super) head: bool,
    /// Number of the device.
    pub(super) device: u64,
    /// It is one of several shares that `device_map` made.
    pub(super) placed: bool,
    /// Bytes of the largest weight that is fetched from the host while its module runs.
    pub(super) fetched: u64,
}

impl Share {
    /// A device that runs everything, or its even part of it.
    pub(super) fn whole() -> Share {
        Share { embedding: true, norm: true, head: true, ..Share::default() }
    }
}

/// The module tree, as far as it is ever split.
#[derive(Clone, Debug)]
struct Module {
    kind: Kind,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The model without its head: split into the others.
    Body,
    Embedding,
    /// The list of layers: split into its layers.
    Stack,
    Layer(usize),
    Norm,
    Head,
}

impl Kind {
    fn within(self, other: Kind) -> bool {
        match other {
            Kind::Body => self != Kind::Head,
            Kind::Stack => matches!(self, Kind::Stack | Kind::Layer(_)),
            _ => self == other,
        }
    }

    fn splits(self) -> bool {
        matches!(self, Kind::Body | Kind::Stack)
    }
}

/// Bytes of every module.
struct Sizes {
    embedding: u64,
    layers: Vec<u64>,
    norm: u64,
    head: u64,
    /// The largest module that holds parameters itself.
    leaf: u64,
}

impl Sizes {
    fn new(model: &Model, spec: &WeightsSpec) -> Result<Sizes, Problem> {
        let bytes = |keep: &dyn Fn(&TensorGroup) -> bool| -> Result<u64, Problem> {
            let tensors = model.tensors.iter().filter(|t| keep(t)).cloned().collect();
            let part = Model { tensors, ..model.clone() };
            weights::weights_bytes(&part, spec, Parallel::default(), weights::Layout::Transformers)
        };
        let outside = |t: &TensorGroup| t.layers.is_empty();
        let embeds = |c| matches!(c, TensorClass::Embedding | TensorClass::PositionEmbedding);
        let embedding = bytes(&|t| outside(t) && embeds(t.class))?;
        let head = bytes(&|t| outside(t) && t.class == TensorClass::LmHead)?;
        let norm = bytes(&|t| outside(t) && !embeds(t.class) && t.class != TensorClass::LmHead)?;
        let mut layers = vec![0u64; model.layers.len()];
        let mut leaf = embedding.max(head);
        for group in model.tensors.iter().filter(|t| !outside(t)) {
            let all = bytes(&|t| std::ptr::eq(t, group))?;
            let held: u64 = group.layers.iter().map(|(a, b)| u64::from(b - a) + 1).sum();
            let each = all / held.max(1);
            leaf = leaf.max(each);
            for (first, last) in &group.layers {
                for layer in *first..=*last {
                    if let Some(sum) = layers.get_mut(layer as usize) {
                        *sum = sum.saturating_add(each);
                    }
                }
            }
        }
        Ok(Sizes { embedding, layers, norm, head, leaf })
    }

    fn of(&self, kind: Kind) -> u64 {
        let stack = || self.layers.iter().fold(0, |sum: u64, l| sum.saturating_add(*l));
        match kind {
            Kind::Body => self.embedding.saturating_add(self.norm).saturating_add(stack()),
            Kind::Embedding => self.embedding,
            Kind::Stack => stack(),
            Kind::Layer(i) => self.layers.get(i).copied().unwrap_or(0),
            Kind::Norm => self.norm,
            Kind::Head => self.head,
        }
    }

    fn children(&self, kind: Kind) -> Vec<Kind> {
        match kind {
            Kind::Body => vec![Kind::Embedding, Kind::Stack, Kind::Norm],
            Kind::Stack => (0..self.layers.len()).map(Kind::Layer).collect(),
            _ => Vec::new(),
        }
    }

    /// The largest modules among `modules` that are never split, and their size.
    fn largest(&self, modules: &[Module]) -> (u64, Vec<Kind>) {
        let (mut most, mut kinds) = (0, Vec::new());
        let mut left: Vec<Kind> = modules.iter().rev().map(|m| m.kind).collect();
        while let Some(kind) = left.pop() {
            if kind.splits() {
                left.extend(self.children(kind).into_iter().rev());
                continue;
            }
            let size = self.of(kind);
            if size > most {
                (most, kinds) = (size, vec![kind]);
            } else if size == most {
                kinds.push(kind);
            }
        }
        (most, kinds)
    }
}

/// How `device_map` spreads the model over `devices` devices with `free` bytes each: one share per device that gets
/// something, in order, and what is left to the host.
///
/// Errors: weights that cannot be sized.
pub(super) fn shares(
    model: &Model,
    spec: &WeightsSpec,
    map: &str,
    devices: u64,
    free: u64,
    before_five: bool,
) -> Result<(Vec<Share>, Option<Share>), Problem> {
    let sizes = Sizes::new(model, spec)?;
    let limits = limits(&sizes, map, devices, free, before_five);
    let mut shares = vec![Share::default(); limits.len() + 1];
    for (kind, device) in place(&sizes, model.tied_embeddings, &limits) {
        let mut left = vec![kind];
        while let Some(kind) = left.pop() {
            match kind {
                Kind::Embedding => shares[device].embedding = true,
                Kind::Layer(index) => shares[device].layers.push(index),
                Kind::Head => shares[device].head = true,
                Kind::Norm => shares[device].norm = true,
                Kind::Body | Kind::Stack => left.extend(sizes.children(kind).into_iter().rev()),
            }
        }
    }
    let some = |s: &Share| s.embedding || s.norm || s.head || !s.layers.is_empty();
    let host = shares.pop().filter(some);
    for (index, share) in shares.iter_mut().enumerate() {
        (share.device, share.placed) = (index as u64, true);
    }
    // The first device runs what the host stores.
    let first = shares.first().cloned().unwrap_or_default();
    shares.retain(some);
    if host.is_some() && shares.first().is_none_or(|s| s.device > 0) {
        shares.insert(0, first);
    }
    Ok((shares, host))
}

/// What each device may take.
fn limits(sizes: &Sizes, map: &str, devices: u64, free: u64, before_five: bool) -> Vec<u64> {
    let count = usize::try_from(devices.max(1)).unwrap_or(usize::MAX).min(1 << 16);
    let mut limits = vec![free; count];
    if map == "sequential" {
        return limits;
    }
    if count == 1 {
        // A tenth is left for what else is needed.
        return vec![free / 10 * 9];
    }
    let low_zero = map == "balanced_low_0";
    let total = sizes.of(Kind::Body).saturating_add(sizes.head);
    let layer = sizes.layers.iter().copied().max().unwrap_or(0);
    let block = if before_five { layer } else { layer.max(sizes.leaf) };
    let buffer = block.saturating_add(block / 4);
    let each = (total / (count as u64 - u64::from(low_zero))).saturating_add(buffer);
    for (index, limit) in limits.iter_mut().enumerate().take(count - 1) {
        if !(low_zero && index == 0) {
            *limit = (*limit).min(each);
        }
    }
    if low_zero {
        let others = limits[1..].iter().fold(0, |sum: u64, l| sum.saturating_add(*l));
        limits[0] = limits[0].min(total.saturating_sub(others));
    }
    limits
}

/// Modules in order, each on the first device from the current one on that still has room; the first device
/// keeps room for the largest module that might come back from the host.
fn place(sizes: &Sizes, tied: bool, limits: &[u64]) -> Vec<(Kind, usize)> {
    let module = |kind| Module { kind, bytes: sizes.of(kind) };
    let mut left: Vec<Module> = [Kind::Body, Kind::Head].map(module).into();
    let (mut most, mut largest) = sizes.largest(&left);
    let (mut device, mut used) = (0, 0u64);
    let mut placed = Vec::new();
    while !left.is_empty() {
        let Module { kind, bytes } = left.remove(0);
        largest.retain(|k| !k.within(kind));
        if largest.is_empty() {
            (most, largest) = sizes.largest(&left);
        }
        let limit = limits.get(device).map(|limit| limit.saturating_sub(if device == 0 { most } else { 0 }));
        if limit.is_none_or(|limit| used.saturating_add(bytes) <= limit) {
            used = used.saturating_add(bytes);
            placed.push((kind, device));
            // A tied head goes where the embedding is; it has no bytes of its own.
            if tied && matches!(kind, Kind::Body | Kind::Embedding) {
                left.retain(|m| m.kind != Kind::Head);
                placed.push((Kind::Head, device));
            }
        } else if kind.splits() {
            let children = sizes.children(kind).into_iter().map(module);
            left.splice(..0, children);
            (most, largest) = sizes.largest(&left);
        } else {
            (device, used) = (device + 1, 0);
            left.insert(0, Module { kind, bytes });
        }
    }
    placed
}
