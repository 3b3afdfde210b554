//! Texts of the page.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
