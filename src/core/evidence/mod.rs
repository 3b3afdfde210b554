//! Layer 3: what a pasted or dropped text says about memory: error messages, start-up logs, dumps of an allocator.
//!
//! [`read`] takes any bytes. Lines are cleaned of what terminals, loggers and launchers put before them; the start
//! of every known message ([`READERS`]) is found in one pass; a message is compared without blanks, so that it may
//! be wrapped, indented or quoted. A figure keeps the line that it stands on.

mod choose;
mod decode;
mod derived;
mod fact;
mod find;
mod found;
mod keys;
mod lines;
mod number;
mod pickle;
mod prefix;
mod readers;
mod redact;
mod rule;
mod scan;
mod snapshot;
mod window;

pub use fact::{ErrorSeen, Evidence, Fact, Figure};
pub use keys::{KEYS, KINDS, Key, KeyKind, Kind, Pick, Weight, key_of, kind_of};
pub use readers::{READERS, Reader};
pub use redact::{Redacted, redact};
pub use snapshot::Holder;

use crate::units::Message;

/// What a text is and what it says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What kind of text it is: an id of [`READERS`]; `unknown` where nothing in it is known.
    pub format: &'static str,
    /// What it says.
    pub evidence: Evidence,
    /// What a reader should know about how it was read.
    pub warnings: Vec<Message>,
}

impl Reading {
    /// The document that `oom-ledger read` prints, with the warnings in `lang`'s words given by `sentence`.
    pub fn to_json(&self, sentence: impl Fn(&Message) -> String) -> serde_json::Value {
        let warnings: Vec<String> = self.warnings.iter().map(sentence).collect();
        serde_json::json!({"format": self.format, "warnings": warnings, "evidence": self.evidence.to_json()})
    }
}

/// Reads `bytes`, whatever they are; never fails, never panics, time linear in their number.
///
/// ```
/// let text = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB. GPU 0 has a total capacity \
///     of 23.57 GiB of which 592.00 MiB is free.";
/// let reading = oom_ledger_core::evidence::read(text);
/// assert_eq!(reading.format, "pytorch-oom");
/// assert_eq!(reading.evidence.error_kind(), Some("torch_oom"));
/// assert_eq!(reading.evidence.bytes("tried_to_allocate"), Some(1_868_310_774));
/// ```
pub fn read(bytes: &[u8]) -> Reading {
    let mut found = found::Found::default();
    // A pickle that is no snapshot is no text either.
    if snapshot::is_pickle(bytes) {
        snapshot::snapshot(bytes, &mut found);
    } else {
        scan::scan(&decode::text(bytes), &mut found);
    }
    let format = found.format();
    Reading { format, evidence: found.evidence, warnings: found.warnings }
}
