//! Flags of one curve.

use super::curve::{Curve, passages, quantile, sorted};
use super::shape::Part;
use super::{Flag, Shape};

/// Adds what the curve shows beside its shape.
pub fn add(curve: &Curve, part: &Part, shape: Shape, out: &mut Vec<Flag>) {
    let n = curve.x.len();
    let x = &curve.x[part.from..part.to];
    let range = curve.hi - curve.lo;
    let tail = n - part.to;
    let moved = (range > curve.floor() && shape != Shape::Idle) || shape == Shape::Growth;
    if curve.limit.is_some_and(|limit| part.hi >= 0.9 * limit) {
        out.push(Flag::NearFull);
    }
    let last = curve.x[n - 1];
    let ended = match shape {
        // Cycles end low by nature.
        Shape::Sawtooth => last < 0.5 * part.lo,
        Shape::OnOff | Shape::Bursts => tail * 10 >= n,
        Shape::Growth => fell_at_the_end(curve),
        _ => {
            tail > 0
                || last < curve.lo + 0.25 * range
                    && part.hi > curve.lo + 0.5 * range
                    && curve.lo < 0.7 * curve.hi
        }
    };
    if moved && ended {
        out.push(Flag::Released);
    }
    if moved && tail * 5 >= n && tail >= 5 {
        out.push(Flag::IdleTail);
    }
    let steep = x.len() >= 4 && last - curve.x[n - n / 3 - 1] > 0.2 * curve.limit.unwrap_or(f64::MAX);
    if curve.limit.is_some_and(|limit| last >= 0.9 * limit) && last >= curve.hi - 0.02 * range && steep {
        out.push(Flag::EndsAtPeak);
    }
    if moved && restarts(curve, part, shape) {
        out.push(Flag::Restarts);
    }
    if n >= 8 && curve.gaps() > 0 {
        out.push(Flag::Gaps);
    }
    if noisy(curve, part, shape) {
        out.push(Flag::Noisy);
    }
}

/// Growth on unified memory or beside others gives back only a part: a last run that lies below what was reached.
fn fell_at_the_end(curve: &Curve) -> bool {
    let runs = curve.runs();
    runs.len() > 1 && {
        let (from, to) = runs[runs.len() - 1];
        let late = quantile(&sorted(&curve.x[from..to]), 0.9);
        late < curve.hi - 0.25 * (curve.hi - curve.lo)
    }
}

/// Whether a curve that was high falls to the bottom (a fifth of its range) and comes back.
pub fn returns(curve: &Curve, part: &Part) -> bool {
    let low = curve.lo + 0.2 * (part.hi - curve.lo);
    let high = curve.lo + 0.5 * (part.hi - curve.lo);
    comes_back(&curve.x[part.from..part.to], low, high) && low < 0.5 * part.hi
}

fn comes_back(x: &[f64], low: f64, high: f64) -> bool {
    let (mut up, mut below) = (false, false);
    for v in x {
        if *v < low {
            below = up;
        } else if *v > high {
            if below {
                return true;
            }
            up = true;
        }
    }
    false
}

/// Taken again after it was given back. Cycles come back by nature: there only falls far below their own low
/// level count.
fn restarts(curve: &Curve, part: &Part, shape: Shape) -> bool {
    match shape {
        Shape::Sawtooth | Shape::Bursts => {
            let x = &curve.x[part.from..part.to];
            part.lo > 0.2 * part.hi && comes_back(x, 0.5 * part.lo, 0.9 * part.lo)
        }
        Shape::Staircase | Shape::Spike | Shape::Flat => false,
        _ => returns(curve, part),
    }
}

/// Whether the level of a plateau wavers by more than 64 MiB and 2 % of it.
fn noisy(curve: &Curve, part: &Part, shape: Shape) -> bool {
    let x = &curve.x[part.from..part.to];
    match shape {
        Shape::Idle => curve.hi - curve.lo > curve.floor(),
        Shape::Flat | Shape::RampPlateau | Shape::Pool => {
            let base = curve.lo + 0.5 * (part.hi - curve.lo);
            let high: Vec<f64> = x.iter().copied().filter(|v| *v >= base).collect();
            let order = sorted(&high);
            let band = quantile(&order, 0.9) - quantile(&order, 0.1);
            // Two levels with one change between them are a step, not noise.
            let (rises, falls) = passages(&high, quantile(&order, 0.1), quantile(&order, 0.9));
            band > 64f64.max(0.02 * part.hi) && rises.len() + falls.len() >= 4
        }
        _ => false,
    }
}
