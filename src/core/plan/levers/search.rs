//! The search for values of levers, over any job that can be asked what a set of changes comes to.

use super::table::{Change, Steps};
use super::{Cost, Suggestion};
use crate::plan::limits::largest;
use crate::plan::projection::geometric;

/// Values that are asked before the gap is halved.
const ASKED: usize = 12;

/// What a set of changes comes to.
pub(super) struct Found {
    pub(super) set: Vec<Change>,
    pub(super) margin: i128,
    pub(super) enough: bool,
}

/// A job on which changes are tried.
pub(super) trait Search {
    /// Bytes to spare at the tightest place as it is.
    fn now(&self) -> i128;

    /// What `set` comes to; `None` where the accounting does not take it.
    fn ask(&self, set: Vec<Change>) -> Option<Found>;

    /// The best of a lever's values: the mildest that suffices, or else the strongest.
    fn best(&self, field: &'static str, steps: Steps) -> Option<Found> {
        match steps {
            Steps::Each(all) => self.mildest(all),
            Steps::Below { now, least, multiple } => self.below(field, now, least, multiple),
        }
    }

    /// The first that suffices, or the one that gains most.
    fn mildest(&self, all: Vec<Vec<Change>>) -> Option<Found> {
        let mut best: Option<Found> = None;
        for found in all.into_iter().filter_map(|set| self.ask(set)) {
            let (better, enough) = (best.as_ref().is_none_or(|b| found.margin > b.margin), found.enough);
            if better || enough {
                best = Some(found);
            }
            if enough {
                break;
            }
        }
        best
    }

    /// The largest multiple below `now` that suffices, or `least`.
    fn below(&self, field: &'static str, now: u64, least: u64, multiple: u64) -> Option<Found> {
        let ask = |n: u64| self.ask(vec![(field, n.into())]);
        if now <= least {
            return None;
        }
        // Too small a value may not serve the load any more, so those that suffice lie together somewhere below: a
        // few are asked, from the top down, then the gap above the first that suffices is halved.
        let at = |steps: u64| steps.saturating_mul(multiple).max(least);
        let fits = |steps: u64| ask(at(steps)).is_some_and(|f| f.enough);
        let (most, fewest) = ((now - 1) / multiple, least / multiple);
        let mut asked: Vec<u64> =
            geometric(most.max(1), ASKED).into_iter().filter(|n| *n >= fewest).collect();
        asked.reverse();
        match asked.iter().position(|n| fits(*n)) {
            None => ask(least),
            Some(first) => {
                let good = asked[first];
                let above = first.checked_sub(1).map_or(most + 1, |i| asked[i]);
                let more = if above > good + 1 { largest(above - good - 1, |n| fits(good + n)) } else { 0 };
                ask(at(good + more))
            }
        }
    }

    /// Levers that suffice together where none below the cost of hardware does alone: cheapest first, then those
    /// that are not needed are left out again.
    fn together(&self, levers: &[Suggestion]) -> Vec<usize> {
        let cheap = |s: &Suggestion| s.cost < Cost::Hardware && s.no_effect.is_none();
        if self.now() >= 0 || levers.iter().any(|s| s.enough && cheap(s)) {
            return Vec::new();
        }
        let enough = |chosen: &[usize]| {
            let set = chosen.iter().filter_map(|i| levers.get(*i)).flat_map(|s| s.set.clone()).collect();
            self.ask(set).is_some_and(|found| found.enough)
        };
        let mut chosen: Vec<usize> = Vec::new();
        for (index, lever) in levers.iter().enumerate().filter(|(_, s)| cheap(s)) {
            // One value of a field at a time: a second lever of the same field would undo the first.
            let undone = |c: &Suggestion| {
                c.set.iter().any(|(path, to)| lever.set.iter().any(|(p, t)| p == path && t != to))
            };
            let same = |c: &Suggestion| c.set.first().map(|s| s.0) == lever.set.first().map(|s| s.0);
            if chosen.iter().any(|i| levers.get(*i).is_some_and(|c| same(c) || undone(c))) {
                continue;
            }
            chosen.push(index);
            if enough(&chosen) {
                let mut at = 0;
                while at < chosen.len() {
                    let mut fewer = chosen.clone();
                    fewer.remove(at);
                    if enough(&fewer) {
                        chosen = fewer;
                    } else {
                        at += 1;
                    }
                }
                return chosen;
            }
        }
        Vec::new()
    }
}
