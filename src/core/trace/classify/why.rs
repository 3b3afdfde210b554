//! The reason in words, with the numbers that decided.

use super::Shape;
use super::curve::Curve;
use super::growth::Growth;
use super::shape::Part;
use crate::units::Message;

/// An amount of the curve: whole MiB as nvidia-smi prints them, or per cent.
fn amount(curve: &Curve, value: f64) -> String {
    if curve.share { format!("{:.1} %", value / 1000.0) } else { format!("{value:.0} MiB") }
}

/// A stretch of the curve's time in a unit that fits.
fn stretch(curve: &Curve, span: f64) -> String {
    if !curve.timed {
        return format!("{span:.0}");
    }
    match span {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Too few readings.
pub fn insufficient(n: usize) -> Message {
    Message::new("trace.why_insufficient").with("samples", n as u64)
}

fn rising(curve: &Curve, grown: Growth, timed: &'static str, untimed: &'static str) -> Message {
    Message::new(if curve.timed { timed } else { untimed })
        .with("rise", amount(curve, grown.rise))
        .with("span", stretch(curve, grown.span))
        .with("straight", format!("{:.2}", grown.r2))
}

/// A rising floor.
pub fn floor(curve: &Curve, grown: Growth) -> Message {
    rising(curve, grown, "trace.why_floor", "trace.why_floor_untimed")
}

/// Why a curve has its shape.
pub fn why(curve: &Curve, part: &Part, shape: Shape, grown: Option<Growth>, runs: usize) -> Message {
    let a = |v: f64| amount(curve, v);
    let share = curve.limit.filter(|l| *l > 0.0).map_or(0.0, |l| part.hi / l * 100.0);
    let ends = |id: &'static str| Message::new(id).with("low", a(curve.lo)).with("high", a(curve.hi));
    match (shape, grown) {
        (Shape::Growth, Some(g))
            if curve.limit.is_some_and(|l| curve.hi >= 0.9 * l)
                && g.rise > 0.15 * curve.limit.unwrap_or(0.0) =>
        {
            Message::new("trace.why_limit")
                .with("rise", a(g.rise))
                .with("span", stretch(curve, g.span))
                .with("share", format!("{:.0} %", curve.hi / curve.limit.unwrap_or(1.0) * 100.0))
        }
        (Shape::Growth, Some(g)) => rising(curve, g, "trace.why_growth", "trace.why_growth_untimed"),
        (Shape::Insufficient | Shape::Growth, _) => insufficient(curve.x.len()),
        (Shape::Idle, _) => Message::new("trace.why_idle").with("high", a(curve.hi)),
        (Shape::Flat, _) => {
            Message::new("trace.why_flat").with("level", a(part.mid)).with("range", a(part.hi - part.lo))
        }
        (Shape::Pool, _) => {
            Message::new("trace.why_pool").with("level", a(part.mid)).with("share", format!("{share:.0} %"))
        }
        (Shape::RampPlateau, _) => {
            Message::new("trace.why_ramp").with("low", a(curve.lo)).with("level", a(part.mid))
        }
        (Shape::Staircase, _) => ends("trace.why_staircase"),
        (Shape::Spike, _) => {
            let high = curve.x.iter().filter(|v| **v > curve.lo + 0.5 * (curve.hi - curve.lo)).count();
            Message::new("trace.why_spike")
                .with("high", a(curve.hi))
                .with("count", high as u64)
                .with("samples", curve.x.len() as u64)
        }
        (Shape::Sawtooth, _) => Message::new("trace.why_sawtooth")
            .with("cycles", part.rises.len() as u64)
            .with("low", a(part.lo))
            .with("high", a(part.hi)),
        (Shape::OnOff, _) => Message::new("trace.why_on_off")
            .with("low", a(if part.lo > 0.5 * part.hi { curve.lo } else { part.lo }))
            .with("high", a(part.hi))
            .with("runs", runs as u64),
        (Shape::Bursts, _) => {
            Message::new("trace.why_bursts").with("low", a(part.lo)).with("high", a(part.hi))
        }
    }
}
