//! Nothing but tests: see `core.rs`.
