//! Tests of vllm.
