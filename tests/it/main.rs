//! Integration tests of the core, one binary.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod accuracy;
mod docs;
mod hardware;
mod kv_cache;
mod layers;
mod model;
mod model_input;
mod permalink;
mod plan;
mod plot;
mod presets;
mod report;
mod scenario;
mod text;
mod transformers;
mod vllm;
mod weights;
