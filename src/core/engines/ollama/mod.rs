//! Ollama: it runs llama.cpp's kernels with options of its own, and decided by an estimate of its own how many layers
//! go to the devices.
//!
//! Files: `versions` (defaults by release), `estimate` (its own rule), here the answer.

mod estimate;
mod versions;

use super::llama_cpp;
use super::{Detail, Engine, EngineOption, Inputs, ServeSettings, Surface, option};
use crate::memory::Ledger;
use crate::units::{Bytes, Message, Problem};
use estimate::{Estimate, estimate};
use versions::Release;

/// Ollama.
pub(super) struct Ollama;

/// Options that matter, with their defaults in the newest release.
const OPTIONS: &[EngineOption] = &[
    option("max_model_len", "num_ctx", "by device (4096 from 0.7, 2048 before)"),
    option("max_num_seqs", "OLLAMA_NUM_PARALLEL", "1 (4 where that fits before 0.7)"),
    option("gpu_layers", "num_gpu", "what fits"),
    option("max_num_batched_tokens", "num_batch", "512"),
    option("attention", "OLLAMA_FLASH_ATTENTION", "by model and release"),
    option("kv_cache_dtype", "OLLAMA_KV_CACHE_TYPE", "f16"),
    option("no_mmap", "use_mmap false", "off"),
    option("engine_version", "ollama --version", "0.30"),
];

/// What llama.cpp is started with, and what Ollama thinks of it.
struct Translated {
    serve: ServeSettings,
    num_ctx: u64,
    parallel: u64,
    estimate: Option<Estimate>,
    release: Release,
}

/// The options of llama.cpp that these settings come to.
///
/// Errors: a number of slots of 0.
fn translate(inputs: &Inputs<'_>) -> Result<Translated, Problem> {
    let asked = inputs.serve;
    let release = Release::read(asked.engine_version.as_deref());
    let num_ctx = asked.max_model_len.unwrap_or_else(|| release.default_context(inputs));
    let of = |parallel: u64| -> Translated {
        let mut serve = ServeSettings {
            engine_version: Some(release.build().to_owned()),
            max_model_len: Some(num_ctx.saturating_mul(parallel)),
            max_num_seqs: Some(parallel),
            max_num_batched_tokens: Some(asked.max_num_batched_tokens.unwrap_or(512)),
            ubatch: Some(asked.max_num_batched_tokens.unwrap_or(512)),
            attention: asked.attention.or_else(|| release.attention(inputs.model)),
            kv_unified: Some(true),
            ..asked.clone()
        };
        let own = release.estimates().then(|| estimate(&Inputs { serve: &serve, ..*inputs })).flatten();
        if let (None, Some(own)) = (asked.gpu_layers, own) {
            serve.gpu_layers = Some(own.layers);
        }
        Translated { serve, num_ctx, parallel, estimate: own, release }
    };
    match asked.max_num_seqs {
        Some(0) => Err(Problem::not_accepted("job.serve.max_num_seqs", 0_u64, "1 …")),
        Some(n) => Ok(of(n)),
        None if release.four_slots() => {
            // Four slots where all layers fit with them, else one.
            let four = of(4);
            let all = inputs.model.layers.len() as u64 + 1;
            Ok(if four.estimate.is_some_and(|e| e.layers >= all) { four } else { of(1) })
        }
        None => Ok(of(1)),
    }
}

fn answer(inputs: &Inputs<'_>, detail: Detail) -> Result<Ledger, Problem> {
    let t = translate(inputs)?;
    let mut ledger = llama_cpp::ledger_of(&Inputs { serve: &t.serve, ..*inputs }, detail)?;
    if detail == Detail::Whole {
        let runs = Message::new("ollama.runs_llama_cpp").with("build", t.release.build());
        let runs = runs.with("num_ctx", t.num_ctx).with("parallel", t.parallel);
        ledger.warnings.insert(0, runs.with("n_ctx", t.num_ctx.saturating_mul(t.parallel)));
        if let Some(own) = t.estimate {
            let message = Message::new("ollama.estimate")
                .with("layers", own.layers)
                .with("of", inputs.model.layers.len() as u64 + 1)
                .with("full", Bytes(own.full))
                .with("partial", Bytes(own.partial))
                .with("kv", Bytes(own.kv))
                .with("graph_full", Bytes(own.graph_full))
                .with("graph_partial", Bytes(own.graph_partial));
            ledger.warnings.insert(1, message);
        }
        if inputs.serve.engine_version.is_none() {
            ledger.warnings.push(Message::new("ollama.version_not_given"));
        }
    }
    Ok(ledger)
}

impl Engine for Ollama {
    fn id(&self) -> &'static str {
        "ollama"
    }
    fn name(&self) -> &'static str {
        "Ollama"
    }
    fn options(&self) -> &'static [EngineOption] {
        OPTIONS
    }
    fn ledger(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        answer(inputs, Detail::Whole)
    }
    fn figures(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        answer(inputs, Detail::Figures)
    }
    fn surface(&self, inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
        let t = translate(inputs)?;
        llama_cpp::surface_of(&Inputs { serve: &t.serve, ..*inputs })
    }
}
