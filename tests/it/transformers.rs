//! Tests of transformers.
