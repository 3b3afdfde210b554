//! The errors of one kind of figure.

use super::{Outcome, Row};

/// The errors of one kind of figure.
pub struct Summary {
    /// Kind of case.
    pub group: String,
    /// The figure.
    pub figure: String,
    /// Expectations, those without an answer included.
    pub all: usize,
    /// Of these, not modelled.
    pub not_modelled: usize,
    /// Of these, refused or missing.
    pub refused: usize,
    /// Of these, within tolerance.
    pub within: usize,
    /// Absolute relative errors, sorted.
    pub errors: Vec<f64>,
    /// Figures that have a range.
    pub ranged: usize,
    /// Of these, how often the printed figure lies in it.
    pub held: usize,
    /// Widths of the ranges, relative to the printed figure, sorted.
    pub widths: Vec<f64>,
}

impl Summary {
    fn new(row: &Row) -> Summary {
        Summary {
            group: row.group.clone(),
            figure: row.label.clone(),
            all: 0,
            not_modelled: 0,
            refused: 0,
            within: 0,
            errors: Vec::new(),
            ranged: 0,
            held: 0,
            widths: Vec::new(),
        }
    }

    /// The error that a share of all figures do not exceed; `None` without figures.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.errors.len().checked_sub(1)?;
        let at = (share * self.errors.len() as f64).ceil() as usize;
        self.errors.get(at.saturating_sub(1).min(last)).copied()
    }

    /// The middle error; with an even number, the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        middle(&self.errors)
    }

    /// The mean error.
    pub fn mean(&self) -> Option<f64> {
        (!self.errors.is_empty()).then(|| self.errors.iter().sum::<f64>() / self.errors.len() as f64)
    }

    /// The middle width of the ranges.
    pub fn width(&self) -> Option<f64> {
        middle(&self.widths)
    }

    fn count(&mut self, row: &Row) {
        self.all += 1;
        self.within += usize::from(row.within());
        match &row.outcome {
            Outcome::Figure { error, range, .. } => {
                self.errors.push(error.abs());
                if let (Some((low, high)), Some(held)) = (range, row.held()) {
                    self.ranged += 1;
                    self.held += usize::from(held);
                    self.widths.push((high - low) / row.expected.as_f64().unwrap_or(f64::INFINITY));
                }
            }
            Outcome::NotModelled(_) => self.not_modelled += 1,
            Outcome::Refused(_) => self.refused += 1,
        }
    }
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    let lower = if n.is_multiple_of(2) { *sorted.get(n / 2 - 1)? } else { upper };
    Some(f64::midpoint(lower, upper))
}

/// One summary per kind of case and figure, in order of first appearance.
pub fn summarise(rows: &[Row]) -> Vec<Summary> {
    let mut all: Vec<Summary> = Vec::new();
    for row in rows {
        let found = all.iter().position(|s| s.group == row.group && s.figure == row.label);
        let at = found.unwrap_or_else(|| {
            all.push(Summary::new(row));
            all.len() - 1
        });
        all[at].count(row);
    }
    for summary in &mut all {
        summary.errors.sort_by(f64::total_cmp);
        summary.widths.sort_by(f64::total_cmp);
    }
    all
}
