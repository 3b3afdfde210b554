//! Reads the fields of a config: aliases, class defaults, and limits that keep every later product in range.

use crate::units::Problem;
use serde_json::{Map, Value};

/// Largest width, feed-forward or vocabulary accepted. Two of them multiply within 2^48, so no sum of a
/// few products can leave 64 bits; larger products are checked where they are made.
pub(crate) const MAX_SIZE: u64 = 1 << 24;
/// Most heads, and largest head dim, rank or kernel, accepted.
pub(crate) const MAX_HEADS: u64 = 1 << 16;
/// Most layers accepted: memory used here grows with them.
pub(crate) const MAX_LAYERS: u64 = 4096;
/// Most experts of one layer accepted.
pub(crate) const MAX_EXPERTS: u64 = 1 << 16;
/// Most positions accepted.
pub(crate) const MAX_POSITIONS: u64 = 1 << 40;

/// The fields of one JSON object of a config.
///
/// A field name may list aliases, as in `num_hidden_layers|n_layer`; of several written, the last in the
/// file wins, as in transformers (so an override, which is appended, wins over the file's own alias).
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// Path of the object inside the config, with a trailing dot, or empty.
    path: &'static str,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(map: &'a Map<String, Value>, path: &'static str) -> Self {
        Fields { map, path }
    }

    /// Whether no field is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Whether the field is written, `null` included.
    pub(crate) fn has(&self, names: &str) -> bool {
        names.split('|').any(|n| self.map.contains_key(n))
    }

    /// The alias that is written and not null.
    pub(crate) fn value<'n>(&self, names: &'n str) -> Option<(&'n str, &'a Value)> {
        let written = |name: &&str| self.map.get(*name).is_some_and(|v| !v.is_null());
        let mut found = names.split('|').filter(written);
        let first = found.next()?;
        let name = match found.next() {
            None => first,
            Some(_) => self
                .map
                .keys()
                .rev()
                .find_map(|key| names.split('|').find(|name| *name == key.as_str() && written(name)))?,
        };
        Some((name, self.map.get(name)?))
    }

    /// The object in that field, if it is one.
    pub(crate) fn object(&self, name: &str) -> Option<&'a Map<String, Value>> {
        self.map.get(name).and_then(Value::as_object)
    }

    /// What is wrong with `name`.
    pub(crate) fn problem(&self, name: &str, given: &Value, accepted: impl Into<String>) -> Problem {
        let field = format!("model.config.{}{name}", self.path);
        Problem::not_accepted(&field, shorten(given), accepted.into())
    }

    /// A whole number from `min` to `max`, if written.
    pub(crate) fn whole(&self, names: &str, min: u64, max: u64) -> Result<Option<u64>, Problem> {
        let Some((name, value)) = self.value(names) else { return Ok(None) };
        // Converters write whole sizes as 4096.0 now and then.
        let whole = value.as_u64().or_else(|| {
            let real = value.as_f64()?;
            ((0.0..9e15).contains(&real) && real.fract() == 0.0).then_some(real as u64)
        });
        match whole {
            Some(n) if (min..=max).contains(&n) => Ok(Some(n)),
            _ => Err(self.problem(name, value, format!("{min} ... {max}"))),
        }
    }

    /// A size of the model: 1 to [`MAX_SIZE`], or the class default.
    pub(crate) fn size(&self, names: &str, default: u64) -> Result<u64, Problem> {
        Ok(self.whole(names, 1, MAX_SIZE)?.unwrap_or(default))
    }

    /// A count of heads, a head dim, a rank or a kernel width: 1 to [`MAX_HEADS`], or the default.
    pub(crate) fn heads(&self, names: &str, default: u64) -> Result<u64, Problem> {
        Ok(self.whole(names, 1, MAX_HEADS)?.unwrap_or(default))
    }

    /// A number of layers: 1 to [`MAX_LAYERS`], or the default.
    pub(crate) fn layers(&self, names: &str, default: u64) -> Result<u64, Problem> {
        Ok(self.whole(names, 1, MAX_LAYERS)?.unwrap_or(default))
    }

    /// A number of experts: 0 to [`MAX_EXPERTS`], or the default.
    pub(crate) fn experts(&self, names: &str, default: u64) -> Result<u64, Problem> {
        Ok(self.whole(names, 0, MAX_EXPERTS)?.unwrap_or(default))
    }

    /// A count where a written `null` means "derive it" and a missing field means the default; never 0.
    pub(crate) fn derivable(
        &self,
        names: &str,
        max: u64,
        default: Option<u64>,
    ) -> Result<Option<u64>, Problem> {
        match self.whole(names, 1, max)? {
            None if !self.has(names) => Ok(default),
            written => Ok(written),
        }
    }

    /// A size where a written `null` (and 0) means "none" and a missing field means the default.
    pub(crate) fn optional(
        &self,
        names: &str,
        max: u64,
        default: Option<u64>,
    ) -> Result<Option<u64>, Problem> {
        match self.whole(names, 0, max)? {
            Some(0) => Ok(None),
            Some(n) => Ok(Some(n)),
            None if self.has(names) => Ok(None),
            None => Ok(default),
        }
    }

    /// A switch. A written `null` is off, as in Python.
    pub(crate) fn flag(&self, names: &str, default: bool) -> Result<bool, Problem> {
        match self.value(names) {
            Some((_, Value::Bool(b))) => Ok(*b),
            Some((name, value)) => Err(self.problem(name, value, "true, false")),
            None => Ok(default && !self.has(names)),
        }
    }

    /// A text, if written.
    pub(crate) fn text(&self, names: &str) -> Option<&'a str> {
        self.value(names).and_then(|(_, v)| v.as_str())
    }

    /// A list of texts, if written.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>, Problem> {
        let Some((_, value)) = self.value(name) else { return Ok(None) };
        let list = value.as_array().and_then(|all| all.iter().map(Value::as_str).collect());
        list.map(Some).ok_or_else(|| self.problem(name, value, "[\"…\", \"…\"]"))
    }

    /// A list of whole numbers, if written.
    pub(crate) fn numbers(&self, name: &str) -> Result<Option<Vec<u64>>, Problem> {
        let Some((_, value)) = self.value(name) else { return Ok(None) };
        let list = value.as_array().and_then(|all| all.iter().map(Value::as_u64).collect());
        list.map(Some).ok_or_else(|| self.problem(name, value, "[0, 1, …]"))
    }
}

/// A value as quoted in a message: long ones are cut.
fn shorten(value: &Value) -> String {
    let text = match value {
        Value::String(s) => s.clone(),
        Value::Array(all) if all.len() > 8 => format!("[… {} …]", all.len()),
        Value::Object(map) => format!("{{… {} …}}", map.len()),
        other => other.to_string(),
    };
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
