//! Tests of kv_cache.
