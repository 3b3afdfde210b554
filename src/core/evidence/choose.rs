//! Of many figures and errors in a text, those that stand for it.

use super::fact::{ErrorSeen, Evidence, Fact, Figure};
use super::keys::{KEYS, Pick, Weight, key_of, kind_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

impl Evidence {
    /// The error that came first in time over all ranks, memory before look-alikes before notices; by lines where
    /// a line has no time.
    pub fn first_error(&self) -> Option<(usize, &ErrorSeen)> {
        let of = |weights: &[Weight]| {
            let all = || {
                self.errors
                    .iter()
                    .enumerate()
                    .filter(|(_, e)| kind_of(e.kind).is_some_and(|k| weights.contains(&k.weight)))
            };
            let timed = all().all(|(_, e)| e.time.is_some());
            all().min_by_key(|(at, e)| (if timed { e.time } else { None }, *at))
        };
        of(&[Weight::Memory, Weight::Wrapper])
            .or_else(|| of(&[Weight::LookAlike]))
            .or_else(|| of(&[Weight::Notice]))
    }

    /// Kind of the first error. What caught it and says more precisely where it happened gives the name.
    pub fn error_kind(&self) -> Option<&'static str> {
        let (at, first) = self.first_error()?;
        let memory = kind_of(first.kind).is_some_and(|k| k.weight == Weight::Memory);
        let wrapper = self.errors.iter().skip(at + 1).find(|e| {
            let wraps = kind_of(e.kind).is_some_and(|k| k.weight == Weight::Wrapper);
            wraps && (e.rank == first.rank || e.rank.is_none() || first.rank.is_none())
        });
        match wrapper {
            Some(wrapper) if memory => Some(wrapper.kind),
            _ => Some(first.kind),
        }
    }

    /// The figure of that name which stands for the text: of the first error where it has one.
    pub fn get(&self, key: &str) -> Option<&Fact> {
        let error = self.first_error().and_then(|(at, _)| u32::try_from(at).ok());
        let of_error =
            self.facts.iter().filter(|f| f.key == key).find(|f| error.is_some() && f.error == error);
        of_error.or_else(|| self.chosen(key))
    }

    fn chosen(&self, key: &str) -> Option<&Fact> {
        let pick = key_of(key).map_or(Pick::Last, |k| k.pick);
        let mut all = self.facts.iter().filter(|f| f.key == key);
        match pick {
            // A runner prints under its own name too: the server around it is what was started.
            Pick::First if key == "engine" => {
                let around =
                    self.facts.iter().find(|f| f.key == key && f.value == Figure::Text("ollama".into()));
                around.or_else(|| all.next())
            }
            Pick::First => all.min_by_key(|f| f.line),
            Pick::Last => all.max_by_key(|f| f.line),
            Pick::Least => self.latest(key).into_iter().min_by(|a, b| number(a).total_cmp(&number(b))),
            Pick::Most | Pick::Sum => {
                self.latest(key).into_iter().max_by(|a, b| number(a).total_cmp(&number(b)))
            }
        }
    }

    /// The last figure of every rank and device.
    fn latest(&self, key: &str) -> Vec<&Fact> {
        let mut latest: Vec<&Fact> = Vec::new();
        for fact in self.facts.iter().filter(|f| f.key == key) {
            match latest.iter_mut().find(|f| (f.rank, f.device) == (fact.rank, fact.device)) {
                Some(place) => *place = fact,
                None => latest.push(fact),
            }
        }
        latest
    }

    /// Bytes of that name; for what is spread over devices, their sum.
    pub fn bytes(&self, key: &str) -> Option<i64> {
        let as_bytes = |f: &Fact| match f.value {
            Figure::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        if self.spread(key) {
            return Some(self.latest(key).into_iter().filter_map(as_bytes).fold(0, i64::saturating_add));
        }
        self.get(key).and_then(as_bytes)
    }

    /// Whether the figures of that name are parts of one whole: of several devices of one process.
    fn spread(&self, key: &str) -> bool {
        let latest = self.latest(key);
        let parts = matches!(key, "weights" | "kv_available" | "activation_peak" | "recurrent_state");
        let sum = key_of(key).is_some_and(|k| k.pick == Pick::Sum) || parts;
        sum && latest.iter().all(|f| f.rank.is_none() && (f.device.is_some() || !parts)) && !latest.is_empty()
    }

    /// A whole number of that name.
    pub fn count(&self, key: &str) -> Option<u64> {
        match self.get(key)?.value {
            Figure::Count(count) => Some(count),
            _ => None,
        }
    }

    /// A ratio of that name.
    pub fn real(&self, key: &str) -> Option<f64> {
        match self.get(key)?.value {
            Figure::Real(real) => Some(real),
            Figure::Count(count) => Some(count as f64),
            _ => None,
        }
    }

    /// A text of that name.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Figure::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The evidence as design.md 5 has it: one value for each name, with the line that it came from, what follows
    /// from them, and every error.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut lines = Map::new();
        if let Some(kind) = self.error_kind() {
            map.insert("error_kind".to_owned(), json!(kind));
        }
        if let Some((_, first)) = self.first_error() {
            lines.insert("error_kind".to_owned(), json!(first.line));
            if let Some(rank) = first.rank {
                map.insert("rank".to_owned(), json!(rank));
            }
        }
        for key in KEYS {
            let Some(fact) = self.get(key.id) else { continue };
            let value = match self.bytes(key.id) {
                Some(bytes) => json!(bytes),
                None => json!(fact.value),
            };
            map.insert(key.id.to_owned(), value);
            lines.insert(key.id.to_owned(), json!(fact.line));
        }
        for (name, of) in [("ranks", true), ("devices", false)] {
            let parts = self.parts(of);
            if parts.len() > 1 {
                map.insert(name.to_owned(), Value::Object(parts));
            }
        }
        for (key, value) in self.derived() {
            map.insert(key.to_owned(), value);
        }
        if !self.holders.is_empty() {
            map.insert("holders".to_owned(), json!(self.holders));
        }
        if !lines.is_empty() {
            map.insert("lines".to_owned(), Value::Object(lines));
        }
        if !self.errors.is_empty() {
            map.insert("errors".to_owned(), json!(self.errors));
        }
        Value::Object(map)
    }

    /// The last figures of each rank, or of each device.
    fn parts(&self, ranks: bool) -> Map<String, Value> {
        let mut parts: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
        for fact in &self.facts {
            let figure = matches!(fact.value, Figure::Bytes(_) | Figure::Count(_) | Figure::Real(_));
            if let Some(part) = if ranks { fact.rank } else { fact.device }.filter(|_| figure) {
                parts.entry(part).or_default().insert(fact.key.to_owned(), json!(fact.value));
            }
        }
        parts.into_iter().map(|(part, figures)| (part.to_string(), Value::Object(figures))).collect()
    }
}

fn number(fact: &Fact) -> f64 {
    match fact.value {
        Figure::Bytes(n) => n as f64,
        Figure::Count(n) => n as f64,
        Figure::Real(n) => n,
        _ => 0.0,
    }
}
