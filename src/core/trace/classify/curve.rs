//! A series as numbers: MiB over seconds, with its quantiles, its lead, its tail and its cycles.

use crate::trace::timeline::{Quantity, Series};

/// The least change that counts, MiB: drivers and desktop programs move a card by tens of MiB.
const LEAST: f64 = 64.0;

/// A series in MiB (thousandths of a per cent for [`Quantity::Share`]) and seconds (samples without time).
pub struct Curve {
    /// Values.
    pub x: Vec<f64>,
    /// Seconds, or numbers of samples.
    pub t: Vec<f64>,
    /// Whether `t` is time.
    pub timed: bool,
    /// What programs can reach.
    pub limit: Option<f64>,
    /// The device total.
    pub total: Option<f64>,
    /// Per cents without a total.
    pub share: bool,
    /// Lowest and highest.
    pub lo: f64,
    /// Highest.
    pub hi: f64,
}

/// The `q` quantile of sorted values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = ((sorted.len().max(1) - 1) as f64 * q).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

/// Values in order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut out = values.to_vec();
    out.sort_by(f64::total_cmp);
    out
}

impl Curve {
    /// A series' curve.
    pub fn new(series: &Series) -> Curve {
        let share = series.quantity == Quantity::Share;
        let scale = |v: u64| if share { v as f64 / 10.0 } else { v as f64 / 1_048_576.0 };
        let x: Vec<f64> = series.samples.iter().map(|s| scale(s.used)).collect();
        let timed = series.samples.iter().all(|s| !s.time.is_nan());
        let t = if timed {
            series.samples.iter().map(|s| s.time).collect()
        } else {
            (0..x.len()).map(|i| i as f64).collect()
        };
        let lo = x.iter().copied().fold(f64::MAX, f64::min);
        let hi = x.iter().copied().fold(0.0, f64::max);
        Curve { x, t, timed, limit: series.limit().map(scale), total: series.total.map(scale), share, lo, hi }
    }

    /// The change that counts on this card: 64 MiB, or 1 % of it.
    pub fn floor(&self) -> f64 {
        LEAST.max(self.limit.unwrap_or(0.0) / 100.0)
    }

    /// What a card may hold without being in use: 5 % of it, or 1 GiB where its size is unknown (contexts of a
    /// display, and the reserve that older drivers count as used).
    pub fn idle(&self) -> f64 {
        self.limit.map_or(1024.0, |limit| limit / 20.0)
    }

    /// The usual step of time; 1 without time.
    pub fn step(&self) -> f64 {
        let steps: Vec<f64> = self.t.windows(2).map(|w| w[1] - w[0]).filter(|s| *s > 0.0).collect();
        if steps.is_empty() { 1.0 } else { quantile(&sorted(&steps), 0.5) }
    }

    /// Number of pauses of the logger: more than five steps and 10 s.
    pub fn gaps(&self) -> usize {
        let limit = (5.0 * self.step()).max(10.0);
        if self.timed { self.t.windows(2).filter(|w| w[1] - w[0] > limit).count() } else { 0 }
    }

    /// First and one-past-last sample of the part between the low ends: below a tenth of the range. A curve that
    /// never loses a fifth of its height has no low ends.
    pub fn active(&self) -> (usize, usize) {
        // A curve that keeps most of what it has was never low.
        if self.hi - self.lo < 0.2 * self.hi {
            return (0, self.x.len());
        }
        let low = self.lo + (self.hi - self.lo) * 0.1;
        let from = self.x.iter().position(|v| *v > low).unwrap_or(0);
        let to = self.x.iter().rposition(|v| *v > low).map_or(self.x.len(), |i| i + 1);
        (from, to.max(from))
    }

    /// Runs: stretches between deep falls (30 % of the value and of more than noise, or 40 % of the range) and
    /// between falls of the clock.
    pub fn runs(&self) -> Vec<(usize, usize)> {
        let (range, step) = (self.hi - self.lo, self.step());
        let deep = |i: usize| {
            let drop = self.x[i - 1] - self.x[i];
            (drop > 0.3 * self.x[i - 1] && drop > 0.05 * range && drop > 32.0)
                || drop > (0.4 * range).max(32.0)
                || (self.timed && self.t[i] < self.t[i - 1] - step)
        };
        let mut out = Vec::new();
        let mut from = 0;
        for i in 1..self.x.len() {
            if deep(i) {
                out.push((from, i));
                from = i;
            }
        }
        out.push((from, self.x.len()));
        out
    }
}

/// Passages through the middle of `lo..hi` with hysteresis: where the curve goes up and where it goes down.
pub fn passages(x: &[f64], lo: f64, hi: f64) -> (Vec<usize>, Vec<usize>) {
    let (down, up) = (lo + (hi - lo) * 0.4, lo + (hi - lo) * 0.6);
    let mut high = x.first().is_some_and(|v| *v > up);
    let (mut rises, mut falls) = (Vec::new(), Vec::new());
    for (i, v) in x.iter().enumerate() {
        if !high && *v > up {
            high = true;
            rises.push(i);
        } else if high && *v < down {
            high = false;
            falls.push(i);
        }
    }
    (rises, falls)
}

/// Slope, and share of the variance that a line explains.
pub fn line(t: &[f64], x: &[f64]) -> (f64, f64) {
    let n = t.len() as f64;
    if t.len() < 3 {
        return (0.0, 0.0);
    }
    let (mt, mx) = (t.iter().sum::<f64>() / n, x.iter().sum::<f64>() / n);
    let (mut tt, mut tx, mut xx) = (0.0, 0.0, 0.0);
    for (t, x) in t.iter().zip(x) {
        tt += (t - mt) * (t - mt);
        tx += (t - mt) * (x - mx);
        xx += (x - mx) * (x - mx);
    }
    if tt <= 0.0 || xx <= 0.0 { (0.0, 0.0) } else { (tx / tt, tx * tx / (tt * xx)) }
}
