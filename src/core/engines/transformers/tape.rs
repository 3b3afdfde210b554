//! The tensors of one forward pass in the order the modelling code makes and drops them, with sizes left
//! symbolic: one tape answers every batch and length.

use crate::memory::TermId;

/// What a tensor's size can depend on; the value of each is in [`Dims`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dim {
    /// Always 1.
    One,
    /// B: sequences.
    B,
    /// Query tokens of each sequence in this pass.
    Q,
    /// Positions of each sequence that get logits.
    N,
    /// Prompt tokens of each sequence, whatever the phase.
    P,
    /// B where it exceeds 1, else 0.
    Many,
    /// Tokens that attention of this slot sees.
    C(u8),
    /// Tokens stored by the cache layers of this slot before the pass.
    Old(u8),
    /// `C` rounded up to 8 where it is not a multiple of 8, else 0: width of a padded mask.
    Pad(u8),
    /// Tokens of a full static ring, which a decode step copies to roll it; 0 where it is not full.
    Rolled(u8),
}

/// Attention slots: 0 keeps every token, 1 and 2 are the model's windows.
pub(super) const SLOTS: usize = 3;
const DIMS: usize = 6 + 4 * SLOTS;

impl Dim {
    const fn index(self) -> usize {
        match self {
            Dim::One => 0,
            Dim::B => 1,
            Dim::Q => 2,
            Dim::N => 3,
            Dim::P => 4,
            Dim::Many => 5,
            Dim::C(s) => 6 + s as usize,
            Dim::Old(s) => 6 + SLOTS + s as usize,
            Dim::Pad(s) => 6 + 2 * SLOTS + s as usize,
            Dim::Rolled(s) => 6 + 3 * SLOTS + s as usize,
        }
    }
}

/// A value for every [`Dim`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Dims([u64; DIMS]);

impl Dims {
    pub(super) fn new(sequences: u64, query: u64, kept: u64, prompt: u64) -> Dims {
        let mut all = [0; DIMS];
        all[Dim::One.index()] = 1;
        all[Dim::B.index()] = sequences;
        all[Dim::Q.index()] = query;
        all[Dim::N.index()] = kept;
        all[Dim::P.index()] = prompt;
        all[Dim::Many.index()] = if sequences > 1 { sequences } else { 0 };
        Dims(all)
    }

    /// What slot `s` sees and what its cache layers stored before.
    pub(super) fn slot(&mut self, s: u8, seen: u64, old: u64) {
        self.0[Dim::C(s).index()] = seen;
        self.0[Dim::Old(s).index()] = old;
        let aligned = seen.is_multiple_of(8);
        self.0[Dim::Pad(s).index()] = if aligned { 0 } else { seen.saturating_add(8 - seen % 8) };
    }

    /// Slot `s` is a static ring of `tokens` that is full.
    pub(super) fn rolled(&mut self, s: u8, tokens: u64) {
        self.0[Dim::Rolled(s).index()] = tokens;
    }
}

/// Bytes of a tensor: a coefficient times up to three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size {
    pub(super) dims: [Dim; 3],
    pub(super) coefficient: u64,
}

impl Size {
    /// Bytes as the caching allocator hands them out: multiples of 512. `u64::MAX` where they overflow.
    #[inline]
    pub(super) fn bytes(&self, at: &Dims) -> u64 {
        let [a, b, c] = self.dims;
        let raw = self
            .coefficient
            .saturating_mul(at.0[a.index()])
            .saturating_mul(at.0[b.index()])
            .saturating_mul(at.0[c.index()]);
        raw.saturating_add(511) & !511
    }
}

/// A tensor, or several of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: Size,
    pub(super) times: u64,
    pub(super) term: TermId,
    /// The operator or object that made it.
    pub(super) op: &'static str,
}

impl Block {
    pub(super) fn bytes(&self, at: &Dims) -> u64 {
        self.size.bytes(at).saturating_mul(self.times)
    }
}

/// Handle of a block on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u32);

/// A moment at which nothing has been dropped since the last allocation: only there can the peak lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    start: u32,
    end: u32,
    /// The operator that had just run.
    pub(super) op: &'static str,
    /// Part of the forward pass.
    pub(super) part: &'static str,
    /// Layer index, where inside one.
    pub(super) layer: Option<u32>,
}

/// Blocks and stages of one forward pass.
#[derive(Debug, Default)]
pub(super) struct Tape {
    blocks: Vec<Block>,
    live: Vec<u32>,
    members: Vec<u32>,
    stages: Vec<Stage>,
    rising: bool,
    part: &'static str,
    layer: Option<u32>,
}

impl Tape {
    pub(super) fn with_capacity() -> Tape {
        Tape {
            blocks: Vec::with_capacity(512),
            live: Vec::with_capacity(64),
            members: Vec::with_capacity(4096),
            stages: Vec::with_capacity(256),
            ..Tape::default()
        }
    }

    /// Names where the next operators belong.
    pub(super) fn enter(&mut self, part: &'static str, layer: Option<u32>) {
        self.settle();
        self.part = part;
        self.layer = layer;
    }

    pub(super) fn alloc(&mut self, block: Block) -> Id {
        let id = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        self.blocks.push(block);
        self.live.push(id);
        self.rising = true;
        Id(id)
    }

    pub(super) fn free(&mut self, id: Id) {
        self.settle();
        if let Some(at) = self.live.iter().rposition(|&l| l == id.0) {
            self.live.remove(at);
        }
    }

    /// Records the present as a stage if something was allocated since the last one.
    pub(super) fn settle(&mut self) {
        if !self.rising {
            return;
        }
        self.rising = false;
        let start = self.members.len() as u32;
        self.members.extend_from_slice(&self.live);
        let op = self.live.last().map_or("", |&l| self.blocks[l as usize].op);
        let stage = Stage { start, end: self.members.len() as u32, op, part: self.part, layer: self.layer };
        self.stages.push(stage);
    }

    /// The live set, to come back to with [`Tape::restore`].
    pub(super) fn mark(&mut self) -> Vec<u32> {
        self.settle();
        self.live.clone()
    }

    pub(super) fn restore(&mut self, mark: &[u32]) {
        self.settle();
        self.live.clear();
        self.live.extend_from_slice(mark);
    }

    /// Drops every live block that `keep` does not name.
    pub(super) fn retain(&mut self, keep: impl Fn(&Block) -> bool) {
        self.settle();
        let blocks = &self.blocks;
        self.live.retain(|&l| keep(&blocks[l as usize]));
    }

    pub(super) fn blocks_of(&self, stage: &Stage) -> impl Iterator<Item = &Block> {
        self.members[stage.start as usize..stage.end as usize].iter().map(|&m| &self.blocks[m as usize])
    }

    /// The blocks alive at the end that `keep` names, as a sum.
    pub(super) fn last_sum(&self, keep: impl Fn(&Block) -> bool) -> Sum {
        Sum::of(self.live.iter().map(|&l| &self.blocks[l as usize]).filter(|b| keep(b)))
    }

    fn bytes_of(&self, stage: &Stage, at: &Dims) -> u64 {
        self.blocks_of(stage).fold(0, |sum: u64, b| sum.saturating_add(b.bytes(at)))
    }

    /// The highest stage at `at`, with its bytes.
    pub(super) fn peak(&self, at: &Dims) -> Option<(Stage, u64)> {
        let mut best: Option<(Stage, u64)> = None;
        for stage in &self.stages {
            let bytes = self.bytes_of(stage, at);
            if best.is_none_or(|(_, b)| bytes > b) {
                best = Some((*stage, bytes));
            }
        }
        best
    }

    /// The stages that can be the highest at some point, as sums: what the surface evaluates.
    ///
    /// A stage is left out where another holds at least as much in every monomial and as many tensors, so
    /// that rounding to 512 B cannot turn the order round by more than 512 B per tensor.
    pub(super) fn peaks(&self, near: &Dims) -> Vec<Sum> {
        let mut sums: Vec<(u64, Sum)> = self
            .stages
            .iter()
            .map(|stage| (self.bytes_of(stage, near), Sum::of(self.blocks_of(stage))))
            .collect();
        sums.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut kept: Vec<Sum> = Vec::new();
        for (_, sum) in sums {
            if !kept.iter().any(|k| k.covers(&sum)) {
                kept.retain(|k| !sum.covers(k));
                kept.push(sum);
            }
        }
        kept
    }
}

/// Bytes alive at a stage: how many tensors of each size.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    parts: Vec<(Size, u64)>,
    monomials: Vec<([Dim; 3], u64)>,
}

impl Sum {
    fn of<'a>(blocks: impl Iterator<Item = &'a Block>) -> Sum {
        let mut parts: Vec<(Size, u64)> = Vec::new();
        for block in blocks {
            match parts.iter_mut().find(|(size, _)| *size == block.size) {
                Some((_, times)) => *times += block.times,
                None => parts.push((block.size, block.times)),
            }
        }
        let mut monomials: Vec<([Dim; 3], u64)> = Vec::new();
        for (size, times) in &parts {
            let weight = size.coefficient.saturating_mul(*times);
            match monomials.iter_mut().find(|(dims, _)| *dims == size.dims) {
                Some((_, sum)) => *sum = sum.saturating_add(weight),
                None => monomials.push((size.dims, weight)),
            }
        }
        Sum { parts, monomials }
    }

    fn covers(&self, other: &Sum) -> bool {
        other.monomials.iter().all(|(dims, weight)| {
            *weight == 0 || self.monomials.iter().any(|(d, w)| d == dims && w >= weight)
        })
    }

    /// Bytes at a point.
    #[inline]
    pub(super) fn bytes(&self, at: &Dims) -> u64 {
        self.parts
            .iter()
            .fold(0, |sum: u64, (size, times)| sum.saturating_add(size.bytes(at).saturating_mul(*times)))
    }
}
