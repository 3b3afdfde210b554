//! Where readers put what they found.

use super::fact::{ErrorSeen, Evidence, Fact, Figure};
use super::window::Window;
use crate::units::Message;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The most facts kept: a log of hundreds of megabytes prints the same figure again and again.
const MOST_FACTS: usize = 16_000;
/// The most errors kept one by one.
const MOST_ERRORS: usize = 400;

/// No device and no host has this many bytes (2^56).
const NO_DEVICE: u64 = 1 << 56;

/// Name, rank and device of a figure.
type Place = (&'static str, Option<u32>, Option<u32>);

/// What has been found so far.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) evidence: Evidence,
    pub(crate) warnings: Vec<Message>,
    /// Reader at work.
    pub(crate) reader: &'static str,
    /// Error whose message is being read.
    error: Option<u32>,
    device: Option<u32>,
    /// Facts of the message at work start here.
    message_from: usize,
    /// Where the first and the last figure stand that a name has on a rank and a device, outside of errors: a figure
    /// that a log prints every second is kept twice, not a million times.
    kept: BTreeMap<Place, (usize, Option<usize>)>,
    /// Hits of each reader, in the order of first hits.
    pub(crate) readers: Vec<(&'static str, u32)>,
}

impl Found {
    /// A message of `kind` begins; a repetition on the same rank is counted, not kept.
    pub(crate) fn error(&mut self, kind: &'static str, window: &Window) {
        self.error_at(kind, window.line(0), window.rank, window.time);
    }

    pub(crate) fn error_at(&mut self, kind: &'static str, line: u32, rank: Option<u32>, time: Option<u64>) {
        let errors = &mut self.evidence.errors;
        if errors.len() >= MOST_ERRORS {
            if let Some(last) = errors.iter_mut().rev().find(|e| e.kind == kind) {
                last.times = last.times.saturating_add(1);
            }
            // Figures of a message that is not kept belong to none.
            self.error = Some(u32::MAX);
            return;
        }
        self.error = u32::try_from(errors.len()).ok();
        errors.push(ErrorSeen { kind, line, rank, time, times: 1 });
    }

    /// The kind of the message at work, corrected by what it says further on.
    pub(crate) fn set_kind(&mut self, kind: &'static str) {
        let at = self.error.and_then(|e| usize::try_from(e).ok());
        if let Some(error) = at.and_then(|e| self.evidence.errors.get_mut(e)) {
            error.kind = kind;
        }
    }

    /// Figures that follow are about this device.
    pub(crate) fn device(&mut self, device: Option<u32>) {
        self.device = device;
        for fact in self.evidence.facts.iter_mut().skip(self.message_from) {
            fact.device = device;
        }
    }

    /// One figure of the message at work, printed at `at`.
    pub(crate) fn fact(&mut self, window: &Window, at: usize, key: &'static str, value: Figure) {
        self.fact_at(window.line(at), window.rank, key, value);
    }

    pub(crate) fn fact_at(&mut self, line: u32, rank: Option<u32>, key: &'static str, value: Figure) {
        if self.evidence.facts.len() >= MOST_FACTS {
            return;
        }
        // "17179869184.00 GiB": a counter that went below zero, or a limit that was never set.
        if matches!(value, Figure::Bytes(bytes) if bytes.unsigned_abs() >= NO_DEVICE) {
            self.warnings.push(
                Message::new("evidence.warn.not_a_size").with("line", u64::from(line)).with("key", key),
            );
            return;
        }
        let (device, error, reader) = (self.device, self.error, self.reader);
        self.evidence.facts.push(Fact { key, value, line, rank, device, reader, error });
    }

    /// Bytes that the message at work printed for `key`.
    pub(crate) fn message_bytes(&self, key: &str) -> Option<i64> {
        let facts = self.evidence.facts.iter().skip(self.message_from);
        facts.filter(|f| f.key == key).find_map(|f| match f.value {
            Figure::Bytes(bytes) => Some(bytes),
            _ => None,
        })
    }

    /// The message at work is read.
    pub(crate) fn end_message(&mut self) {
        let facts = self.evidence.facts.split_off(self.message_from);
        for fact in facts {
            let next = self.evidence.facts.len();
            if fact.error.is_some() {
                self.evidence.facts.push(fact);
                continue;
            }
            match self.kept.entry((fact.key, fact.rank, fact.device)) {
                Entry::Vacant(place) => {
                    place.insert((next, None));
                    self.evidence.facts.push(fact);
                }
                Entry::Occupied(mut place) => {
                    let (_, last) = place.get_mut();
                    if let Some(older) = last.and_then(|at| self.evidence.facts.get_mut(at)) {
                        *older = fact;
                    } else {
                        *last = Some(next);
                        self.evidence.facts.push(fact);
                    }
                }
            }
        }
        self.error = None;
        self.device = None;
        self.message_from = self.evidence.facts.len();
        let reader = self.reader;
        match self.readers.iter_mut().find(|(id, _)| *id == reader) {
            Some((_, hits)) => *hits = hits.saturating_add(1),
            None => self.readers.push((reader, 1)),
        }
    }

    /// What kind of text this is: the reader that found most.
    pub(crate) fn format(&self) -> &'static str {
        self.readers.iter().max_by_key(|(_, hits)| *hits).map_or("unknown", |(id, _)| id)
    }
}
