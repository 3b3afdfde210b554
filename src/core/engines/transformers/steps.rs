//! The passes of a job in time order: prefill, the first decode step, the last one, and choosing tokens between.

use super::layout::{Lengths, Step};
use crate::engines::CacheImpl;
use crate::memory::PhaseId;

/// A static cache that a plain call is given, at no given length, is taken as rounded up to this many tokens, as
/// such caches are made: an unaligned length makes masked kernels copy their mask for every head.
const STATIC_STEP: u64 = 128;

/// Tokens a static cache is allocated for: `generate` makes it as long as the request, or longer where
/// `max_cache_len` says so.
pub(super) fn longest(max_model_len: Option<u64>, prompt: u64, new: u64) -> u64 {
    let needed = prompt.saturating_add(new);
    match max_model_len {
        Some(len) => len.max(needed),
        None if new > 1 => needed,
        None => needed.checked_next_multiple_of(STATIC_STEP).unwrap_or(needed),
    }
}

/// One forward pass, or the choice of tokens after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// `Sampling`: not the step itself, but what follows it.
    pub(super) phase: PhaseId,
    pub(super) step: Step,
    /// Prompt tokens as the pass sees them.
    pub(super) prompt: u64,
    /// Tokens were chosen before it.
    pub(super) later: bool,
}

/// The passes that can be the highest of a job.
pub(super) fn passes(lengths: &Lengths, prompt: u64, new: u64) -> impl Iterator<Item = Pass> {
    let pass = |phase, step, prompt, later| Some(Pass { phase, step, prompt, later });
    let whole = prompt.saturating_add(new);
    let past = prompt.saturating_add(new.saturating_sub(1));
    let last = Step::Decode { past, first: false };
    let decodes = match (lengths.cache, new) {
        (_, 0) => [None, None],
        // Without a cache every step runs the whole sequence again.
        (CacheImpl::None, _) => [pass(PhaseId::Decode, Step::Prefill, whole, true), None],
        _ => {
            let first = Step::Decode { past: prompt, first: true };
            let last = if new > 1 { pass(PhaseId::Decode, last, prompt, true) } else { None };
            [pass(PhaseId::Decode, first, prompt, true), last]
        }
    };
    let mut choices = [None, None];
    if lengths.generates && new > 0 {
        choices[0] = pass(PhaseId::Sampling, Step::Prefill, prompt, false);
        // One new token is chosen after prefill; the step that follows is a plain call.
        choices[1] = decodes.iter().flatten().last().filter(|_| new > 1).copied();
        if let Some(choice) = &mut choices[1] {
            choice.phase = PhaseId::Sampling;
        }
    }
    let prefill = pass(PhaseId::Prefill, Step::Prefill, prompt, false);
    [prefill, decodes[0], decodes[1], choices[0], choices[1]].into_iter().flatten()
}
