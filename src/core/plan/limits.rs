//! The inverse: the largest value of one setting that fits, everything else as given.

use super::estimate::Limits;
use crate::engines::{Engine, Inputs, ServeSettings};
use crate::memory::{Ledger, TermId};

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

/// Largest context, batch and answer that fit for one job.
///
/// Each is exact: the value fits and the next does not, as the engine's own surface tells. A limit that is not
/// memory's (the model's positions, an option) has no entry in `stopped_by`.
pub fn limits(engine: &dyn Engine, inputs: &Inputs<'_>) -> Limits {
    let mut found = Limits::default();
    let serve = inputs.serve;
    let Ok(surface) = engine.surface(inputs) else { return found };

    let sequences = largest(FAR, |n| surface.at(n, serve.prompt_tokens, serve.new_tokens).fits);
    found.max_sequences = Some(sequences);
    if sequences < FAR {
        note(&mut found, engine, inputs, "max_sequences", |s| s.sequences = sequences.max(1) + 1);
    }

    // The answer can grow until the request is as long as the engine, or the model, allows.
    let longest = longest(inputs);
    let room = serve.max_model_len.unwrap_or(longest).saturating_sub(serve.prompt_tokens);
    let fits = |new: u64| surface.at(serve.sequences, serve.prompt_tokens, new).fits;
    let new_tokens = largest(room, fits);
    found.max_new_tokens = Some(new_tokens);
    if new_tokens < room {
        note(&mut found, engine, inputs, "max_new_tokens", |s| s.new_tokens = new_tokens + 1);
    }

    if engine.options().iter().any(|option| option.field == "max_model_len") {
        let started_for = |n: Option<u64>| {
            let settings = ServeSettings { max_model_len: n, ..serve.clone() };
            engine.surface(&Inputs { serve: &settings, ..*inputs })
        };
        // Without a length, a point stands for an engine started for exactly its tokens: one surface is enough.
        let context = match started_for(None) {
            Ok(surface) => largest(longest, |n| surface.at_tokens(1, n, 1).fits),
            Err(_) => largest(longest, |n| started_for(Some(n)).is_ok_and(|s| s.at_tokens(1, n, 1).fits)),
        };
        found.max_model_len = Some(context);
        if context < longest {
            note(&mut found, engine, inputs, "max_model_len", |s| {
                s.max_model_len = Some(context + 1);
                s.sequences = 1;
            });
        }
    }
    found
}

/// The longest request the model was made for, or [`FAR`] where its config states none.
fn longest(inputs: &Inputs<'_>) -> u64 {
    match inputs.model.max_position_embeddings {
        0 => FAR,
        n => n,
    }
}

/// Names the term that stops `field`: the one that grows most on the step over the limit, or, where the step
/// is too small to tell, the one that grows most from half of it.
fn note(
    found: &mut Limits,
    engine: &dyn Engine,
    inputs: &Inputs<'_>,
    field: &'static str,
    over: impl Fn(&mut ServeSettings),
) {
    let mut beyond = inputs.serve.clone();
    over(&mut beyond);
    let mut half = beyond.clone();
    half.sequences = beyond.sequences.div_ceil(2);
    half.new_tokens = beyond.new_tokens / 2;
    half.max_model_len = beyond.max_model_len.map(|n| n.div_ceil(2));
    if field == "max_new_tokens" {
        half.sequences = beyond.sequences;
        half.max_model_len = beyond.max_model_len;
    }
    let ask = |settings: &ServeSettings| engine.ledger(&Inputs { serve: settings, ..*inputs }).ok();
    let beyond = ask(&beyond);
    if beyond.as_ref().is_some_and(|l| l.warnings.iter().any(|m| m.id == "vllm.more_than_max_num_seqs")) {
        // The option stops it, no term.
        return;
    }
    let stop = match (ask(&half), beyond) {
        (Some(half), Some(beyond)) => grows_most(&half, &beyond),
        _ => None,
    };
    // A pool of fixed size does not grow with the load: what runs out is its room for keys and values.
    found.stopped_by.push((field, stop.unwrap_or(TermId::KvCache)));
}

fn grows_most(small: &Ledger, large: &Ledger) -> Option<TermId> {
    let growth = |id: TermId| {
        let bytes = |l: &Ledger| l.term(id).map_or(0, |t| t.bytes);
        bytes(large).saturating_sub(bytes(small))
    };
    let most = large.terms.iter().map(|t| t.id).max_by_key(|id| growth(*id))?;
    (growth(most) > 0).then_some(most)
}
