//! The inverse: the largest value of one setting that fits, everything else as given.

use super::estimate::Limits;
use crate::engines::training::{self, TrainInputs, TrainSettings};
use crate::engines::{Engine, Inputs, Point, ServeSettings, Stop};
use crate::memory::{Ledger, Term, TermId};

/// Beyond this no engine and no published model goes; a search that gets here is not bounded by memory.
const FAR: u64 = 1 << 24;

/// The largest `n` in `1..=most` for which `fits` holds, given that it holds below some point and not above;
/// 0 where it does not hold for 1. Asks about `2·log2(n)` times.
pub fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if most == 0 || !fits(1) {
        return 0;
    }
    // Double until it fails, then halve the gap.
    let mut good = 1_u64;
    let mut bad = loop {
        let next = good.saturating_mul(2).min(most);
        if next == good {
            return most;
        }
        if !fits(next) {
            break next;
        }
        good = next;
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// Kernels take masks whose width is a multiple of eight elements; others are copied. So memory may fall at every
/// eighth token, and this many lengths in a row tell what holds for all lengths up to them.
const ALIGNED: u64 = 8;

/// The largest `n` in `1..=most` such that every length up to `n` fits; 0 where not even 1 does.
///
/// Unlike [`largest`], it is not led astray by lengths that need less than shorter ones because they are aligned:
/// it asks about a few more, and searches again where one of those does not fit.
pub fn largest_throughout(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let run = |n: u64| (n.saturating_sub(ALIGNED - 1).max(1)..=n).all(&fits);
    let found = largest(most, &fits);
    if found == 0 || run(found) { found } else { largest(found, run) }
}

/// Largest context, batch and answer that fit for one job.
///
/// Each is exact: it and everything below fits and the next does not, as the engine's own surface tells. A limit
/// that is not memory's (the model's positions, an option) has no entry in `stopped_by`.
pub fn limits(engine: &dyn Engine, inputs: &Inputs<'_>) -> Limits {
    let mut found = Limits::default();
    let serve = inputs.serve;
    let Ok(surface) = engine.surface(inputs) else { return found };
    let asked = Asked { engine, inputs };

    let sequences = largest(FAR, |n| surface.at(n, serve.prompt_tokens, serve.new_tokens).fits);
    found.max_sequences = Some(sequences);
    let next = surface.at(sequences + 1, serve.prompt_tokens, serve.new_tokens);
    let beyond = |s: &mut ServeSettings, n: u64| s.sequences = n;
    found.note("max_sequences", asked.term(sequences, next, &beyond));

    // The answer can grow until the request is as long as the engine, or the model, allows.
    let longest = longest(inputs);
    let room = serve.max_model_len.unwrap_or(longest).saturating_sub(serve.prompt_tokens);
    let point = |new: u64| surface.at(serve.sequences, serve.prompt_tokens, new);
    let new_tokens = largest_throughout(room, |new| point(new).fits);
    found.max_new_tokens = Some(new_tokens);
    if new_tokens < room {
        let beyond = |s: &mut ServeSettings, n: u64| s.new_tokens = n;
        found.note("max_new_tokens", asked.term(new_tokens, point(new_tokens + 1), &beyond));
    }

    if engine.options().iter().any(|option| option.field == "max_model_len") {
        let started_for = |n: Option<u64>| {
            let settings = ServeSettings { max_model_len: n, ..serve.clone() };
            engine.surface(&Inputs { serve: &settings, ..*inputs })
        };
        // Without a length, a point stands for an engine started for exactly its tokens: one surface is enough, and
        // it is there already where none was given.
        let started = serve.max_model_len.and_then(|_| started_for(None).ok());
        let open = if serve.max_model_len.is_none() { Some(&surface) } else { started.as_ref() };
        let point = |n: u64| match open {
            Some(surface) => surface.at_tokens(1, n, 1),
            None => started_for(Some(n)).map(|s| s.at_tokens(1, n, 1)).unwrap_or_default(),
        };
        let context = largest_throughout(longest, |n| point(n).fits);
        found.max_model_len = Some(context);
        if context < longest {
            let beyond = |s: &mut ServeSettings, n: u64| {
                s.max_model_len = Some(n);
                s.sequences = 1;
                (s.prompt_tokens, s.new_tokens) = (n.saturating_sub(1).max(1), 1);
            };
            found.note("max_model_len", asked.term(context, point(context + 1), &beyond));
        }
    }
    found
}

/// Largest micro-batch of a training job that fits, everything else as given.
pub fn training_limits(inputs: &TrainInputs<'_>) -> Limits {
    let mut found = Limits::default();
    let total = inputs.device.total_bytes;
    let with = |micro_batch: u64| TrainSettings { micro_batch, ..inputs.train.clone() };
    let fits = |n: u64| {
        let train = with(n);
        let inputs = TrainInputs { train: &train, ..*inputs };
        training::peak_bytes(&inputs).is_ok_and(|peak| peak <= total)
    };
    let most = largest(FAR, fits);
    found.max_micro_batch = Some(most);
    let ledger = |n: u64| {
        let train = with(n);
        training::ledger(&TrainInputs { train: &train, ..*inputs }).ok()
    };
    // What grows most on the way there; where not even one fits, the largest row of that step.
    let stop = ledger(most + 1).and_then(|beyond| {
        let grown = if most == 0 { None } else { grows_most(&ledger(most.div_ceil(2))?, &beyond) };
        grown.or_else(|| beyond.terms.iter().max_by_key(|t| t.bytes).map(|t| t.id))
    });
    found.note("max_micro_batch", stop.filter(|_| most < FAR));
    found
}

impl Limits {
    fn note(&mut self, field: &'static str, stop: Option<TermId>) {
        self.stopped_by.extend(stop.map(|term| (field, term)));
    }
}

/// The longest request the model was made for, or [`FAR`] where its config states none.
fn longest(inputs: &Inputs<'_>) -> u64 {
    match inputs.model.max_position_embeddings {
        0 => FAR,
        n => n,
    }
}

/// A job whose settings are varied.
pub(super) struct Asked<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) inputs: &'a Inputs<'a>,
}

impl Asked<'_> {
    /// The term that stops a setting at `value`, where `next` is the point one beyond and `with` puts a value
    /// into the settings; none where an option does.
    ///
    /// On a device it is the term that grows most from half of the value to beyond it; where not even one fits,
    /// the largest.
    pub(super) fn term(
        &self,
        value: u64,
        next: Point,
        with: &dyn Fn(&mut ServeSettings, u64),
    ) -> Option<TermId> {
        match next.stop? {
            Stop::Option => return None,
            Stop::Pool if value > 0 => return Some(TermId::KvCache),
            Stop::Pool | Stop::Device => {}
        }
        let beyond = self.ledger(value + 1, with)?;
        let grown = match value {
            0 => None,
            _ => grows_most(&self.ledger(value.div_ceil(2), with)?, &beyond),
        };
        // Not even one: the weights where they alone are too much, else the largest of what comes on top.
        let too_much = beyond.term(TermId::Weights).is_some_and(|w| w.bytes > beyond.device.budget_bytes);
        let considered = |t: &&Term| too_much || t.id != TermId::Weights;
        grown.or_else(|| beyond.terms.iter().filter(considered).max_by_key(|t| t.bytes).map(|t| t.id))
    }

    fn ledger(&self, value: u64, with: &dyn Fn(&mut ServeSettings, u64)) -> Option<Ledger> {
        let mut settings = self.inputs.serve.clone();
        with(&mut settings, value);
        self.engine.figures(&Inputs { serve: &settings, ..*self.inputs }).ok()
    }
}

fn grows_most(small: &Ledger, large: &Ledger) -> Option<TermId> {
    let growth = |id: TermId| {
        let bytes = |l: &Ledger| l.terms.iter().filter(|t| t.id == id).map(|t| t.bytes).sum::<u64>();
        bytes(large).saturating_sub(bytes(small))
    };
    let most = large.terms.iter().map(|t| t.id).max_by_key(|id| growth(*id))?;
    (growth(most) > 0).then_some(most)
}
