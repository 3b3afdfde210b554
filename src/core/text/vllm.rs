//! Texts of the vLLM engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
