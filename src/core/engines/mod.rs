//! Layer 3: engines. One file each: what it allocates beforehand, rounds and reserves, by version.

mod llama_cpp;
mod lmdeploy;
mod ollama;
mod pooled;
mod settings;
mod sglang;
mod tensorrt_llm;
mod tgi;
pub mod training;
pub mod transformers;
mod vllm;

pub use settings::{AttentionImpl, CacheImpl, LogitsKept, ServeSettings};

use crate::hardware::Device;
use crate::memory::{Ledger, Measured, Parallel, Residency, WeightsSpec};
use crate::model::Model;
use crate::units::Problem;

/// Everything an engine needs to answer; borrowed, resolved and validated by `share`.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The model.
    pub model: &'a Model,
    /// The device.
    pub device: &'a Device,
    /// Parallelism.
    pub parallel: Parallel,
    /// Storage of weights.
    pub weights: &'a WeightsSpec,
    /// Engine options.
    pub serve: &'a ServeSettings,
    /// Figures that replace modelled terms.
    pub measured: Measured,
    /// The draft or assistant model, where one is given.
    pub draft: Option<&'a Model>,
}

/// The peak at one point of a plot or of a search: numbers only, no allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Bytes on the device at the highest phase.
    pub peak_bytes: u64,
    /// High end of its range.
    pub high_bytes: u64,
    /// KV cache (and recurrent state) that `sequences` of `tokens` each really occupy.
    pub kv_bytes: u64,
    /// Whether the engine starts and serves that load without exceeding budget or pool.
    pub fits: bool,
    /// What stands in the way where it does not.
    pub stop: Option<Stop>,
}

/// Why a load is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The peak exceeds the device total.
    Device,
    /// The KV pool is too small for it, or for one longest request.
    Pool,
    /// An option forbids it, however much memory there were.
    Option,
}

/// A job with everything but load fixed, ready to be asked many points. Must agree with the ledger: tested.
pub trait Surface {
    /// The point of `sequences` sequences, each with `prompt` tokens read and `new` tokens written.
    ///
    /// Where the engine is started for a longest request and the settings leave it open, a point stands for an
    /// engine started for exactly its tokens.
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point;

    /// The point of `sequences` sequences of `tokens` tokens each, of which `answer` are new where there are
    /// that many and one is left to read.
    fn at_tokens(&self, sequences: u64, tokens: u64, answer: u64) -> Point {
        let new = answer.min(tokens.saturating_sub(1));
        self.at(sequences, (tokens - new).max(1), new)
    }
}

/// One engine.
pub trait Engine: Sync {
    /// Id in the Scenario document.
    fn id(&self) -> &'static str;
    /// Name as its makers write it.
    fn name(&self) -> &'static str;
    /// Options of this engine that matter, as field names of [`ServeSettings`], in the order shown.
    fn options(&self) -> &'static [EngineOption];
    /// The ledger of the fullest rank.
    ///
    /// Errors: a setting that the engine does not accept, or a model kind not modelled for it.
    fn ledger(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem>;
    /// The ledger for comparing, not for showing: equal to [`Engine::ledger`] in every figure, but workings and
    /// warnings may be left out.
    ///
    /// Errors: as the ledger.
    fn figures(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        self.ledger(inputs)
    }
    /// Bytes to spare at the tightest place, for the engine to start and to hold the asked load; negative where
    /// they are missing. The places: device total, and the KV pool where there is one.
    ///
    /// Errors: as the ledger.
    fn margin(&self, inputs: &Inputs<'_>) -> Result<i128, Problem> {
        let ledger = self.figures(inputs)?;
        let device = ledger.headroom();
        let mut pool = ledger.terms.iter().filter(|t| t.residency == Residency::ReservedPool).peekable();
        if pool.peek().is_none() {
            return Ok(device);
        }
        let pool: i128 = pool.map(|t| i128::from(t.bytes)).sum();
        let serve = inputs.serve;
        let load = self.surface(inputs)?.at(serve.sequences, serve.prompt_tokens, serve.new_tokens);
        Ok(device.min(pool - i128::from(load.kv_bytes)))
    }
    /// The surface for plots and searches.
    fn surface(&self, inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem>;
}

/// How much of a ledger is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Everything.
    Whole,
    /// What can be compared: texts that nobody will see are not made.
    Figures,
}

/// One option of an engine, as a person sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOption {
    /// Field of [`ServeSettings`].
    pub field: &'static str,
    /// The engine's own name for it, e.g. `--gpu-memory-utilization`.
    pub flag: &'static str,
    /// The engine's default, as text.
    pub default: &'static str,
}

/// An option, by its field, the engine's own name and its default.
const fn option(field: &'static str, flag: &'static str, default: &'static str) -> EngineOption {
    EngineOption { field, flag, default }
}

/// Every engine, in the order shown.
pub const ENGINES: &[&dyn Engine] = &[
    &vllm::Vllm,
    &transformers::Transformers,
    &sglang::ENGINE,
    &llama_cpp::LlamaCpp,
    &ollama::Ollama,
    &tensorrt_llm::ENGINE,
    &tgi::ENGINE,
    &lmdeploy::ENGINE,
];

/// KV formats that an engine takes, by its id: what a page offers. `auto` is always among them, and stands first.
pub const KV_CHOICES: &[(&str, &[&str])] = &[
    ("vllm", &["auto", "bf16", "fp16", "fp8", "fp8_e4m3", "fp8_e5m2", "int8", "nvfp4", "fp8_ds_mla"]),
    ("sglang", &["auto", "bf16", "fp8_e4m3", "fp8_e5m2", "nvfp4"]),
    ("transformers", &["auto", "int4", "int2"]),
    ("llama_cpp", &["auto", "f16", "bf16", "f32", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]),
    ("ollama", &["auto", "f16", "q8_0", "q4_0"]),
    ("tensorrt_llm", &["auto", "fp8", "nvfp4"]),
    ("tgi", &["auto", "fp8_e4m3", "fp8_e5m2"]),
    ("lmdeploy", &["auto", "int8", "int4"]),
];

/// The KV formats of the engine of that id; `auto` alone where it is not known.
pub fn kv_choices(id: &str) -> &'static [&'static str] {
    KV_CHOICES.iter().find(|(engine, _)| *engine == id).map_or(&["auto"], |(_, all)| all)
}

/// The engine of that id.
///
/// Errors: names the ids that are accepted.
pub fn engine(id: &str) -> Result<&'static dyn Engine, Problem> {
    ENGINES.iter().copied().find(|e| e.id() == id).ok_or_else(|| {
        let ids: Vec<_> = ENGINES.iter().map(|e| e.id()).collect();
        Problem::not_accepted("job.serve.engine", id, ids.join(", "))
    })
}
