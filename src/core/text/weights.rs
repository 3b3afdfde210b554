//! Texts of weights, quantisation and devices.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
