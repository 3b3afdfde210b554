//! Texts of models and their configs.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
