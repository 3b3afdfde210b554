//! Texts of the Markdown report and the command line's text output.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[];
