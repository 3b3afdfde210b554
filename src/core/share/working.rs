//! A working as one line: the formula, the same with the person's numbers, the result.

use crate::memory::{Symbol, Working};
use crate::units::{Bytes, Value, bytes_human};

/// The line of a working, in pieces that a page may set apart.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkingLine {
    /// The formula as written.
    pub formula: String,
    /// The formula with values in place of symbols, where it has any.
    pub substituted: Option<String>,
    /// The result.
    pub result: String,
}

impl WorkingLine {
    /// The line of `working`.
    ///
    /// ```
    /// use oom_ledger_core::memory::Working;
    /// use oom_ledger_core::share::WorkingLine;
    /// let working = Working::new("2 · L · T · e", 1 << 20)
    ///     .with("L", 32_u64, "layers").with("T", 8192_u64, "tokens").with("e", 2_u64, "B/element");
    /// let line = WorkingLine::new(&working).to_string();
    /// assert_eq!(line, "2 · L · T · e = 2 · 32 · 8,192 · 2 B = 1.0 MiB");
    /// ```
    pub fn new(working: &Working) -> WorkingLine {
        let substituted = substitute(working.formula, &working.symbols);
        WorkingLine {
            formula: working.formula.to_owned(),
            substituted: Some(substituted).filter(|text| text != working.formula),
            result: bytes_human(Bytes(working.result)),
        }
    }
}

impl std::fmt::Display for WorkingLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pieces = [Some(&self.formula), self.substituted.as_ref(), Some(&self.result)];
        let pieces: Vec<_> =
            pieces.into_iter().flatten().filter(|p| !p.is_empty()).map(String::as_str).collect();
        f.write_str(&pieces.join(" = "))
    }
}

/// Values in place of symbols; the longest name that fits wins, and only whole names are replaced.
fn substitute(formula: &str, symbols: &[Symbol]) -> String {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(formula.len() * 2);
    let mut rest = formula;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let fits = |symbol: &&Symbol| {
            !symbol.name.is_empty()
                && rest.starts_with(symbol.name)
                && !rest[symbol.name.len()..].starts_with(part_of_name)
        };
        let found = match before {
            Some(c) if part_of_name(c) => None,
            _ => symbols.iter().filter(fits).max_by_key(|symbol| symbol.name.len()),
        };
        let taken = if let Some(symbol) = found {
            out.push_str(&value(symbol));
            symbol.name.len()
        } else {
            out.push(first);
            first.len_utf8()
        };
        before = rest[..taken].chars().last();
        rest = &rest[taken..];
    }
    out
}

/// A value with its unit where that unit is bytes: `e` of 2 bytes per element reads `2 B`.
fn value(symbol: &Symbol) -> String {
    let bytes = symbol.unit == "B" || symbol.unit.starts_with("B/");
    match &symbol.value {
        Value::Int(_) | Value::Real(_) if bytes => format!("{} B", symbol.value),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::WorkingLine;
    use crate::memory::Working;
    use crate::units::Bytes;

    #[test]
    fn only_whole_names_are_replaced() {
        let working = Working::new("max(H, H_kv) · D · Σ d_ff / t", 8)
            .with("H", 32_u64, "")
            .with("H_kv", 8_u64, "")
            .with("d", 5_u64, "")
            .with("D", Bytes(2048), "")
            .with("t", 0.5, "");
        let line = WorkingLine::new(&working);
        assert_eq!(line.substituted.as_deref(), Some("max(32, 8) · 2.0 KiB · Σ d_ff / 0.5"));
    }

    #[test]
    fn a_formula_without_symbols_stands_once() {
        assert_eq!(WorkingLine::new(&Working::new("observed", 17)).to_string(), "observed = 17 B");
        assert_eq!(WorkingLine::new(&Working::new("", 17)).to_string(), "17 B");
    }
}
