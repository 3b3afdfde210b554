//! Texts of the transformers engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
