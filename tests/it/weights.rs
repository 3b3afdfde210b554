//! Tests of weights.
