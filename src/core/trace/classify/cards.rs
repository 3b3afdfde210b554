//! The cards of one file against each other.

use super::curve::{Curve, quantile, sorted};
use super::{Flag, Shape, Verdict};
use crate::trace::timeline::{Quantity, Series};

/// Flags cards whose usual height differs by more than a tenth of a card while at least one is in use. Where no
/// total is known, one card must hold less than half of another.
pub fn compare(series: &[Series], verdicts: &mut [Verdict]) {
    let of_cards: Vec<usize> = (0..series.len())
        .filter(|i| {
            matches!(series[*i].quantity, Quantity::Used | Quantity::Share) && series[*i].samples.len() >= 5
        })
        .collect();
    if of_cards.len() < 2 {
        return;
    }
    let curves: Vec<(f64, f64)> = of_cards
        .iter()
        .map(|i| {
            let curve = Curve::new(&series[*i]);
            let (from, to) = curve.active();
            (quantile(&sorted(&curve.x[from..to]), 0.5), curve.total.unwrap_or(0.0))
        })
        .collect();
    let most = curves.iter().map(|c| c.0).fold(0.0, f64::max);
    let least = curves.iter().map(|c| c.0).fold(f64::MAX, f64::min);
    let size = curves.iter().map(|c| c.1).fold(0.0, f64::max);
    let used = of_cards.iter().any(|i| !matches!(verdicts[*i].shape, Shape::Idle | Shape::Insufficient));
    let apart = if size > 0.0 { (most - least) / size > 0.1 } else { least < 0.5 * most };
    if used && apart {
        for i in of_cards {
            verdicts[i].flags.push(Flag::Imbalanced);
        }
    }
}
