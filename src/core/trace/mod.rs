//! Layer 3: memory logs. Importers (one file a format) make a [`Timeline`]; the classifier says what each
//! curve shows. Formats are told by content alone, so a file and the same bytes pasted read the same.

#![allow(clippy::unnecessary_wraps, reason = "importers share one signature, and some never refuse")]
#![allow(clippy::float_cmp, reason = "stamps and values are compared as they were read")]
#![allow(clippy::assigning_clones, reason = "short words, once a card")]

mod amd;
mod cards;
mod cell;
mod classify;
mod columns;
mod csv_bare;
mod csv_header;
mod dcgm;
mod decode;
mod dmon;
mod fields;
mod gauges;
mod gpustat;
mod importers;
mod json;
mod nvitop;
mod query;
mod refusal;
mod rows;
mod stamp;
mod table;
mod tegrastats;
mod timeline;
mod xml;

pub use classify::{Flag, Shape, Verdict, classify};
pub use decode::{Decoded, decode};
pub use importers::{IMPORTERS, Importer, Input};
pub use timeline::{Quantity, Sample, Series, Timeline, Warning};

use crate::units::Message;

/// Why a text gives no timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The format, where it is one that we know.
    pub format: Option<&'static str>,
    /// What the text is, what it lacks, and the command that makes a readable one.
    pub message: Message,
}

/// Reads a memory log from any bytes.
///
/// Errors: a [`Refusal`] that says which command makes a readable log. Never panics, never guesses a format.
///
/// ```
/// use oom_ledger_core::trace::read;
/// let log = b"timestamp, index, memory.used [MiB]\n2024/01/02 12:34:56.789, 0, 12 MiB\n";
/// let timeline = read(log).unwrap();
/// assert_eq!(timeline.format, "nvidia-smi-query-csv");
/// assert_eq!(timeline.series[0].samples[0].used, 12 << 20);
/// assert!(read(b"dear diary").is_err());
/// ```
pub fn read(bytes: &[u8]) -> Result<Timeline, Refusal> {
    let decoded = decode(bytes);
    let input = Input::new(&decoded);
    if decoded.text.trim().is_empty() {
        return Err(Refusal { format: None, message: Message::new("trace.empty") });
    }
    // A captured `watch` redraws only the cells that changed.
    if decoded.escapes > 20 && decoded.escapes > 5 * decoded.text.matches('\n').count() {
        return Err(Refusal { format: None, message: Message::new("trace.screen_capture") });
    }
    let Some(importer) = IMPORTERS.iter().find(|i| (i.sniff)(&input)) else {
        return Err(refusal::of(&input));
    };
    let refuse = |message| Refusal { format: Some(importer.id), message };
    let rows = (importer.read)(&input).map_err(refuse)?;
    if rows.list.is_empty() && rows.lost.is_empty() {
        return Err(refuse(Message::new("trace.no_values")));
    }
    let mut timeline = rows.finish(importer.id);
    refusal::driver_messages(&input, &mut timeline.warnings);
    let mut note = |message| timeline.warnings.push(Warning { line: None, message });
    if decoded.nuls > 0 {
        note(Message::new("trace.nuls").with("count", decoded.nuls as u64));
    }
    if decoded.utf16 {
        note(Message::new("trace.utf16"));
    }
    if decoded.legacy {
        note(Message::new("trace.legacy"));
    }
    if timeline.series.iter().all(|s| s.samples.iter().all(|p| p.time.is_nan())) {
        note(Message::new("trace.no_time"));
    }
    timeline.warnings.sort_by_key(|w| w.line.unwrap_or(0));
    Ok(timeline)
}
