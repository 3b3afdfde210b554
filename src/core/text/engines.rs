//! Texts of engine names, options and what they do.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
