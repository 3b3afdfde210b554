//! `torch.cuda.memory_summary()` and dumps of `torch.cuda.memory_stats()`.
//!
//! Source: `torch/cuda/memory.py` (`memory_summary`, `memory_stats`), 1.4 to 2.11; the columns are current use, peak,
//! all allocated and all freed.

use crate::evidence::fact::Figure;
use crate::evidence::found::Found;
use crate::evidence::number::Unit::{self, Binary, Bytes, Count};
use crate::evidence::rule::Rule;
use crate::evidence::window::Window;

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("memory summary, device ID").reach(9000).more(summary),
    Rule::new("reserved_bytes.all.current").reach(40).more(|w, f| stat(w, f, "reserved_total", Bytes)),
    Rule::new("reserved_bytes.all.peak").reach(40).more(|w, f| stat(w, f, "peak_reserved", Bytes)),
    Rule::new("allocated_bytes.all.current").reach(40).more(|w, f| stat(w, f, "allocated_by_pytorch", Bytes)),
    Rule::new("allocated_bytes.all.peak").reach(40).more(|w, f| stat(w, f, "peak_allocated", Bytes)),
    Rule::new("requested_bytes.all.current").reach(40).more(|w, f| stat(w, f, "requested", Bytes)),
    Rule::new("inactive_split_bytes.all.current").reach(40).more(|w, f| stat(w, f, "non_releasable", Bytes)),
    Rule::new("segment.all.current").reach(40).more(|w, f| stat(w, f, "segments", Count)),
    Rule::new("num_alloc_retries").reach(40).more(|w, f| stat(w, f, "alloc_retries", Count)),
    Rule::new("num_ooms").reach(40).more(|w, f| stat(w, f, "oom_events", Count)),
];

/// Rows of the table, with the names of their first two columns.
const ROWS: &[(&str, &str, &str, Unit)] = &[
    ("| Allocated memory |", "allocated_by_pytorch", "peak_allocated", Binary),
    ("| Requested memory |", "requested", "", Binary),
    ("| GPU reserved memory |", "reserved_total", "peak_reserved", Binary),
    ("| Non-releasable memory |", "non_releasable", "", Binary),
    ("| GPU reserved segments |", "segments", "", Count),
];

fn summary(window: &Window, found: &mut Found) {
    let end = window.len();
    let after = |marker: &str| window.find(marker, 0, end).map(|(_, at)| at);
    let device = after("device ID").and_then(|at| window.figure(at, Count));
    for (marker, key) in [("CUDA OOMs:", "oom_events"), ("cudaMalloc retries:", "alloc_retries")] {
        if let Some(at) = after(marker)
            && let Some((figure, _)) = window.figure(at, Count)
        {
            found.fact(window, at, key, figure);
        }
    }
    for (marker, now, peak, unit) in ROWS {
        let Some(at) = after(marker) else { continue };
        let Some((figure, next)) = window.figure(at, *unit) else { continue };
        found.fact(window, at, now, figure);
        if !peak.is_empty()
            && window.has("|", next, next + 1)
            && let Some((figure, _)) = window.figure(next + 1, *unit)
        {
            found.fact(window, next, peak, figure);
        }
    }
    if let Some((Figure::Count(device), _)) = device {
        found.device(u32::try_from(device).ok());
    }
}

/// `'allocated_bytes.all.current': 123`, with any quotes and signs between name and number.
fn stat(window: &Window, found: &mut Found, key: &'static str, unit: Unit) {
    let name_ends = window.find("current", 0, window.len()).or_else(|| window.find("peak", 0, window.len()));
    let name_ends = name_ends
        .or_else(|| window.find("num_alloc_retries", 0, window.len()))
        .or_else(|| window.find("num_ooms", 0, window.len()));
    let Some((_, at)) = name_ends else { return };
    for skip in 0..4 {
        if let Some((figure, _)) = window.figure(at + skip, unit) {
            found.fact(window, at, key, figure);
            return;
        }
    }
}
