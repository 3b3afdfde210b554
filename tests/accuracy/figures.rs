//! Figures of a result by path, with their range.
//!
//! A path walks the result (`kv.blocks`; `terms.weights.bytes` is the element of `terms` with that id);
//! `refusal.needed` is an argument of the refusal, and `warnings.<id>.<argument>` of a message. `a|b` is the larger,
//! `a+b` the sum, where what is missing counts nothing as long as one is there; `a/b` the whole part of a ratio.

use oom_ledger_core::share::lookup;
use serde_json::Value;

/// A figure, and its range where it is a row's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The figure.
    pub value: f64,
    /// Low and high end.
    pub range: Option<(f64, f64)>,
}

/// The figure of that path.
pub fn find(result: &Value, path: &str) -> Option<Found> {
    if let Some((above, below)) = path.split_once('/') {
        let (above, below) = (find(result, above)?.value, find(result, below)?.value);
        return (below > 0.0).then(|| Found { value: (above / below).floor(), range: None });
    }
    if path.contains('|') {
        return combine(path.split('|').filter_map(|part| find(result, part)), f64::max);
    }
    if path.contains('+') {
        return combine(path.split('+').filter_map(|part| find(result, part)), |a, b| a + b);
    }
    let parts: Vec<_> = path.split('.').collect();
    let message = match parts[..] {
        ["refusal", argument] => result.get("refusal").map(|m| (m, argument)),
        ["warnings", area, name, argument] => {
            let id = format!("{area}.{name}");
            let all = result.get("warnings")?.as_array()?;
            all.iter().find(|m| m["id"] == id.as_str()).map(|m| (m, argument))
        }
        _ => {
            let value = lookup(result, path)?.as_f64()?;
            return Some(Found { value, range: range(result, path) });
        }
    };
    let (message, argument) = message?;
    let all = message.get("args")?.as_array()?;
    let value = all.iter().find(|pair| pair[0] == argument)?.get(1)?.as_f64()?;
    Some(Found { value, range: None })
}

/// The range of a row's bytes.
fn range(result: &Value, path: &str) -> Option<(f64, f64)> {
    let row = path.strip_suffix(".bytes")?;
    let end = |name: &str| lookup(result, &format!("{row}.{name}")).and_then(Value::as_f64);
    Some((end("low")?, end("high")?))
}

fn combine(all: impl Iterator<Item = Found>, join: impl Fn(f64, f64) -> f64) -> Option<Found> {
    all.reduce(|a, b| Found {
        value: join(a.value, b.value),
        range: a.range.zip(b.range).map(|((al, ah), (bl, bh))| (join(al, bl), join(ah, bh))),
    })
}
