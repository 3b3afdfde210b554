//! Tests of hardware.
