//! The ledger: terms with range, origin and working, and the phases they are alive in.

use crate::units::{Bytes, Message, Value};
use serde::Serialize;

macro_rules! ids {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident => $id:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }
        impl $name {
            /// Every id, in the order shown.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// The id used in documents and as a text key.
            pub const fn id(self) -> &'static str { match self { $($name::$variant => $id,)* } }
        }
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.id())
            }
        }
    };
}

ids! {
    /// What the bytes are for.
    TermId {
        /// Parameters.
        Weights => "weights",
        /// Keys and values (or latents) of past tokens.
        KvCache => "kv_cache",
        /// Constant per-sequence state of recurrent layers.
        RecurrentState => "recurrent_state",
        /// Intermediates of the forward pass.
        Activations => "activations",
        /// Materialised attention scores (eager).
        AttentionScores => "attention_scores",
        /// Output of the vocabulary projection.
        Logits => "logits",
        /// Copies made while choosing tokens.
        Sampling => "sampling",
        /// Library workspaces (cuBLAS, attention kernels).
        Workspace => "workspace",
        /// Captured CUDA graphs and their private pool.
        CudaGraphs => "cuda_graphs",
        /// CUDA context, loaded kernels, driver structures of this process.
        ContextOverhead => "context_overhead",
        /// Collectives' buffers (NCCL, custom all-reduce).
        Communication => "communication",
        /// Weights and state of a draft model.
        DraftModel => "draft_model",
        /// Vision or audio encoder peak.
        Encoder => "encoder",
        /// Second copies and conversions while loading.
        LoadTransient => "load_transient",
        /// Gradients.
        Gradients => "gradients",
        /// fp32 copies of parameters.
        MasterWeights => "master_weights",
        /// Moments and other optimizer state.
        OptimizerStates => "optimizer_states",
        /// Temporaries of the optimizer step.
        OptimizerTransient => "optimizer_transient",
        /// Tensors kept for backward.
        SavedActivations => "saved_activations",
        /// What recomputation holds at once.
        RecomputeTransient => "recompute_transient",
        /// Loss head: logits copies and their gradients.
        Loss => "loss",
        /// Gather and reduce buckets of sharded training.
        ZeroBuffers => "zero_buffers",
        /// LoRA and similar adapters.
        Adapter => "adapter",
        /// Reserved by the allocator, not usable for the request.
        Fragmentation => "fragmentation",
        /// Bytes of other processes on the device.
        OtherProcesses => "other_processes",
        /// Kept back by driver and firmware, seen in no process.
        DriverReserved => "driver_reserved",
        /// What a measured total leaves unexplained.
        Unexplained => "unexplained",
    }
}

ids! {
    /// A stage of a job; the peak of a phase is everything alive in it.
    PhaseId {
        /// Weights come in.
        Load => "load",
        /// Profile run, compilation, graph capture.
        Warmup => "warmup",
        /// The prompt is read.
        Prefill => "prefill",
        /// One token per sequence and step.
        Decode => "decode",
        /// Tokens are chosen.
        Sampling => "sampling",
        /// Forward pass of training.
        Forward => "forward",
        /// Backward pass.
        Backward => "backward",
        /// Optimizer step.
        OptimizerStep => "optimizer_step",
        /// Evaluation between steps.
        Evaluation => "evaluation",
        /// Checkpoint save.
        Checkpoint => "checkpoint",
    }
}

ids! {
    /// How long the bytes stay.
    Residency {
        /// For the life of the process.
        Resident => "resident",
        /// Only while an operation runs.
        Transient => "transient",
        /// Taken at start as a pool, used piecemeal.
        ReservedPool => "reserved_pool",
    }
}

ids! {
    /// The answer.
    Verdict {
        /// Even the high end of the range fits.
        Fits => "fits",
        /// The point estimate fits, the high end does not.
        Tight => "tight",
        /// The point estimate does not fit.
        DoesNotFit => "does_not_fit",
    }
}

ids! {
    /// Where a figure comes from.
    Provenance {
        /// Follows from shapes.
        Exact => "exact",
        /// Between bounds that follow from shapes and documented rules.
        Bounded => "bounded",
        /// Read from a log, or measured by `calib`.
        Measured => "measured",
        /// A rule with an observed band.
        RuleOfThumb => "rule_of_thumb",
    }
}

/// Low and high ends of a figure, in bytes; the point estimate lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Low end.
    pub low: u64,
    /// High end.
    pub high: u64,
}

/// One symbol of a working with its value and unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Symbol {
    /// The letter or HF field, as it stands in the formula.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// Unit: `B`, `tokens`, `layers`, `B/element`, … or empty for a ratio.
    pub unit: &'static str,
}

/// One line of a sum: what, and its bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// A tensor name pattern, a text key (`part.…`) or an engine's own name.
    pub label: std::borrow::Cow<'static, str>,
    /// Shape or factors, for people: `32 × [4096, 4096] bf16`.
    pub detail: String,
    /// Bytes.
    pub bytes: u64,
}

/// Formula, symbols and result of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Working {
    /// The formula in the letters of `design.md` 7, e.g. `2 · L · H_kv · D · T · B · e`.
    pub formula: &'static str,
    /// Every symbol of the formula.
    pub symbols: Vec<Symbol>,
    /// The sum's lines, where the figure is a sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The result in bytes.
    pub result: u64,
}

impl Working {
    /// A working of `formula` that comes to `result` bytes.
    pub fn new(formula: &'static str, result: u64) -> Working {
        Working { formula, symbols: Vec::new(), parts: Vec::new(), result }
    }

    /// Adds a symbol.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>, unit: &'static str) -> Working {
        self.symbols.push(Symbol { name, value: value.into(), unit });
        self
    }
}

/// One row of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Term {
    /// What for.
    pub id: TermId,
    /// Point estimate.
    pub bytes: u64,
    /// Low end of the range.
    pub low: u64,
    /// High end of the range.
    pub high: u64,
    /// How long.
    pub residency: Residency,
    /// Phases it is alive in (its largest extent).
    pub phases: Vec<PhaseId>,
    /// Where from.
    pub provenance: Provenance,
    /// The source: an address, a log line, a probe; empty where the figure follows from shapes.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub source: &'static str,
    /// How it was computed.
    pub working: Working,
}

/// Peak of one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Which.
    pub id: PhaseId,
    /// Everything on the device: what nvidia-smi would show.
    pub peak_bytes: u64,
    /// What the framework's allocator hands out: what `torch.cuda.max_memory_allocated` would show.
    pub allocated_bytes: u64,
}

/// Device total and the engine's budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeviceBudget {
    /// Device total.
    pub total_bytes: u64,
    /// What the engine allows itself.
    pub budget_bytes: u64,
}

/// The KV pool or cache in the engine's own terms. Zero where a figure does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KvSummary {
    /// Bytes one more token of one sequence costs a device, averaged over a block.
    pub bytes_per_token: f64,
    /// Tokens of a block.
    pub block_tokens: u64,
    /// Bytes of a block over all layers of the device.
    pub block_bytes: u64,
    /// Blocks in the pool.
    pub blocks: u64,
    /// Tokens the pool can hold.
    pub tokens: u64,
    /// The number that the engine's log of that version prints.
    pub token_line: u64,
    /// Requests of `max_model_len` that fit at once.
    pub max_concurrency: f64,
}

/// What an engine answers for one job: the ledger before limits are solved.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// Rows, largest meaning first; sum of the rows alive in a phase is its peak.
    pub terms: Vec<Term>,
    /// Phases in time order.
    pub phases: Vec<Phase>,
    /// Budget.
    pub device: DeviceBudget,
    /// KV figures.
    pub kv: Option<KvSummary>,
    /// Highest phase peak, with its range.
    pub peak: Range,
    /// Point estimate of the highest phase peak.
    pub peak_bytes: u64,
    /// Answer.
    pub verdict: Verdict,
    /// The engine's own refusal, in its words with its figures, where it would refuse to start.
    pub refusal: Option<Message>,
    /// What the person should know: assumptions, replaced terms, waste.
    pub warnings: Vec<Message>,
    /// Every rank, where there is more than one; the terms are those of the fullest.
    pub ranks: Vec<RankShare>,
    /// What the process keeps in host memory, where that is part of the accounting; in no phase's peak.
    pub host: Vec<Term>,
}

/// What one rank holds, or several that hold the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankShare {
    /// Number of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Pipeline stage, or the device where layers are spread without a pipeline.
    pub stage: u64,
    /// Weights on each.
    pub weights_bytes: u64,
    /// KV pool or cache (and recurrent state) on each.
    pub kv_bytes: u64,
    /// Peak on each.
    pub peak_bytes: u64,
    /// The terms shown are its own.
    pub fullest: bool,
}

impl Ledger {
    /// The term of that id.
    pub fn term(&self, id: TermId) -> Option<&Term> {
        self.terms.iter().find(|t| t.id == id)
    }

    /// The phase of that id.
    pub fn phase(&self, id: PhaseId) -> Option<&Phase> {
        self.phases.iter().find(|p| p.id == id)
    }

    /// Bytes left under the device total at the highest peak; negative where it does not fit.
    pub fn headroom(&self) -> i128 {
        i128::from(self.device.total_bytes) - i128::from(self.peak_bytes)
    }
}

/// The phase with the highest peak; the last of equals.
pub fn highest(phases: &[Phase]) -> Option<PhaseId> {
    phases.iter().max_by_key(|p| p.peak_bytes).map(|p| p.id)
}

/// The terms alive in the phase with the highest peak, in their own order; all where there is no phase.
pub fn at_peak<'a>(terms: &'a [Term], phases: &[Phase]) -> impl Iterator<Item = &'a Term> {
    let top = highest(phases);
    terms.iter().filter(move |t| top.is_none_or(|phase| t.phases.contains(&phase)))
}

/// Sums bytes over terms, or an overflow error.
pub fn sum(terms: &[Term]) -> Result<Bytes, crate::units::Overflow> {
    Bytes::sum(terms.iter().map(|t| Bytes(t.bytes)))
}
