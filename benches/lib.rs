//! Holds nothing: the benches are in `core.rs`.
