//! The search for values of levers, over any job that can be asked what a set of changes comes to.

use super::table::{Change, Steps};
use super::{Cost, Suggestion};
use crate::plan::limits::largest;

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
        let fits = |steps: u64| ask(steps.saturating_mul(multiple).max(least)).is_some_and(|f| f.enough);
        let steps = largest((now - 1) / multiple, fits);
        match steps {
            0 => ask(least),
            n => ask((n * multiple).max(least)),
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
