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

use super::{Detail, Engine, EngineOption, Inputs, Surface};
use crate::memory::Ledger;
use crate::units::Problem;

/// transformers.
pub(super) struct Transformers;

const OPTIONS: &[EngineOption] = &[
    EngineOption { field: "attention", flag: "attn_implementation", default: "sdpa" },
    EngineOption { field: "cache", flag: "cache_implementation", default: "dynamic" },
    EngineOption { field: "kv_cache_dtype", flag: "cache_config.nbits", default: "auto" },
    EngineOption { field: "logits", flag: "logits_to_keep", default: "last" },
    EngineOption { field: "num_beams", flag: "num_beams", default: "1" },
    EngineOption { field: "num_return_sequences", flag: "num_return_sequences", default: "1" },
    EngineOption { field: "do_sample", flag: "do_sample", default: "false" },
    EngineOption { field: "num_speculative_tokens", flag: "num_assistant_tokens", default: "0" },
    EngineOption { field: "device_map", flag: "device_map", default: "evenly in order" },
    EngineOption { field: "padding_mask", flag: "attention_mask", default: "false" },
    EngineOption { field: "max_model_len", flag: "max_cache_len", default: "prompt + new tokens" },
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
