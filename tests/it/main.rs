//! Integration tests of the core, one binary.

#![expect(clippy::print_stdout, reason = "tests print their error tables, shown when one fails")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod accuracy;
mod checkpoint;
mod checkpoint_bytes;
mod device_map;
mod docs;
mod evidence;
mod evidence_torch;
mod from_log;
mod generate;
mod gguf_models;
mod hardware;
mod imports;
mod kv_cache;
mod layers;
mod levers;
mod limits;
mod llama_cpp;
mod lmdeploy;
mod model;
mod model_input;
mod permalink;
mod plan;
mod plot;
mod pooled;
mod presets;
mod report;
mod rivals;
mod scenario;
mod sglang;
mod tensorrt_llm;
mod text;
mod tgi;
mod trace;
mod training;
mod training_claims;
mod training_levers;
mod transformers;
mod vllm;
mod vllm_options;
mod weights;
mod weights_file;

/// A Scenario from its document, which the test knows to be good.
fn scenario_of(text: &str) -> oom_ledger_core::share::Scenario {
    oom_ledger_core::share::Scenario::from_json_str(text).unwrap_or_else(|p| panic!("{p:?} in {text}"))
}
