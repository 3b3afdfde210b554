//! Texts of limits and projections.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
