//! Layer 0: quantities with checked arithmetic, their parsing and their one formatter, and the
//! language-neutral [`Message`] that every warning and error is made of.

mod bytes;
mod format;
mod message;
mod parse;

pub use bytes::{Bytes, Overflow};
pub use format::{bytes_exact, bytes_human, bytes_signed, count, percent};
pub use message::{Message, Problem, Value};
pub use parse::{parse_bytes, parse_count};
