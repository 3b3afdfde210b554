//! Numbers and sizes as other programs print them.

/// What a figure is, and what its unit means where it was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A size; `GB` is 2^30, as PyTorch, vLLM and SGLang mean it. A size without a unit is none.
    Binary,
    /// A size; `GB` is 10^9. A size without a unit is none.
    Decimal,
    /// A size whose unit may be left out: bytes then.
    Bytes,
    /// A size whose unit may be left out: KiB then.
    Kib,
    /// A size whose unit may be left out: MiB then.
    Mib,
    /// A size whose unit may be left out: GiB then.
    Gib,
    /// A whole number, with or without separators of thousands.
    Count,
    /// A number.
    Real,
    /// A word: up to a blank, comma, bracket or quote.
    Word,
    /// Words with blanks, up to a mark or the end of the line.
    Phrase,
    /// `True` or `False` in any case.
    Flag,
}

const UNITS: &[(&str, u64, u64)] = &[
    ("bytes", 1, 1),
    ("byte", 1, 1),
    ("KiB", 1 << 10, 1 << 10),
    ("MiB", 1 << 20, 1 << 20),
    ("GiB", 1 << 30, 1 << 30),
    ("TiB", 1 << 40, 1 << 40),
    ("KB", 1 << 10, 1_000),
    ("kB", 1 << 10, 1_000),
    ("MB", 1 << 20, 1_000_000),
    ("Mb", 1 << 20, 1_000_000),
    ("GB", 1 << 30, 1_000_000_000),
    ("Gb", 1 << 30, 1_000_000_000),
    ("TB", 1 << 40, 1_000_000_000_000),
    ("Ki", 1 << 10, 1 << 10),
    ("Mi", 1 << 20, 1 << 20),
    ("Gi", 1 << 30, 1 << 30),
    ("K", 1 << 10, 1_000),
    ("M", 1 << 20, 1_000_000),
    ("G", 1 << 30, 1_000_000_000),
    ("B", 1, 1),
];

/// Bytes of one unit at the start of `text`, and its length; `ends` says whether a word may end after that many
/// bytes.
pub(crate) fn unit_at(text: &[u8], unit: Unit, ends: impl Fn(usize) -> bool) -> Option<(f64, usize)> {
    UNITS.iter().find_map(|(name, binary, decimal)| {
        let fits = text.starts_with(name.as_bytes()) && ends(name.len());
        let bytes = if unit == Unit::Decimal { decimal } else { binary };
        fits.then_some((*bytes as f64, name.len()))
    })
}

/// Bytes of one unit where none is printed; none where it must be printed.
pub(crate) fn bare(unit: Unit) -> Option<f64> {
    match unit {
        Unit::Bytes => Some(1.0),
        Unit::Kib => Some(1024.0),
        Unit::Mib => Some((1u64 << 20) as f64),
        Unit::Gib => Some((1u64 << 30) as f64),
        _ => None,
    }
}

/// The end of the number that starts `text`: digits, one point, separators of thousands, a sign. `joined(i)` says
/// whether byte `i` stood directly behind byte `i - 1`.
pub(crate) fn number_end(text: &[u8], joined: impl Fn(usize) -> bool) -> usize {
    let mut end = usize::from(text.first().is_some_and(|b| *b == b'-' || *b == b'+'));
    let mut point = false;
    while let Some(byte) = text.get(end) {
        if end > 0 && !joined(end) {
            break;
        }
        let digit = |i: usize| text.get(i).is_some_and(u8::is_ascii_digit) && joined(i);
        let ok = match byte {
            b'0'..=b'9' => true,
            b'.' if !point && digit(end + 1) => {
                point = true;
                true
            }
            // Three digits and no fourth after a comma: thousands.
            b',' | b'_' if !point && end > 0 => {
                digit(end + 1) && digit(end + 2) && digit(end + 3) && !digit(end + 4)
            }
            _ => false,
        };
        if !ok {
            break;
        }
        end += 1;
    }
    end
}

/// The number written in `text`, separators left out.
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    let plain: String = text.iter().filter(|b| **b != b',' && **b != b'_').map(|b| char::from(*b)).collect();
    if !plain.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    plain.parse().ok()
}

/// The whole number written in `text`, exactly; a fraction or a sign is none.
pub(crate) fn parse_whole(text: &[u8]) -> Option<u64> {
    let plain: String = text.iter().filter(|b| **b != b',' && **b != b'_').map(|b| char::from(*b)).collect();
    plain.parse().ok()
}
