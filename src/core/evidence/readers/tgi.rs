//! What Text Generation Inference prints. Its `GB` and `MB` are decimal.
//!
//! Sources: `server/text_generation_server/models/flash_causal_lm.py` (`warmup`), `router/src/lib.rs`,
//! `backends/v3/src/lib.rs`; github.com/huggingface/text-generation-inference, 0.9 to 3.3.

use crate::evidence::number::Unit::{Count, Decimal, Word};
use crate::evidence::rule::{Rule, Take};

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("tgi")
}

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    rule("Not enough memory to handle").needs(&["prefill tokens"]).kind("tgi_warmup").reach(160).takes(&[
        Take::before("tokens_wanted", "total tokens with", Count),
        Take::before("max_num_batched_tokens", "prefill tokens.", Count),
        Take::before("tokens_needed", "prefill tokens.", Count),
    ]),
    rule("Not enough memory to handle max_total_tokens=").kind("tgi_warmup").reach(40).takes(&[Take::after(
        "tokens_needed",
        "",
        Count,
    )]),
    rule("Unable to warmup the Python model shards:").kind("tgi_warmup").reach(20),
    rule("Decode cuda graph warmup failed").kind("tgi_warmup").reach(20),
    rule("Setting max batch total tokens to").reach(20).takes(&[Take::after("kv_tokens", "", Count)]),
    rule("KV-cache blocks:")
        .reach(40)
        .takes(&[Take::after("blocks", "", Count), Take::after("block_size", "size:", Count)]),
    rule("Free memory after allocating the cache:").reach(20).takes(&[Take::after(
        "free_after_pool",
        "",
        Decimal,
    )]),
    rule("Free memory before the warmup:").reach(20).takes(&[Take::after("free_after_load", "", Decimal)]),
    rule("text_generation_launcher: Args {").reach(1200).takes(&[
        Take::after("model", "model_id:", Word),
        Take::after("tp", "num_shard: Some(", Count),
        Take::after("max_model_len", "max_total_tokens: Some(", Count),
        Take::after("max_num_batched_tokens", "max_batch_prefill_tokens: Some(", Count),
    ]),
];
