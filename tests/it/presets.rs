//! Tests of presets.
