//! One cell of a log: amounts with and without units, and the many words for "no value".

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// A number with its unit.
    Number(f64, Unit),
    /// The tool says that it has no value.
    Missing,
    /// The tool says that the device is gone.
    Lost,
    /// Anything else.
    Text,
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// None written.
    None,
    /// A power of 1024, as bytes per unit. `MB` too: every tool that prints it means 2^20.
    Bytes(u64),
    /// Per cent.
    Percent,
    /// W, MHz, C, …
    Other,
}

/// The unit that `word` names.
pub fn unit(word: &str) -> Unit {
    let word = word.trim();
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    if word.is_empty() {
        Unit::None
    } else if word == "%" || is(&["percent"]) {
        Unit::Percent
    } else if is(&["MiB", "MB", "M", "mebibytes"]) {
        Unit::Bytes(1 << 20)
    } else if is(&["GiB", "GB", "G"]) {
        Unit::Bytes(1 << 30)
    } else if is(&["KiB", "KB", "K"]) {
        Unit::Bytes(1 << 10)
    } else if is(&["B", "bytes"]) {
        Unit::Bytes(1)
    } else {
        Unit::Other
    }
}

/// Reads a cell. `comma`: whether a decimal comma may stand in a number.
pub fn cell(text: &str, comma: bool) -> Cell {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '"');
    let Some(first) = text.bytes().next() else { return Cell::Missing };
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) {
        return words(text);
    }
    if text == "-" {
        return Cell::Missing;
    }
    let signs = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+') || (comma && c == ',');
    let mut end = text.find(|c: char| !signs(c)).unwrap_or(text.len());
    if text[end..].starts_with(['e', 'E'])
        && text[end + 1..].starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c))
    {
        let digits = |c: char| !(c.is_ascii_digit() || "+-".contains(c));
        end += 1 + text[end + 1..].find(digits).unwrap_or(text.len() - end - 1);
    }
    let digits = &text[..end];
    let value: Option<f64> = if comma && digits.contains(',') {
        digits.replace(',', ".").parse().ok()
    } else {
        digits.parse().ok()
    };
    match value {
        Some(value) if value.is_finite() => Cell::Number(value, unit(&text[end..])),
        Some(_) => Cell::Missing,
        None => words(text),
    }
}

fn words(text: &str) -> Cell {
    let lower = text.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    if has("gpu is lost") || has("requires reset") {
        Cell::Lost
    } else if has("n/a")
        || has("not supported")
        || has("not found")
        || has("deprecated")
        || has("unknown error")
        || has("insufficient permissions")
        || matches!(lower.as_str(), "err!" | "nan" | "+inf" | "-inf" | "inf" | "none" | "null" | "-")
    {
        Cell::Missing
    } else {
        Cell::Text
    }
}

/// Bytes of an amount of memory; none for what no card can hold (the "blank" values of DCGM among them).
pub fn bytes(value: f64, per_unit: u64) -> Option<u64> {
    let bytes = value * per_unit as f64;
    // 2^50 is a PiB; DCGM's blanks lie above 2^31 MiB. The 32-bit ones (0x7FFFFFF0 and on) are in MiB.
    (bytes.is_finite() && (0.0..2f64.powi(50)).contains(&bytes)).then(|| bytes.round() as u64)
}

/// Bytes of a memory cell, where a bare number counts `bare` bytes.
pub fn memory(text: &str, bare: u64, comma: bool) -> Option<u64> {
    match cell(text, comma) {
        Cell::Number(value, Unit::None) => bytes(value, bare),
        Cell::Number(value, Unit::Bytes(per_unit)) => bytes(value, per_unit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_missing_values() {
        assert_eq!(memory("1234 MiB", 1, false), Some(1234 << 20));
        assert_eq!(memory("1234", 1 << 20, false), Some(1234 << 20));
        assert_eq!(memory("12,5", 1 << 20, true), Some((12 << 20) + (1 << 19)));
        assert_eq!(memory("2.5GiB", 1, false), Some(5 << 29));
        assert_eq!(memory("1.5e3 KiB", 1, false), Some(1500 << 10));
        for none in
            ["9223372036854775794", "2147483635", "[N/A]", "-", "", "NaN", "72.95G1B", "12 %", "1e400", "-5"]
        {
            assert_eq!(memory(none, 1 << 20, false), None, "{none}");
        }
        assert_eq!(cell("[GPU is lost]", false), Cell::Lost);
        assert_eq!(cell("Tesla", false), Cell::Text);
        assert_eq!(cell("17 %", false), Cell::Number(17.0, Unit::Percent));
    }
}
