//! Growth: effect size, straightness and many small steps, not significance.

use super::curve::{Curve, line, passages};

/// A rise that goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Units of the curve per unit of its time.
    pub slope: f64,
    /// By how much it rose.
    pub rise: f64,
    /// Over which time.
    pub span: f64,
    /// Straightness.
    pub r2: f64,
}

/// The least rise, MiB: eight pages of 2 MiB, by which the driver hands out memory.
const LEAST_RISE: f64 = 16.0;
/// Fewer readings are no trend.
const LEAST_READINGS: usize = 30;
/// A load takes seconds to minutes; a rise must outlast it. Seconds.
const LEAST_SPAN: f64 = 120.0;
/// How straight: the two long leaks known to us have 0.96 and above 0.99, the level logs at most 0.81 (two
/// leaks only, so this is a choice, not a fit).
const STRAIGHT: f64 = 0.9;
/// Rises to a new highest value. A staircase has a handful.
const LEAST_RECORDS: usize = 12;

fn half_slopes(t: &[f64], x: &[f64]) -> (f64, f64) {
    let mid = t.len() / 2;
    (line(&t[..mid], &x[..mid]).0, line(&t[mid..], &x[mid..]).0)
}

/// Whether a window is growth.
fn window(curve: &Curve, from: usize, to: usize) -> Option<Growth> {
    let (t, x) = (&curve.t[from..to], &curve.x[from..to]);
    if t.len() < LEAST_READINGS {
        return None;
    }
    let span = t[t.len() - 1] - t[0];
    let (slope, r2) = line(t, x);
    let rise = slope * span;
    let step = x.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
    let mut best = x[0];
    let records = x
        .iter()
        .filter(|v| {
            **v > best && {
                best = **v;
                true
            }
        })
        .count();
    let (first, second) = half_slopes(t, x);
    let least = if curve.share { 100.0 } else { LEAST_RISE };
    // A load that flattens out is no growth: its second half must keep a quarter of the first half's pace, and
    // so must its last quarter.
    let (_, last) = half_slopes(&t[t.len() / 2..], &x[x.len() / 2..]);
    let holds = rise >= least
        && r2 >= STRAIGHT
        && step <= 0.5 * rise
        && second >= 0.25 * first
        && last >= 0.25 * slope
        && records >= LEAST_RECORDS
        && (!curve.timed || span >= LEAST_SPAN);
    holds.then_some(Growth { slope, rise, span, r2 })
}

/// Growth in the longest run: the whole of it, without its first fifth, or after its last large step. The window
/// must be half of the run, else it is one level among others.
pub fn growth(curve: &Curve) -> Option<Growth> {
    let runs = curve.runs();
    let (from, to) = runs.into_iter().max_by_key(|(a, b)| b - a)?;
    let n = to - from;
    if n < LEAST_READINGS || n * 4 < curve.x.len() {
        return None;
    }
    let x = &curve.x[from..to];
    let (lo, hi) = x.iter().fold((f64::MAX, 0.0f64), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
    let large = (hi - lo) * 0.25;
    let after = x.windows(2).rposition(|w| (w[1] - w[0]).abs() > large).map_or(0, |i| i + 1);
    [0, n / 5, after, after + (n - after) / 5]
        .into_iter()
        .filter(|skip| (n - skip) * 2 >= n)
        .filter_map(|skip| window(curve, from + skip, to))
        .max_by(|a, b| a.r2.total_cmp(&b.r2))
}

/// A steep rise to the limit with which the log ends: a fifth of the card within the last third of the readings,
/// at most two of them at the top.
pub fn to_the_limit(curve: &Curve) -> Option<Growth> {
    let limit = curve.limit?;
    let n = curve.x.len();
    let (last, from) = (curve.x[n - 1], n - n / 3 - 1);
    let top = curve.x.iter().filter(|v| **v >= curve.hi - 0.02 * limit).count();
    let rise = last - curve.x[from];
    let span = curve.t[n - 1] - curve.t[from];
    let holds =
        n >= 8 && last >= 0.9 * limit && last >= curve.hi - 0.01 * limit && rise > 0.2 * limit && top <= 2;
    holds.then(|| Growth {
        slope: if span > 0.0 { rise / span } else { 0.0 },
        rise,
        span,
        r2: line(&curve.t[from..], &curve.x[from..]).1,
    })
}

/// Growth of the lowest points of cycles: what stays when each cycle has given back its own. `lo` and `hi` bound
/// the cycles. At least six troughs; the first is left out, since contexts and libraries load there.
pub fn floor(curve: &Curve, from: usize, to: usize, lo: f64, hi: f64) -> Option<Growth> {
    let x = &curve.x[from..to];
    let (rises, falls) = passages(x, lo, hi);
    let mut troughs = Vec::new();
    for fall in &falls {
        let Some(rise) = rises.iter().find(|r| *r > fall) else { break };
        let low = (*fall..*rise).min_by(|a, b| x[*a].total_cmp(&x[*b]))?;
        troughs.push(from + low);
    }
    let troughs = troughs.get(1..)?;
    if troughs.len() < 6 {
        return None;
    }
    // The lowest of neighbouring troughs: sampling meets some cycles before they have emptied.
    let width = (troughs.len() / 12).max(1);
    let lows: Vec<usize> = troughs
        .chunks(width)
        .filter_map(|c| c.iter().copied().min_by(|a, b| curve.x[*a].total_cmp(&curve.x[*b])))
        .collect();
    let t: Vec<f64> = lows.iter().map(|i| curve.t[*i]).collect();
    let x: Vec<f64> = lows.iter().map(|i| curve.x[*i]).collect();
    let (slope, r2) = line(&t, &x);
    let span = t[t.len() - 1] - t[0];
    let rise = slope * span;
    let (first, second) = half_slopes(&t, &x);
    let least = if curve.share { 100.0 } else { 2.0 * LEAST_RISE };
    (lows.len() >= 6
        && rise >= least.max(0.02 * (hi - lo))
        && r2 >= STRAIGHT
        && second >= 0.25 * first
        && (!curve.timed || span >= LEAST_SPAN))
        .then_some(Growth { slope, rise, span, r2 })
}
