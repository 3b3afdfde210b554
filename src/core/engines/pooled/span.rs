//! A figure with its range.

use crate::memory::context::Observed;

/// A figure with its range, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engines) struct Span {
    pub(in crate::engines) point: u64,
    pub(in crate::engines) low: u64,
    pub(in crate::engines) high: u64,
}

impl Span {
    pub(in crate::engines) const fn exactly(bytes: u64) -> Span {
        Span { point: bytes, low: bytes, high: bytes }
    }

    /// The larger one, end by end.
    pub(in crate::engines) fn max(self, other: Span) -> Span {
        Span {
            point: self.point.max(other.point),
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }
}

impl From<Observed> for Span {
    fn from(o: Observed) -> Span {
        Span { point: o.point, low: o.low, high: o.high }
    }
}

/// Which end of the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engines) enum End {
    /// Every cost at its low end.
    Best,
    /// Point estimates.
    Point,
    /// Every cost at its high end.
    Worst,
}

impl End {
    /// That end of a figure.
    pub(in crate::engines) fn of(self, s: Span) -> u64 {
        match self {
            End::Best => s.low,
            End::Point => s.point,
            End::Worst => s.high,
        }
    }
}
