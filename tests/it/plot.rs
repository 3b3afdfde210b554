//! Tests of plot.
