//! Tests of permalink.
