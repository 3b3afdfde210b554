//! Series for the plots: memory against tokens and against sequences, and the plane of both.

use super::limits::{largest, largest_throughout};
use crate::engines::{Engine, Inputs, ServeSettings, Surface, engine};
use crate::memory::{self, Ledger, TermId};
use crate::units::Problem;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Tokens of each sequence, prompt and answer together.
    Tokens,
    /// Sequences alive at once.
    Sequences,
}

/// One sample of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Value on the axis.
    pub x: u64,
    /// Bytes of each term at the highest peak, in the series' order of terms.
    pub terms: Vec<u64>,
    /// Their sum.
    pub total: u64,
    /// Low end of its range.
    pub low: u64,
    /// High end of its range.
    pub high: u64,
    /// Bytes of keys, values and states that this load really occupies: less than the term of an engine that
    /// takes a pool beforehand.
    pub used: u64,
    /// Whether this load is served.
    pub fits: bool,
}

/// Memory against one axis, stacked by term.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What is varied.
    pub axis: Axis,
    /// Terms from bottom to top; only those that are ever above zero.
    pub terms: Vec<TermId>,
    /// Samples by rising x.
    pub samples: Vec<Sample>,
    /// Device total.
    pub device_total: u64,
    /// The engine's budget.
    pub budget: u64,
    /// The largest value up to which all are served; the next is not. None where all that is asked fits or nothing
    /// does.
    pub crossing: Option<u64>,
    /// The value of the job itself.
    pub here: u64,
}

/// The tokens x sequences plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// Tokens of each column, rising.
    pub tokens: Vec<u64>,
    /// Sequences of each row, rising.
    pub sequences: Vec<u64>,
    /// Peak bytes, row by row.
    pub peak: Vec<u64>,
    /// Whether the load is served, row by row.
    pub fits: Vec<bool>,
    /// Most sequences served at the tokens of each column, exact; 0 for none.
    pub frontier: Vec<u64>,
    /// Device total.
    pub device_total: u64,
    /// The job's own tokens and sequences.
    pub here: (u64, u64),
}

/// Whole numbers from 1 to `most`, `n` of them at most, evenly spaced on a logarithmic scale.
pub fn geometric(most: u64, n: usize) -> Vec<u64> {
    let (most, n) = (most.max(1), n.max(2));
    let step = (most as f64).ln() / (n - 1) as f64;
    let mut all: Vec<u64> = (0..n).map(|i| ((step * i as f64).exp().round() as u64).clamp(1, most)).collect();
    all.dedup();
    all
}

/// Longest sequence worth asking about: what the model or the engine allows.
pub fn most_tokens(inputs: &Inputs<'_>) -> u64 {
    let model = match inputs.model.max_position_embeddings {
        0 => 1 << 17,
        n => n,
    };
    let own = inputs.serve.prompt_tokens.saturating_add(inputs.serve.new_tokens);
    inputs.serve.max_model_len.unwrap_or(model).max(own).max(2)
}

/// Most sequences worth showing: twice what fits of this length, and at least what is asked.
pub fn most_sequences(surface: &dyn Surface, inputs: &Inputs<'_>) -> u64 {
    let tokens = own_tokens(inputs);
    let fit = largest(1 << 20, |n| surface.at_tokens(n, tokens, inputs.serve.new_tokens).fits);
    fit.saturating_mul(2).clamp(8, 1 << 16).max(inputs.serve.sequences.saturating_mul(2))
}

fn own_tokens(inputs: &Inputs<'_>) -> u64 {
    inputs.serve.prompt_tokens.saturating_add(inputs.serve.new_tokens).max(1)
}

/// The job's settings with `x` on the axis. The answer keeps its length where the tokens allow.
fn at(inputs: &Inputs<'_>, axis: Axis, x: u64) -> ServeSettings {
    let mut settings = inputs.serve.clone();
    match axis {
        Axis::Sequences => settings.sequences = x,
        Axis::Tokens => {
            settings.new_tokens = inputs.serve.new_tokens.min(x.saturating_sub(1));
            settings.prompt_tokens = (x - settings.new_tokens).max(1);
        }
    }
    settings
}

/// Memory against `axis`, in about `samples` samples, the crossing point and its neighbour among them.
///
/// Errors: what the engine does not accept.
pub fn series(inputs: &Inputs<'_>, axis: Axis, samples: usize) -> Result<Series, Problem> {
    let engine = engine(&inputs.serve.engine)?;
    let surface = engine.surface(inputs)?;
    let most = match axis {
        Axis::Tokens => most_tokens(inputs),
        Axis::Sequences => most_sequences(&*surface, inputs),
    };
    let point = |x: u64| match axis {
        Axis::Tokens => surface.at_tokens(inputs.serve.sequences, x, inputs.serve.new_tokens),
        Axis::Sequences => surface.at_tokens(x, own_tokens(inputs), inputs.serve.new_tokens),
    };
    let served = |x: u64| point(x).fits;
    let crossing = match axis {
        Axis::Tokens => largest_throughout(most, served),
        Axis::Sequences => largest(most, served),
    };
    let crossing = Some(crossing).filter(|x| *x > 0 && *x < most);
    // What lies far beyond the crossing would only squeeze the part that matters.
    let most = match (axis, crossing) {
        (Axis::Tokens, Some(x)) => most.min(x.saturating_mul(3).max(own_tokens(inputs).saturating_mul(2))),
        _ => most,
    };
    let here = match axis {
        Axis::Tokens => own_tokens(inputs),
        Axis::Sequences => inputs.serve.sequences,
    };
    // A linear axis: growth with tokens and sequences is linear, and should look so.
    let n = samples.max(2) as u64;
    let part = |i: u64| (u128::from(most - 1) * u128::from(i) / u128::from(n - 1)) as u64;
    let mut xs: Vec<u64> = (0..n).map(|i| 1 + part(i)).collect();
    xs.push(here.min(most));
    if let Some(x) = crossing {
        xs.extend([x, x + 1]);
    }
    xs.sort_unstable();
    xs.dedup();
    let ledgers = xs
        .iter()
        .map(|x| Ok((*x, ask(engine, inputs, &at(inputs, axis, *x))?)))
        .collect::<Result<Vec<_>, Problem>>()?;
    let present = |id: &TermId| ledgers.iter().any(|(_, l)| at_peak(l, *id) > 0);
    let terms: Vec<TermId> = TermId::ALL.iter().copied().filter(present).collect();
    let (device_total, budget) =
        ledgers.first().map_or((0, 0), |(_, l)| (l.device.total_bytes, l.device.budget_bytes));
    let samples = ledgers
        .into_iter()
        .map(|(x, ledger)| {
            let point = point(x);
            Sample {
                x,
                terms: terms.iter().map(|id| at_peak(&ledger, *id)).collect(),
                total: ledger.peak_bytes,
                low: ledger.peak.low,
                high: ledger.peak.high,
                used: point.kv_bytes,
                fits: point.fits,
            }
        })
        .collect();
    Ok(Series { axis, terms, samples, device_total, budget, crossing, here })
}

fn ask(engine: &dyn Engine, inputs: &Inputs<'_>, settings: &ServeSettings) -> Result<Ledger, Problem> {
    engine.figures(&Inputs { serve: settings, ..*inputs })
}

/// Bytes of the term at the highest phase; 0 where it is not alive then.
fn at_peak(ledger: &Ledger, id: TermId) -> u64 {
    memory::at_peak(&ledger.terms, &ledger.phases).find(|t| t.id == id).map_or(0, |t| t.bytes)
}

/// The plane of `columns` x `rows` cells on logarithmic scales.
///
/// Errors: what the engine does not accept.
pub fn plane(inputs: &Inputs<'_>, columns: usize, rows: usize) -> Result<Plane, Problem> {
    let surface = engine(&inputs.serve.engine)?.surface(inputs)?;
    let answer = inputs.serve.new_tokens;
    let tokens = geometric(most_tokens(inputs), columns);
    // High enough that the frontier of short sequences is in the picture.
    let short = (most_tokens(inputs) / 16).max(1);
    let most = largest(1 << 16, |n| surface.at_tokens(n, short, answer).fits).clamp(8, 1 << 16);
    let sequences = geometric(most.max(inputs.serve.sequences), rows);
    let cells = tokens.len() * sequences.len();
    let (mut peak, mut fits) = (Vec::with_capacity(cells), Vec::with_capacity(cells));
    for s in &sequences {
        for t in &tokens {
            let point = surface.at_tokens(*s, *t, answer);
            peak.push(point.peak_bytes);
            fits.push(point.fits);
        }
    }
    let frontier =
        tokens.iter().map(|t| largest(1 << 20, |n| surface.at_tokens(n, *t, answer).fits)).collect();
    Ok(Plane {
        tokens,
        sequences,
        peak,
        fits,
        frontier,
        device_total: inputs.device.total_bytes,
        here: (own_tokens(inputs), inputs.serve.sequences),
    })
}
