//! Hugging Face transformers: no pool; the peak of a forward pass of its modelling code.
//!
//! `class` says what the class of a model does, `program` writes one pass with it on a `tape` (through
//! `emit`, `attention`, `scores` and `feed_forward`), `job` and `layout` know what is fixed, caches and lengths, and `ledger`
//! and `surface` read the peaks off.

mod attention;
pub(in crate::engines) mod class;
mod device_map;
mod emit;
mod feed_forward;
mod host;
mod job;
pub(in crate::engines) mod layout;
mod ledger;
mod program;
mod quantized;
mod scores;
mod select;
mod spread;
mod steps;
mod sum;
mod surface;
mod table;
mod tape;

pub use ledger::{CacheBytes, cache_bytes};
pub(super) use ledger::{other_processes, total};

use super::{Detail, Engine, EngineOption, Inputs, Surface, option};
use crate::memory::Ledger;
use crate::units::Problem;

/// transformers.
pub(super) struct Transformers;

const OPTIONS: &[EngineOption] = &[
    option("attention", "attn_implementation", "sdpa"),
    option("cache", "cache_implementation", "dynamic"),
    option("kv_cache_dtype", "cache_config.nbits", "auto"),
    option("logits", "logits_to_keep", "last"),
    option("num_beams", "num_beams", "1"),
    option("num_return_sequences", "num_return_sequences", "1"),
    option("do_sample", "do_sample", "false"),
    option("num_speculative_tokens", "num_assistant_tokens", "0"),
    option("device_map", "device_map", "evenly in order"),
    option("padding_mask", "attention_mask", "false"),
    option("max_model_len", "max_cache_len", "prompt + new tokens"),
];

impl Engine for Transformers {
    fn id(&self) -> &'static str {
        "transformers"
    }
    fn name(&self) -> &'static str {
        "transformers"
    }
    fn options(&self) -> &'static [EngineOption] {
        OPTIONS
    }
    fn ledger(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        spread::ledger(inputs, Detail::Whole)
    }
    fn figures(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        spread::ledger(inputs, Detail::Figures)
    }
    fn surface(&self, inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
        spread::surface(inputs)
    }
}
