//! Reads byte counts and whole numbers as people type them.

use super::{Bytes, Message, Problem};

/// Bytes from `80GiB`, `24576 MiB`, `16 GB` (10^9), `25757220864`: unit optional, case and spaces free.
///
/// `GB` and `MB` are decimal here, since a person typed them; the importers of engine output, which prints
/// `GB` for 2^30, do not use this function.
///
/// ```
/// use oom_ledger_core::units::{Bytes, parse_bytes};
/// assert_eq!(parse_bytes("", "80 GiB").unwrap(), Bytes(85_899_345_920));
/// assert_eq!(parse_bytes("", "1.5MiB").unwrap(), Bytes(1_572_864));
/// assert!(parse_bytes("", "80 parsecs").is_err());
/// ```
///
/// Errors: names the field, the text given and the accepted forms.
pub fn parse_bytes(field: &str, given: &str) -> Result<Bytes, Problem> {
    let problem = || Problem::not_accepted(field, given, "80GiB, 24576 MiB, 25757220864");
    let text: String = given.chars().filter(|c| !c.is_whitespace() && *c != '_' && *c != ',').collect();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" | "ki" => 1 << 10,
        "mib" | "mi" => 1 << 20,
        "gib" | "gi" => 1 << 30,
        "tib" | "ti" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(problem()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).map(Bytes).ok_or_else(|| {
            Problem::new(field, Message::new("problem.too_large").with("field", field).with("given", given))
        });
    }
    let real: f64 = number.parse().map_err(|_| problem())?;
    let bytes = real * factor as f64;
    if bytes.is_finite() && bytes < 1.8e19 { Ok(Bytes(bytes.round() as u64)) } else { Err(problem()) }
}

/// A whole number as typed: `131072`, `131,072`, `131_072`. Never `128k`: it is ambiguous.
pub fn parse_count(field: &str, given: &str) -> Result<u64, Problem> {
    let text: String = given.trim().chars().filter(|c| *c != ',' && *c != '_').collect();
    text.parse().map_err(|_| Problem::not_accepted(field, given, "131072, 131,072"))
}
