//! One pass over a document: who takes which key, and what becomes of the rest.

use super::document::{Document, join};
use super::{Imported, Key, Taken};
use crate::share::fields::{Kind, field};
use crate::share::read::cut;
use crate::units::Message;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What a known key that no field takes does.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// Nothing to memory.
    Nothing,
    /// It changes memory, unless it has this value, its default.
    Unless(&'static str),
}

/// A known key, by dotted path; a path that ends in `.*` stands for all below it.
pub(super) type Known = (&'static str, Effect);

/// A document while it is read.
pub(super) struct Reading<'a> {
    pub(super) document: &'a Document,
    pub(super) out: Imported,
    done: BTreeSet<String>,
    /// Keys that were looked for: `null` there is their default.
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(format: &'static str, document: &'a Document) -> Self {
        let mut out = Imported { format, ..Imported::default() };
        for (key, line) in &document.twice {
            out.warnings.push(Message::new("imports.twice").with("key", cut(key)).with("line", *line));
        }
        Reading { document, out, done: BTreeSet::new(), asked: RefCell::default() }
    }

    pub(super) fn finish(self) -> Imported {
        self.out
    }

    /// The value of a key; `null` is none.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.document.at(key).filter(|value| !value.is_null())
    }

    /// The value of a key as text in lower case: a flag, a number or a name.
    pub(super) fn word(&self, key: &str) -> Option<String> {
        Some(word(self.get(key)?))
    }

    /// The value of a key, where it says yes or no.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.word(key)?.as_str() {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" => Some(false),
            _ => None,
        }
    }

    /// The value of a key as a whole number; 5e8 and "4" are ones.
    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Number(n) => n.as_u64().or_else(|| integral(n.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub(super) fn key(&self, key: &str) -> Key {
        Key {
            key: cut(key),
            line: self.document.lines.get(key).copied(),
            given: self.document.at(key).map(|v| cut(&v.to_string())).unwrap_or_default(),
        }
    }

    /// No other list shall have this key.
    pub(super) fn settle(&mut self, key: &str) {
        self.done.insert(key.to_owned());
    }

    /// `key` decided with another one.
    pub(super) fn used(&mut self, key: &str) {
        if self.get(key).is_some() && self.done.insert(key.to_owned()) {
            let from = self.key(key);
            self.out.used.push(from);
        }
    }

    /// `key` became `value` of the field at `path`.
    pub(super) fn take(&mut self, key: &str, path: &'static str, value: impl Into<Value>) {
        self.settle(key);
        let from = self.key(key);
        self.out.taken.push(Taken { from, path, value: value.into(), implied: false });
    }

    /// `key` is not there, and the tool's default is `value`.
    pub(super) fn imply(&mut self, key: &str, path: &'static str, value: impl Into<Value>) {
        let from = self.key(key);
        self.out.taken.push(Taken { from, path, value: value.into(), implied: true });
    }

    /// `key` leaves its value open.
    pub(super) fn leave(&mut self, key: &str) {
        if self.get(key).is_some() && self.done.insert(key.to_owned()) {
            let from = self.key(key);
            self.out.open.push(from);
        }
    }

    /// `key` changes memory in a way that no field describes.
    pub(super) fn no_field(&mut self, key: &str) {
        if self.get(key).is_some() && self.done.insert(key.to_owned()) {
            let from = self.key(key);
            self.out.not_modelled.push(from);
        }
    }

    /// `key` has a value that cannot be used.
    pub(super) fn bad(&mut self, key: &str, accepted: &str) {
        self.settle(key);
        let from = self.key(key);
        let message = Message::new("imports.bad").with("key", from.key).with("given", from.given);
        self.out.warnings.push(message.with("accepted", accepted));
    }

    /// Whether `key` says `auto`; then it is left open.
    pub(super) fn auto(&mut self, key: &str) -> bool {
        let auto = self.word(key).is_some_and(|w| w == "auto");
        if auto {
            self.leave(key);
        }
        auto
    }

    /// Takes a whole number, if it is one that the field accepts.
    pub(super) fn take_whole(&mut self, key: &str, path: &'static str) -> Option<u64> {
        if self.get(key).is_none() || self.auto(key) {
            return None;
        }
        let kind = field(path)?;
        match (self.whole(key), kind) {
            (Some(n), Kind::Whole(low, high)) if (low..=high).contains(&n) => {
                self.take(key, path, n);
                Some(n)
            }
            _ => {
                self.bad(key, &kind.accepted());
                None
            }
        }
    }

    /// Takes a flag as `yes` or `no`.
    pub(super) fn take_flag(
        &mut self,
        key: &str,
        path: &'static str,
        yes: impl Into<Value>,
        no: impl Into<Value>,
    ) {
        if self.get(key).is_none() || self.auto(key) {
            return;
        }
        match self.flag(key) {
            Some(true) => self.take(key, path, yes),
            Some(false) => self.take(key, path, no),
            None => self.bad(key, "true, false"),
        }
    }

    pub(super) fn warn(&mut self, message: Message) {
        self.out.warnings.push(message);
    }

    /// Reads the object at `key` as a document of another kind.
    pub(super) fn inside(&mut self, key: &str, read: fn(&mut Reading<'_>)) {
        let Some(part) = self.document.part(key) else { return };
        let mut inner = Reading::new(self.out.format, &part);
        read(&mut inner);
        self.settle(key);
        let Imported { taken, used, open, not_modelled, no_memory, unknown, warnings, deepspeed, .. } =
            inner.finish();
        let outer = |from: Key| Key { key: join(key, &from.key), ..from };
        self.out.taken.extend(taken.into_iter().map(|t| Taken { from: outer(t.from.clone()), ..t }));
        self.out.used.extend(used.into_iter().map(outer));
        self.out.open.extend(open.into_iter().map(outer));
        self.out.not_modelled.extend(not_modelled.into_iter().map(outer));
        self.out.no_memory.extend(no_memory.into_iter().map(outer));
        self.out.unknown.extend(unknown.into_iter().map(outer));
        self.out.warnings.extend(warnings);
        self.out.deepspeed |= deepspeed;
    }

    /// Files every key that nobody took.
    pub(super) fn rest(&mut self, known: &[Known]) {
        let mut leaves = Vec::new();
        walk("", false, &self.document.root, &self.done, &mut leaves);
        for (path, dotted) in leaves {
            let from = self.key(&path);
            let value = self.document.at(&path).map(word).unwrap_or_default();
            let asked = value.is_empty() && self.asked.borrow().contains(&path);
            let row = known.iter().filter(|_| !dotted).find(|(name, _)| match name.strip_suffix(".*") {
                Some(section) => {
                    path.strip_prefix(section).is_some_and(|r| r.is_empty() || r.starts_with('.'))
                }
                None => *name == path,
            });
            match row {
                None if asked && !dotted => self.out.no_memory.push(from),
                None => self.out.unknown.push(from),
                Some((_, Effect::Nothing)) => self.out.no_memory.push(from),
                Some(_) if value == "auto" => self.out.open.push(from),
                Some((_, Effect::Unless(default))) if is_default(&value, default) => {
                    self.out.no_memory.push(from);
                }
                Some(_) => self.out.not_modelled.push(from),
            }
        }
    }
}

/// Paths of the values below `map` that are not settled. A key with a dot in it only looks like a path: it is marked,
/// and no table finds it.
fn walk(
    outer: &str,
    dotted: bool,
    map: &Map<String, Value>,
    done: &BTreeSet<String>,
    out: &mut Vec<(String, bool)>,
) {
    for (name, value) in map {
        let path = join(outer, name);
        let dotted = dotted || name.contains('.');
        match value {
            _ if !dotted && done.contains(&path) => {}
            Value::Object(inner) if !inner.is_empty() => walk(&path, dotted, inner, done, out),
            _ => out.push((path, dotted)),
        }
    }
}

/// A value as text in lower case.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_ascii_lowercase(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn integral(x: f64) -> Option<u64> {
    // Above 2^53 a floating-point number is not exact, and no field of the Scenario accepts it.
    ((0.0..=9_007_199_254_740_992.0).contains(&x) && x.fract() == 0.0).then_some(x as u64)
}

fn is_default(value: &str, default: &str) -> bool {
    if value.is_empty() || value == "{}" || value == "[]" || value == default {
        return true;
    }
    match (value.parse::<f64>(), default.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b).is_eq(),
        _ => false,
    }
}
