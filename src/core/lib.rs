//! The accounting core of OOM Ledger: from a model, a device and an engine to a memory ledger.
//!
//! Pure: reads no clock, file, network or environment, so the same code answers in the browser,
//! on the command line and in tests. A module uses only modules of a lower layer; `tests/it/layers.rs`
//! checks that. The map is `src/README.md`.

pub mod engines;
pub mod evidence;
pub mod hardware;
pub mod memory;
pub mod model;
pub mod plan;
pub mod plot;
pub mod share;
pub mod text;
pub mod trace;
pub mod units;
