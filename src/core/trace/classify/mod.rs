//! What a curve shows: one of few shapes, flags, and the reason in numbers.
//!
//! Thresholds are on effect size, straightness and how long a level is held, not on significance: on quantised
//! memory readings a rank test calls every flat log a trend. Where a constant was chosen by looking at logs, its
//! doc comment says so.

mod cards;
mod curve;
mod flags;
mod growth;
mod shape;
mod why;

use super::timeline::Timeline;
use crate::units::Message;

/// The shape of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Too few readings.
    Insufficient,
    /// Hardly anything in use.
    Idle,
    /// One level.
    Flat,
    /// One level at nearly the whole card: taken in advance.
    Pool,
    /// A load, then a level.
    RampPlateau,
    /// Several levels, only upwards.
    Staircase,
    /// Keeps rising.
    Growth,
    /// High for a moment.
    Spike,
    /// Regular cycles.
    Sawtooth,
    /// Two levels by turns.
    OnOff,
    /// Irregular peaks.
    Bursts,
}

impl Shape {
    /// Every shape.
    pub const ALL: &[Shape] = &[
        Shape::Insufficient,
        Shape::Idle,
        Shape::Flat,
        Shape::Pool,
        Shape::RampPlateau,
        Shape::Staircase,
        Shape::Growth,
        Shape::Spike,
        Shape::Sawtooth,
        Shape::OnOff,
        Shape::Bursts,
    ];

    /// Id in answers.
    pub fn id(self) -> &'static str {
        match self {
            Shape::Insufficient => "insufficient",
            Shape::Idle => "idle",
            Shape::Flat => "flat",
            Shape::Pool => "pool",
            Shape::RampPlateau => "ramp_plateau",
            Shape::Staircase => "staircase",
            Shape::Growth => "growth",
            Shape::Spike => "spike",
            Shape::Sawtooth => "sawtooth",
            Shape::OnOff => "on_off",
            Shape::Bursts => "bursts",
        }
    }
}

/// What else a curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// At 90 % of what programs can reach, or more.
    NearFull,
    /// Given back at the end.
    Released,
    /// The log ends at its highest, near the limit: a crash is likely.
    EndsAtPeak,
    /// Given back and taken again.
    Restarts,
    /// The logger paused.
    Gaps,
    /// A long end without use.
    IdleTail,
    /// The lowest point of each cycle rises: a leak under the cycles.
    RisingFloor,
    /// The card fell off the bus.
    Lost,
    /// Cards of one file carry unequal loads.
    Imbalanced,
    /// The level wavers.
    Noisy,
}

impl Flag {
    /// Every flag.
    pub const ALL: &[Flag] = &[
        Flag::NearFull,
        Flag::Released,
        Flag::EndsAtPeak,
        Flag::Restarts,
        Flag::Gaps,
        Flag::IdleTail,
        Flag::RisingFloor,
        Flag::Lost,
        Flag::Imbalanced,
        Flag::Noisy,
    ];

    /// Id in answers.
    pub fn id(self) -> &'static str {
        match self {
            Flag::NearFull => "near_full",
            Flag::Released => "released",
            Flag::EndsAtPeak => "ends_at_peak",
            Flag::Restarts => "restarts",
            Flag::Gaps => "gaps",
            Flag::IdleTail => "idle_tail",
            Flag::RisingFloor => "rising_floor",
            Flag::Lost => "lost",
            Flag::Imbalanced => "imbalanced",
            Flag::Noisy => "noisy",
        }
    }
}

/// What one curve shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The shape.
    pub shape: Shape,
    /// What else.
    pub flags: Vec<Flag>,
    /// How clear it is, 0 to 1: a judgement by margins and number of readings, not a measured frequency.
    pub confidence: f64,
    /// Why, in numbers.
    pub why: Message,
    /// MiB per minute, of growth or of a rising floor; none without time, or for per cents without a total.
    pub growth_mib_per_min: Option<f64>,
    /// Minutes until the limit at that rate.
    pub minutes_to_full: Option<f64>,
    /// Number of runs: stretches between deep falls.
    pub runs: usize,
}

/// A verdict for every series of a timeline, in order.
pub fn classify(timeline: &Timeline) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = timeline.series.iter().map(shape::judge).collect();
    cards::compare(&timeline.series, &mut verdicts);
    for verdict in &mut verdicts {
        verdict.flags.sort_unstable();
        verdict.flags.dedup();
    }
    verdicts
}
