//! Byte counts that cannot wrap.

use serde::{Deserialize, Serialize};

/// A number of bytes. Arithmetic is checked: a figure that does not fit in 64 bits is an error, never a wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A product or sum left the range of 64-bit byte counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the figure exceeds 2^64 bytes")
    }
}

impl std::error::Error for Overflow {}

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// 2^10 bytes.
    pub const KIB: u64 = 1 << 10;
    /// 2^20 bytes.
    pub const MIB: u64 = 1 << 20;
    /// 2^30 bytes.
    pub const GIB: u64 = 1 << 30;

    /// `n` mebibytes (2^20 bytes each).
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// The sum, or [`Overflow`].
    #[expect(clippy::should_implement_trait, reason = "an operator could not report the overflow")]
    pub fn add(self, other: Bytes) -> Result<Bytes, Overflow> {
        self.0.checked_add(other.0).map(Bytes).ok_or(Overflow)
    }

    /// The product with a plain count, or [`Overflow`].
    pub fn times(self, n: u64) -> Result<Bytes, Overflow> {
        self.0.checked_mul(n).map(Bytes).ok_or(Overflow)
    }

    /// The difference, or zero where it would be negative.
    pub fn minus(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// The product of factors in bytes, or [`Overflow`].
    ///
    /// ```
    /// use oom_ledger_core::units::Bytes;
    /// assert_eq!(Bytes::product(&[2, 32, 8, 128, 8192, 2]), Ok(Bytes(1 << 30)));
    /// assert!(Bytes::product(&[u64::MAX, 2]).is_err());
    /// ```
    pub fn product(factors: &[u64]) -> Result<Bytes, Overflow> {
        factors.iter().try_fold(1u64, |a, &b| a.checked_mul(b)).map(Bytes).ok_or(Overflow)
    }

    /// The sum of all, or [`Overflow`].
    pub fn sum(all: impl IntoIterator<Item = Bytes>) -> Result<Bytes, Overflow> {
        all.into_iter().try_fold(Bytes::ZERO, Bytes::add)
    }

    /// Rounded up to a multiple of `step` (which must not be zero), or [`Overflow`].
    pub fn round_up(self, step: u64) -> Result<Bytes, Overflow> {
        self.0.checked_next_multiple_of(step).map(Bytes).ok_or(Overflow)
    }
}
