//! The inverse for options that are shares or batches, and the frontier with what stops it. Kept apart from
//! [`super::limits`]: each value needs the engine started anew, which costs more than a point of its surface.

use super::limits::{Asked, largest};
use super::projection::{geometric, most_tokens};
use crate::engines::{Engine, Inputs, ServeSettings, Stop, engine};
use crate::memory::{TermId, Verdict};
use crate::units::Problem;
use serde::Serialize;

/// Options that are a share of memory, each with the way to set it.
type Share = (&'static str, fn(&mut ServeSettings, f64));

const SHARES: &[Share] = &[
    ("gpu_memory_utilization", |s, x| s.gpu_memory_utilization = Some(x)),
    ("mem_fraction_static", |s, x| s.mem_fraction_static = Some(x)),
    ("free_gpu_memory_fraction", |s, x| s.free_gpu_memory_fraction = Some(x)),
];

/// Parts of a share that are told apart: three decimals, as people write them.
const PARTS: u64 = 1000;
/// Parts between the shares that are asked first.
const STRIDE: u64 = 20;
/// No engine takes larger steps.
const MOST_BATCHED: u64 = 1 << 20;

/// Smallest and largest share that serve the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareLimit {
    /// The option, by its field.
    pub field: &'static str,
    /// Smallest; a smaller pool does not hold the load.
    pub low: f64,
    /// Largest; a larger one leaves too little for the rest.
    pub high: f64,
}

/// What options can be set to, everything else as given.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OptionLimits {
    /// Largest step of the scheduler that fits; none where it is not memory that bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_num_batched_tokens: Option<u64>,
    /// Shares that serve the load; none where no share does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareLimit>,
}

/// Limits of options of an engine for one job; those that the engine does not take are left out.
pub fn option_limits(engine: &dyn Engine, inputs: &Inputs<'_>) -> OptionLimits {
    let takes = |field: &str| engine.options().iter().any(|o| o.field == field);
    let fits = |settings: ServeSettings| {
        let asked = engine.figures(&Inputs { serve: &settings, ..*inputs });
        asked.is_ok_and(|ledger| ledger.verdict != Verdict::DoesNotFit)
    };
    let mut found = OptionLimits::default();
    if takes("max_num_batched_tokens") {
        // Below one token of each sequence engines refuse for another reason than memory.
        let least = inputs.serve.max_num_seqs.unwrap_or(inputs.serve.sequences).max(1);
        let with = |n: u64| ServeSettings { max_num_batched_tokens: Some(n), ..inputs.serve.clone() };
        let most = MOST_BATCHED.saturating_sub(least);
        found.max_num_batched_tokens = Some(largest(most, |n| fits(with(least - 1 + n))))
            .filter(|n| *n > 0 && *n < most)
            .map(|n| least - 1 + n);
    }
    found.share = SHARES.iter().find(|(field, _)| takes(field)).and_then(|(field, set)| {
        let at = |part: u64| {
            let mut settings = inputs.serve.clone();
            set(&mut settings, part as f64 / PARTS as f64);
            fits(settings)
        };
        share(at).map(|(low, high)| ShareLimit {
            field,
            low: low as f64 / PARTS as f64,
            high: high as f64 / PARTS as f64,
        })
    });
    found
}

/// Smallest and largest part that fits, where those that fit lie together: a few are asked, then the two edges of
/// the run are halved.
fn share(fits: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
    let asked: Vec<u64> = (1..=PARTS / STRIDE).map(|i| i * STRIDE).collect();
    let good: Vec<u64> = asked.into_iter().filter(|part| fits(*part)).collect();
    let (first, last) = (*good.first()?, *good.last()?);
    // Within one stride below the first and above the last, the answer changes once.
    let below = largest(STRIDE.min(first) - 1, |n| fits(first - n));
    let above = largest((PARTS - last).min(STRIDE - 1), |n| fits(last + n));
    Some((first - below, last + above))
}

/// Most sequences of so many tokens, and what stops one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrontierRow {
    /// Tokens of each sequence, prompt and answer together.
    pub tokens: u64,
    /// Most sequences served; 0 for none.
    pub sequences: u64,
    /// The term that breaks first; none where an option forbids it.
    pub stopped_by: Option<TermId>,
}

/// The frontier of context and concurrency at about `rows` lengths.
///
/// Errors: what the engine does not accept.
pub fn frontier(inputs: &Inputs<'_>, rows: usize) -> Result<Vec<FrontierRow>, Problem> {
    let engine = engine(&inputs.serve.engine)?;
    let surface = engine.surface(inputs)?;
    let asked = Asked { engine, inputs };
    let answer = inputs.serve.new_tokens;
    let row = |tokens: u64| {
        let sequences = largest(1 << 20, |n| surface.at_tokens(n, tokens, answer).fits);
        let next = surface.at_tokens(sequences.saturating_add(1), tokens, answer);
        let new = answer.min(tokens.saturating_sub(1));
        let with = |s: &mut ServeSettings, n: u64| {
            s.sequences = n;
            (s.prompt_tokens, s.new_tokens) = ((tokens - new).max(1), new);
        };
        let stopped_by = match next.stop {
            Some(Stop::Option) | None => None,
            Some(_) => asked.term(sequences, next, &with),
        };
        FrontierRow { tokens, sequences, stopped_by }
    };
    Ok(geometric(most_tokens(inputs), rows).into_iter().map(row).collect())
}
