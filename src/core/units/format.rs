//! The only formatter of figures. On screen: GiB with two decimals, MiB below 1 GiB, never GB.

use super::Bytes;

/// A byte count for people: `14.96 GiB`, `350.0 MiB`, `12.0 KiB`, `17 B`.
///
/// ```
/// use oom_ledger_core::units::{Bytes, bytes_human};
/// assert_eq!(bytes_human(Bytes(16_060_522_496)), "14.96 GiB");
/// assert_eq!(bytes_human(Bytes(367_001_600)), "350.0 MiB");
/// assert_eq!(bytes_human(Bytes(17)), "17 B");
/// ```
pub fn bytes_human(bytes: Bytes) -> String {
    let b = bytes.0 as f64;
    if bytes.0 >= Bytes::GIB {
        format!("{:.2} GiB", b / Bytes::GIB as f64)
    } else if bytes.0 >= Bytes::MIB {
        format!("{:.1} MiB", b / Bytes::MIB as f64)
    } else if bytes.0 >= Bytes::KIB {
        format!("{:.1} KiB", b / Bytes::KIB as f64)
    } else {
        format!("{} B", bytes.0)
    }
}

/// The exact byte count with grouped digits: `16,060,522,496 B`.
pub fn bytes_exact(bytes: Bytes) -> String {
    format!("{} B", count(bytes.0))
}

/// A whole number with grouped digits: `131,072`.
///
/// ```
/// assert_eq!(oom_ledger_core::units::count(131_072), "131,072");
/// ```
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A share in percent with one decimal: `93.2 %`.
pub fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

/// A difference of byte counts for people, with its sign: `1.25 GiB`, `−350.0 MiB`.
///
/// ```
/// assert_eq!(oom_ledger_core::units::bytes_signed(-367_001_600), "−350.0 MiB");
/// ```
pub fn bytes_signed(bytes: i128) -> String {
    let size = Bytes(u64::try_from(bytes.unsigned_abs()).unwrap_or(u64::MAX));
    if bytes < 0 { format!("−{}", bytes_human(size)) } else { bytes_human(size) }
}
