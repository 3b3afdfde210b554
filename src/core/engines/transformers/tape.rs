//! The tensors of one forward pass in the order the modelling code makes and drops them, with sizes left
//! symbolic: one tape answers every batch and length.

use super::sum::{Addend, Cover, Sum};
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
    /// B where the scores of the step before are still held, else 0.
    Held,
    /// Prompt and new tokens of each sequence.
    Whole,
    /// New tokens of each sequence.
    New,
    /// Tokens that a quantised cache holds packed.
    Packed,
    /// Tokens that a quantised cache holds as they are.
    Residual,
    /// Tokens packed anew during decode; 0 before that happens.
    Flush,
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
const FIXED: usize = 12;
const DIMS: usize = FIXED + 4 * SLOTS;

impl Dim {
    const fn index(self) -> usize {
        match self {
            Dim::One => 0,
            Dim::B => 1,
            Dim::Q => 2,
            Dim::N => 3,
            Dim::P => 4,
            Dim::Many => 5,
            Dim::Held => 6,
            Dim::Whole => 7,
            Dim::New => 8,
            Dim::Packed => 9,
            Dim::Residual => 10,
            Dim::Flush => 11,
            Dim::C(s) => FIXED + s as usize,
            Dim::Old(s) => FIXED + SLOTS + s as usize,
            Dim::Pad(s) => FIXED + 2 * SLOTS + s as usize,
            Dim::Rolled(s) => FIXED + 3 * SLOTS + s as usize,
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

    /// What generation keeps around a pass: its lengths, and whether scores of a step before are held.
    pub(super) fn generation(&mut self, whole: u64, new: u64, held: bool) {
        self.0[Dim::Whole.index()] = whole;
        self.0[Dim::New.index()] = new;
        self.0[Dim::Held.index()] = if held { self.0[Dim::B.index()] } else { 0 };
    }

    /// What a quantised cache holds, and whether a pass packs it anew.
    pub(super) fn quantised(&mut self, packed: u64, residual: u64, flushed: bool) {
        self.0[Dim::Packed.index()] = packed;
        self.0[Dim::Residual.index()] = residual;
        self.0[Dim::Flush.index()] = if flushed { packed + residual } else { 0 };
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

impl Dims {
    /// The product of three dimensions.
    #[inline]
    pub(super) fn product(&self, [a, b, c]: [Dim; 3]) -> u64 {
        self.0[a.index()].saturating_mul(self.0[b.index()]).saturating_mul(self.0[c.index()])
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
        self.raw(at).saturating_add(511) & !511
    }

    /// Bytes before rounding.
    #[inline]
    pub(super) fn raw(&self, at: &Dims) -> u64 {
        let [a, b, c] = self.dims;
        self.coefficient
            .saturating_mul(at.0[a.index()])
            .saturating_mul(at.0[b.index()])
            .saturating_mul(at.0[c.index()])
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
#[derive(Clone, Debug, Default)]
pub(super) struct Stage {
    /// Blocks alive.
    members: Vec<u32>,
    /// The operator that had just run.
    pub(super) op: &'static str,
    /// Part of the forward pass.
    pub(super) part: &'static str,
    /// Layer index, where inside one.
    pub(super) layer: Option<u32>,
}

/// What is asked of a tape: the peak at known lengths, or every stage for any lengths.
#[derive(Debug)]
enum Mode {
    Peak { at: Box<Dims>, now: u64, best: u64, stage: Stage },
    Stages(Vec<Stage>),
}

/// Blocks and stages of one forward pass.
#[derive(Debug)]
pub(super) struct Tape {
    blocks: Vec<Block>,
    /// Bytes of each block where lengths are known.
    bytes: Vec<u64>,
    live: Vec<u32>,
    mode: Mode,
    rising: bool,
    part: &'static str,
    layer: Option<u32>,
}

impl Tape {
    /// A tape that finds the peak at `at`.
    pub(super) fn peak_at(at: Dims) -> Tape {
        Tape::new(Mode::Peak { at: Box::new(at), now: 0, best: 0, stage: Stage::default() })
    }

    /// A tape that keeps every stage.
    pub(super) fn symbolic() -> Tape {
        Tape::new(Mode::Stages(Vec::with_capacity(256)))
    }

    fn new(mode: Mode) -> Tape {
        Tape {
            blocks: Vec::with_capacity(512),
            bytes: Vec::with_capacity(512),
            live: Vec::with_capacity(64),
            mode,
            rising: false,
            part: "",
            layer: None,
        }
    }

    /// Names where the next operators belong.
    pub(super) fn enter(&mut self, part: &'static str, layer: Option<u32>) {
        self.settle();
        self.part = part;
        self.layer = layer;
    }

    pub(super) fn alloc(&mut self, block: Block) -> Id {
        let id = self.blocks.len() as u32;
        if let Mode::Peak { at, now, .. } = &mut self.mode {
            let bytes = block.bytes(at);
            *now = now.saturating_add(bytes);
            self.bytes.push(bytes);
        }
        self.blocks.push(block);
        self.live.push(id);
        self.rising = true;
        Id(id)
    }

    pub(super) fn free(&mut self, id: Id) {
        self.settle();
        if let Some(at) = self.live.iter().rposition(|&l| l == id.0) {
            self.live.remove(at);
            self.forget(id.0);
        }
    }

    fn forget(&mut self, block: u32) {
        if let Mode::Peak { now, .. } = &mut self.mode {
            *now = now.saturating_sub(self.bytes[block as usize]);
        }
    }

    /// Records the present as a stage if something was allocated since the last one.
    pub(super) fn settle(&mut self) {
        if !self.rising {
            return;
        }
        self.rising = false;
        let op = self.live.last().map_or("", |&l| self.blocks[l as usize].op);
        match &mut self.mode {
            Mode::Peak { now, best, stage, .. } => {
                if *now > *best {
                    *best = *now;
                    stage.members.clear();
                    stage.members.extend_from_slice(&self.live);
                    (stage.op, stage.part, stage.layer) = (op, self.part, self.layer);
                }
            }
            Mode::Stages(stages) => {
                let members = self.live.clone();
                stages.push(Stage { members, op, part: self.part, layer: self.layer });
            }
        }
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
        self.recount();
    }

    /// Drops every live block that `keep` does not name.
    pub(super) fn retain(&mut self, keep: impl Fn(&Block) -> bool) {
        self.settle();
        let blocks = &self.blocks;
        self.live.retain(|&l| keep(&blocks[l as usize]));
        self.recount();
    }

    fn recount(&mut self) {
        if let Mode::Peak { now, .. } = &mut self.mode {
            let bytes = &self.bytes;
            *now = self.live.iter().fold(0, |sum: u64, &l| sum.saturating_add(bytes[l as usize]));
        }
    }

    pub(super) fn blocks_of(&self, stage: &Stage) -> impl Iterator<Item = &Block> {
        stage.members.iter().map(|&m| &self.blocks[m as usize])
    }

    /// The blocks alive at the end that `keep` names, as a sum.
    pub(super) fn last_sum(&self, keep: impl Fn(&Block) -> bool) -> Sum {
        let live = self.live.iter().map(|&l| &self.blocks[l as usize]);
        Sum::of(live.filter(|b| keep(b)).map(|b| Addend::of(b, false)))
    }

    /// The highest stage and its bytes, of a tape made to find it.
    pub(super) fn peak(&self) -> Option<(Stage, u64)> {
        match &self.mode {
            Mode::Peak { best, stage, .. } => Some((stage.clone(), *best)),
            Mode::Stages(_) => None,
        }
    }

    /// The stages that can be the highest at some point, as sums: what the surface evaluates.
    ///
    /// A stage is left out where another holds at least as much whatever the lengths; `near` only decides
    /// the order of comparison. Tensors not a multiple of 512 bytes are compared unrounded, so a sum may
    /// be short by up to 512 bytes for each of those. With `one_length` the pass sees what it is given: keys,
    /// queries and prompt are the same tokens.
    pub(super) fn peaks(&self, near: &Dims, one_length: bool) -> Vec<Sum> {
        let Mode::Stages(stages) = &self.mode else { return Vec::new() };
        let addends: Vec<Addend> = self.blocks.iter().map(|b| Addend::of(b, one_length)).collect();
        let mut sums: Vec<(u64, Sum)> = stages
            .iter()
            .map(|stage| Sum::of(stage.members.iter().map(|&m| addends[m as usize])))
            .map(|sum| (sum.bytes(near), sum))
            .collect();
        sums.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut kept: Vec<Sum> = Vec::new();
        let mut cover = Cover::default();
        for (_, sum) in sums {
            if !cover.holds(&sum) {
                cover.push(&sum);
                kept.push(sum);
            }
        }
        kept
    }
}
