//! The shape of one curve: the first rule that fits.

use super::curve::{Curve, passages, quantile, sorted};
use super::{Flag, Shape, Verdict, flags, growth, why};
use crate::trace::timeline::Series;

/// The active part of a curve and its levels.
pub struct Part {
    /// First sample.
    pub from: usize,
    /// One past the last.
    pub to: usize,
    /// Its low level: the 3 % quantile.
    pub lo: f64,
    /// Its high level: the 98 % quantile.
    pub hi: f64,
    /// Its median.
    pub mid: f64,
    /// Rises through its middle.
    pub rises: Vec<usize>,
    /// Falls through its middle.
    pub falls: Vec<usize>,
}

impl Part {
    fn new(curve: &Curve) -> Part {
        let (from, to) = curve.active();
        let x = &curve.x[from..to];
        let order = sorted(x);
        let (lo, hi) = (quantile(&order, 0.03), quantile(&order, 0.98));
        let (rises, falls) = passages(x, lo, hi);
        Part { from, to, lo, hi, mid: quantile(&order, 0.5), rises, falls }
    }

    fn range(&self) -> f64 {
        self.hi - self.lo
    }

    /// Whether the rises come in a regular beat: three in four distances lie within a third of the usual one.
    fn regular(&self) -> bool {
        let steps: Vec<f64> = self.rises.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        if steps.len() < 2 {
            return false;
        }
        let usual = quantile(&sorted(&steps), 0.5);
        let near = steps.iter().filter(|s| (**s - usual).abs() <= usual / 3.0).count();
        // Distances of one or two samples are as regular as sampling makes them.
        usual >= 3.0 && near * 4 >= steps.len() * 3
    }
}

/// The curve of the longest session (the last of equals), and their number: a clock that falls back starts a
/// new one, which is another run and must not be joined.
fn longest_session(series: &Series) -> (Curve, usize) {
    let whole = Curve::new(series);
    let step = whole.step();
    let mut starts = vec![0];
    if whole.timed {
        starts.extend((1..whole.t.len()).filter(|i| whole.t[*i] < whole.t[*i - 1] - 1.5 * step));
    }
    // Many falls are two writers with two clocks, not sessions.
    if starts.len() == 1 || starts.len() > 20 {
        return (whole, 1);
    }
    let ends = starts.iter().skip(1).copied().chain([whole.t.len()]);
    let best = starts.iter().copied().zip(ends).max_by_key(|(a, b)| b - a).unwrap_or((0, 0));
    let mut part = series.clone();
    part.samples = series.samples.get(best.0..best.1).unwrap_or_default().to_vec();
    (Curve::new(&part), starts.len())
}

/// Judges one series.
pub fn judge(series: &Series) -> Verdict {
    let (curve, sessions) = longest_session(series);
    let mut out = Verdict {
        shape: Shape::Insufficient,
        flags: Vec::new(),
        confidence: 1.0,
        why: why::insufficient(curve.x.len()),
        growth_mib_per_min: None,
        minutes_to_full: None,
        runs: 0,
    };
    if series.lost.is_some() {
        out.flags.push(Flag::Lost);
    }
    if sessions > 1 {
        out.flags.push(Flag::Restarts);
    }
    if curve.x.len() < 5 {
        return out;
    }
    let part = Part::new(&curve);
    let (shape, clear, grown) = shape(&curve, &part);
    out.shape = shape;
    out.runs = curve.runs().len();
    out.why = why::why(&curve, &part, shape, grown, out.runs);
    if shape != Shape::Insufficient {
        flags::add(&curve, &part, shape, &mut out.flags);
    }
    let grown = grown.or_else(|| {
        let cycles = part.rises.len() >= 6;
        let floor = if cycles { growth::floor(&curve, part.from, part.to, part.lo, part.hi) } else { None };
        if let Some(floor) = floor {
            out.flags.push(Flag::RisingFloor);
            out.why = why::floor(&curve, floor);
        }
        floor
    });
    if let Some(grown) = grown.filter(|_| curve.timed && !curve.share) {
        out.growth_mib_per_min = Some(grown.slope * 60.0);
        if grown.slope > 0.0
            && let Some(limit) = curve.limit
        {
            out.minutes_to_full = Some(((limit - curve.x[curve.x.len() - 1]) / grown.slope / 60.0).max(0.0));
        }
    }
    // Few readings make any shape less sure: halved at five.
    let n = curve.x.len() as f64;
    out.confidence = (clear * n / (n + 5.0) * 100.0).round() / 100.0;
    out
}

/// The shape, how clear it is, and the growth behind it.
fn shape(curve: &Curve, part: &Part) -> (Shape, f64, Option<growth::Growth>) {
    let n = curve.x.len();
    let range = curve.hi - curve.lo;
    // Before anything else: a leak's whole rise can be less than what counts as level.
    if let Some(grown) = growth::growth(curve) {
        return (Shape::Growth, grown.r2, Some(grown));
    }
    if range <= curve.floor() {
        return (level(curve, part.mid), 0.98, None);
    }
    if n < 8 {
        return (Shape::Insufficient, 1.0, None);
    }
    if let Some(grown) = growth::to_the_limit(curve) {
        return (Shape::Growth, 0.85, Some(grown));
    }
    if idle(curve, part) {
        return (Shape::Idle, 0.85, None);
    }
    let (lead, tail) = (part.from > 0, part.to < n);
    let high = curve.x.iter().filter(|v| **v > curve.lo + 0.5 * range).count();
    // High for less than a twelfth of the log, once.
    if lead && tail && part.falls.is_empty() && (high * 12 <= n || high <= 2) {
        return (Shape::Spike, 0.9, None);
    }
    if is_pool(curve, part) {
        return (Shape::Pool, 0.9, None);
    }
    let back = flags::returns(curve, part);
    if back && part.rises.len() < 3 {
        // Down to the bottom and up again once or twice.
        return if high * 4 < n { (Shape::Bursts, 0.7, None) } else { (Shape::OnOff, 0.75, None) };
    }
    if part.range() > curve.floor() {
        if part.rises.len() >= 3 && part.falls.len() >= 2 {
            return cycles(curve, part);
        }
        if staircase(curve, part) {
            return (Shape::Staircase, 0.85, None);
        }
    }
    if !lead && !tail && part.range() <= 0.15 * part.hi {
        return (level(curve, part.mid), 0.7, None);
    }
    (Shape::RampPlateau, 0.85, None)
}

/// A level by its height.
fn level(curve: &Curve, height: f64) -> Shape {
    if curve.limit.is_some_and(|limit| height >= 0.9 * limit) {
        Shape::Pool
    } else if height <= curve.idle() {
        Shape::Idle
    } else {
        Shape::Flat
    }
}

/// Idle with noise: a desktop's programs, or a single reading that stands out. No load stays up in it.
fn idle(curve: &Curve, part: &Part) -> bool {
    let n = curve.x.len();
    let order = sorted(&curve.x);
    let inner = quantile(&order, 0.99) - quantile(&order, 0.01);
    if inner <= curve.floor() && curve.hi <= curve.idle() {
        return true;
    }
    // A desktop holds at most some 1.5 GiB and moves by a few hundred MiB; what it opened it closes. From two
    // desktop logs, so a rule of thumb.
    let range = curve.hi - curve.lo;
    let small = curve.limit.is_some_and(|l| range <= 0.05 * l && quantile(&order, 0.5) <= 0.1 * l);
    small
        && range < 512.0
        && quantile(&order, 0.5) <= 1536.0
        && curve.x[n - 1] <= curve.x[0] + 0.2 * range
        && part.from == 0
        && part.rises.len() < 5
}

/// Whether the high part is one level at 90 % of the limit or more.
fn is_pool(curve: &Curve, part: &Part) -> bool {
    let Some(limit) = curve.limit else { return false };
    let x = &curve.x[part.from..part.to];
    let high: Vec<f64> = x.iter().copied().filter(|v| *v >= 0.5 * curve.hi).collect();
    let at = high.iter().filter(|v| **v >= 0.9 * limit).count();
    // Taken in few steps: nine in ten readings of the part stand at the level.
    at * 10 >= high.len() * 9 && at >= 3
}

/// Cycles: regular, two levels by turns, irregular, or a level that wavers.
fn cycles(curve: &Curve, part: &Part) -> (Shape, f64, Option<growth::Growth>) {
    let x = &curve.x[part.from..part.to];
    let range = part.range();
    let regular = part.regular() && part.rises.len() >= 5;
    let high = x.iter().filter(|v| **v > part.lo + 0.5 * range).count();
    let dwell = high as f64 / part.rises.len().max(1) as f64;
    // More than half stays: the level never empties, it wavers. Regular short peaks on a base are cycles still.
    if part.lo > 0.5 * part.hi && !(regular && high * 4 < x.len()) {
        let wavers = part.lo > 0.5 * part.hi;
        let shape = if part.from > 0 { Shape::RampPlateau } else { level(curve, part.mid) };
        return (shape, if wavers { 0.75 } else { 0.6 }, None);
    }
    let near = |level: f64| x.iter().filter(|v| (**v - level).abs() <= 0.15 * range).count();
    // Two levels: nearly all readings stand at one of them, and the high ones among them at the high one.
    let settled = (near(part.lo) + near(part.hi)) * 5 >= x.len() * 4 && near(part.hi) * 5 >= high * 3;
    if regular || part.regular() && !settled || dwell <= 3.0 && high * 4 >= x.len() {
        return (Shape::Sawtooth, if regular { 0.9 } else { 0.7 }, None);
    }
    if settled {
        return (Shape::OnOff, 0.8, None);
    }
    (Shape::Bursts, 0.65, None)
}

/// Whether the rise is several levels, each held, that go on for a good part of it: three steps, or two between
/// levels that are each held for a while.
fn staircase(curve: &Curve, part: &Part) -> bool {
    let x = &curve.x[part.from..part.to];
    let least = (0.05 * (part.hi - curve.lo)).max(32.0);
    // The lengths of the levels; a new one begins where the curve stays above the last by more than noise.
    let mut levels = Vec::from_iter((part.from > 0).then_some(part.from));
    let (mut now, mut climb) = (if part.from > 0 { curve.lo } else { x[0] }, 0);
    if part.from == 0 {
        levels.push(0);
    }
    for (i, v) in x.iter().enumerate() {
        let held = x.get(i + 1).is_some_and(|next| (next - v).abs() <= least);
        if *v > now + least && held {
            levels.push(0);
            (now, climb) = (*v, i);
        }
        if let Some(length) = levels.last_mut() {
            *length += 1;
        }
    }
    let falls = x.windows(2).filter(|w| w[0] - w[1] > least).count();
    // Half of the way up is made in steps: a smooth load is no staircase.
    let sudden: f64 = x.windows(2).map(|w| w[1] - w[0]).filter(|d| *d > 0.5 * least).sum();
    let way = part.hi - if part.from > 0 { x[0] } else { part.lo };
    if sudden < 0.5 * way {
        return false;
    }
    let steps = levels.len() - 1;
    let long = levels.iter().all(|length| length * 7 >= x.len());
    falls * 3 <= steps && climb * 4 > x.len() && (steps >= 3 || (steps == 2 && long))
}
