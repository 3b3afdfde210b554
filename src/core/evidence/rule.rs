//! One message of one program: how it starts, what tells it from its look-alikes, which figures it prints.

use super::fact::Figure;
use super::found::Found;
use super::number::Unit;
use super::window::Window;

/// One figure of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Take {
    pub(crate) key: &'static str,
    marker: &'static str,
    unit: Unit,
    before: bool,
}

impl Take {
    /// The figure right after `marker`.
    pub(crate) const fn after(key: &'static str, marker: &'static str, unit: Unit) -> Take {
        Take { key, marker, unit, before: false }
    }

    /// The figure right before `marker`.
    pub(crate) const fn before(key: &'static str, marker: &'static str, unit: Unit) -> Take {
        Take { key, marker, unit, before: true }
    }
}

/// One message.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// How it starts.
    pub(crate) anchor: &'static str,
    /// Texts that must stand in it too.
    needs: &'static [&'static str],
    /// Texts that must not.
    unless: &'static [&'static str],
    /// Kind of the error that it reports; empty: none.
    pub(crate) kind: &'static str,
    /// Engine that it proves; empty: none.
    pub(crate) engine: &'static str,
    /// How far it reaches, in bytes that count.
    reach: usize,
    /// How far before the anchor it starts on the same line.
    back: usize,
    /// The message ends with its line.
    one_line: bool,
    /// Its figures.
    pub(crate) takes: &'static [Take],
    /// What no table can say.
    more: Option<fn(&Window, &mut Found)>,
}

impl Rule {
    /// A message that starts with `anchor`.
    pub(crate) const fn new(anchor: &'static str) -> Rule {
        Rule {
            anchor,
            needs: &[],
            unless: &[],
            kind: "",
            engine: "",
            reach: 400,
            back: 0,
            one_line: false,
            takes: &[],
            more: None,
        }
    }

    /// With the kind of error that it is.
    pub(crate) const fn kind(mut self, kind: &'static str) -> Rule {
        self.kind = kind;
        self
    }

    /// Printed by this engine alone.
    pub(crate) const fn engine(mut self, engine: &'static str) -> Rule {
        self.engine = engine;
        self
    }

    /// Texts that must stand within reach.
    pub(crate) const fn needs(mut self, needs: &'static [&'static str]) -> Rule {
        self.needs = needs;
        self
    }

    /// Texts that must not stand within reach.
    pub(crate) const fn unless(mut self, unless: &'static [&'static str]) -> Rule {
        self.unless = unless;
        self
    }

    /// How far the message goes.
    pub(crate) const fn reach(mut self, reach: usize) -> Rule {
        self.reach = reach;
        self
    }

    /// How far before the anchor it starts, on the same line.
    pub(crate) const fn back(mut self, back: usize) -> Rule {
        self.back = back;
        self
    }

    /// The message ends with its line.
    pub(crate) const fn one_line(mut self) -> Rule {
        self.one_line = true;
        self
    }

    /// Its figures.
    pub(crate) const fn takes(mut self, takes: &'static [Take]) -> Rule {
        self.takes = takes;
        self
    }

    /// A function for the rest.
    pub(crate) const fn more(mut self, more: fn(&Window, &mut Found)) -> Rule {
        self.more = Some(more);
        self
    }

    /// The most bytes that it takes to read it.
    pub(crate) fn most(&self) -> usize {
        self.back + self.anchor.len() + self.reach
    }

    /// Where the message starts whose anchor stands at byte `offset` of its line.
    pub(crate) fn start(&self, offset: usize) -> usize {
        offset.saturating_sub(self.back)
    }

    /// Reads the message at the start of `window`; whether it was one.
    pub(crate) fn read(&self, window: &mut Window, found: &mut Found) -> bool {
        let anchor = window.find(self.anchor, 0, window.len()).map_or(0, |(_, end)| end);
        let mut end = window.len().min(anchor + self.reach);
        if self.one_line {
            end = end.min(window.line_end(anchor.saturating_sub(1)));
        }
        // The next message of the same kind begins another reading.
        if let Some((next, _)) = window.find(self.anchor, anchor, end) {
            end = next;
        }
        window.end_at(end);
        let has = |text: &&str| window.has(text, 0, end);
        if !self.needs.iter().all(has) || self.unless.iter().any(has) {
            return false;
        }
        if !self.kind.is_empty() {
            found.error(self.kind, window);
        }
        if !self.engine.is_empty() {
            found.fact(window, 0, "engine", Figure::Text(self.engine.to_owned()));
        }
        for take in self.takes {
            if let Some((figure, at)) = take.read(window, anchor, end) {
                found.fact(window, at, take.key, figure);
            }
        }
        if let Some(more) = self.more {
            more(window, found);
        }
        found.end_message();
        true
    }
}

impl Take {
    /// The figure and its place in the first `to` bytes of a message.
    pub(crate) fn read_within(&self, window: &Window, to: usize) -> Option<(Figure, usize)> {
        self.read(window, 0, to)
    }

    /// The figure and its place: the first place of the marker where one stands.
    fn read(&self, window: &Window, anchor: usize, to: usize) -> Option<(Figure, usize)> {
        let mut from = if self.marker.is_empty() { anchor } else { 0 };
        loop {
            let (start, end) = window.find(self.marker, from, to)?;
            let found = if self.before {
                window.figure_before(start, self.unit)
            } else {
                window.figure(end, self.unit).map(|(figure, _)| (figure, end))
            };
            if found.is_some() || self.marker.is_empty() {
                return found;
            }
            from = end;
        }
    }
}
