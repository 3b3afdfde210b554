//! The budget: what vLLM allows itself, what it subtracts, what is left for the pool.

use super::beside::{beside, offload, text_only};
use super::graphs::graphs;
use super::kv_groups::Layout;
use super::profile::{Profile, Span};
use super::settings::Settings;
use crate::engines::{Detail, Inputs};
use crate::memory::Term;
use crate::memory::context::{Observed, communication, context_overhead, non_torch_growth};
use crate::memory::weights::{Layout as TensorLayout, weights, weights_figures};
use crate::units::Problem;

/// Everything that decides the size of the pool.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    pub(super) profile: Profile,
    pub(super) total: u64,
    /// total · u.
    pub(super) requested: u64,
    pub(super) weights: Span,
    /// Adapter slots and draft model.
    pub(super) beside: Vec<Term>,
    /// Weights that stay on the host.
    pub(super) offloaded: Span,
    /// CUDA context: there before the engine looks.
    pub(super) context: Span,
    pub(super) others: u64,
    /// Growth outside the allocator, communication included.
    pub(super) non_torch: Span,
    pub(super) graphs: Span,
    /// The pool as printed, which then needs no modelling.
    pub(super) pool: Option<u64>,
    /// The pool as `--kv-cache-memory-bytes` sets it: no profile decides.
    pub(super) given: Option<u64>,
    /// The number of blocks as `--num-gpu-blocks-override` sets it.
    pub(super) fixed_blocks: Option<u64>,
}

impl Costs {
    /// Costs of a job, and the row of the weights.
    ///
    /// Errors: settings, splits or schemes that cannot be used.
    pub(super) fn new(inputs: &Inputs<'_>, detail: Detail) -> Result<(Costs, Term), Problem> {
        let settings = Settings::new(inputs)?;
        let measured = inputs.measured;
        let arch = inputs.device.gpu.map(|g| g.arch);
        let of_weights = match detail {
            Detail::Whole => weights,
            Detail::Figures => weights_figures,
        };
        let text_only = text_only(inputs, settings.version);
        let term = of_weights(
            text_only.as_ref().unwrap_or(inputs.model),
            inputs.weights,
            inputs.parallel,
            TensorLayout::serving(arch),
            measured.weights_bytes,
        )?;
        let (term, offloaded) = offload(inputs, registered(term, measured.weights_bytes.is_some()));
        let layout = Layout::new(inputs, &settings)?;
        let total = inputs.device.total_bytes;
        // These versions take everything outside the allocator for their own: a printed figure holds the context
        // and the neighbours already.
        let holds_all = measured.non_torch_bytes.is_some() && settings.version.context_in_budget();
        let costs = Costs {
            profile: Profile::new(inputs, &settings),
            total,
            requested: (total as f64 * settings.utilization) as u64,
            weights: Span { point: term.bytes, low: term.low, high: term.high },
            beside: beside(inputs, settings.version, TensorLayout::serving(arch))?,
            offloaded,
            context: if holds_all { Span::exactly(0) } else { context_overhead(arch).into() },
            others: if holds_all { 0 } else { inputs.device.other_processes_bytes },
            non_torch: match measured.non_torch_bytes {
                Some(bytes) => Span::exactly(bytes),
                None => non_torch_growth(arch, world(inputs)).into(),
            },
            graphs: graphs(inputs, &settings),
            pool: measured.kv_available_bytes,
            given: inputs.serve.kv_cache_memory_bytes,
            fixed_blocks: inputs.serve.num_gpu_blocks_override,
            layout,
            settings,
        };
        Ok((costs, term))
    }

    /// Bytes left for the pool when started for requests of `len` tokens; negative where the budget is spent.
    pub(super) fn available(&self, len: u64) -> i128 {
        self.left(len, |s| s.point)
    }

    /// The same with every cost at the high end of its range.
    pub(super) fn available_at_worst(&self, len: u64) -> i128 {
        self.left(len, |s| s.high)
    }

    /// The same with every cost at the low end.
    pub(super) fn available_at_best(&self, len: u64) -> i128 {
        self.left(len, |s| s.low)
    }

    /// What start-up compares with the longest request: V0 the blocks that there will be, V1 the memory found,
    /// whatever number of blocks was then set in its place.
    pub(super) fn checked(&self, len: u64, end: impl Fn(Span) -> u64) -> i128 {
        if self.settings.version.v1 { self.found(len, end) } else { self.left(len, end) }
    }

    /// Whether an option decides the pool: then it does not shrink when something else grows.
    pub(super) fn is_set(&self) -> bool {
        self.given.is_some() || self.fixed_blocks.is_some()
    }

    fn left(&self, len: u64, end: impl Fn(Span) -> u64) -> i128 {
        if let Some(blocks) = self.fixed_blocks {
            return i128::from(blocks.saturating_mul(self.layout.block_bytes));
        }
        self.found(len, end)
    }

    fn found(&self, len: u64, end: impl Fn(Span) -> u64) -> i128 {
        if let Some(pool) = self.pool.or(self.given) {
            return i128::from(pool);
        }
        let version = self.settings.version;
        let peak = end(self.profile.peak(self.settings.batched(len)));
        let mut left = i128::from(self.requested);
        for cost in [end(self.weights), peak, end(self.non_torch), end(self.beside())] {
            left -= i128::from(cost);
        }
        if version.graphs_in_budget() {
            left -= i128::from(end(self.graphs));
        }
        if version.context_in_budget() {
            left -= i128::from(end(self.context)) + i128::from(self.others);
        }
        left
    }

    /// Whether the device cannot hold a peak of so many bytes, `low` at least. A printed pool proves that the engine
    /// did start: then rules of thumb alone refuse nothing, and only a low end above the total does.
    pub(super) fn impossible(&self, peak: u64, low: u64) -> bool {
        let least = if self.pool.is_some() { low } else { peak };
        least > self.total
    }

    /// Adapter slots and draft model together.
    pub(super) fn beside(&self) -> Span {
        let sum = |end: fn(&Term) -> u64| self.beside.iter().map(end).fold(0, u64::saturating_add);
        Span { point: sum(|t| t.bytes), low: sum(|t| t.low), high: sum(|t| t.high) }
    }

    /// Blocks in a pool of so many bytes.
    pub(super) fn blocks(&self, available: i128) -> u64 {
        u64::try_from(available / i128::from(self.layout.block_bytes)).unwrap_or(0)
    }

    /// Tokens that may be in flight at once when started for `len`.
    pub(super) fn in_flight(&self, len: u64) -> u64 {
        self.settings.batched(len).saturating_mul(self.settings.version.batches_in_flight())
    }

    /// Blocks that `sequences` requests of `tokens` each occupy in an engine started for `len`.
    pub(super) fn load_blocks(&self, sequences: u64, tokens: u64, len: u64) -> u64 {
        self.layout.blocks(tokens, self.in_flight(len)).saturating_mul(sequences)
    }
}

/// The weights with what a model registers beside its parameters and this tool does not list: index tables, masks,
/// scales. Printed figures lie up to 0.14 % above the tensors and up to 0.03 % below (n = 20, 0.6 to 0.26).
fn registered(term: Term, printed: bool) -> Term {
    if printed {
        return term;
    }
    let (above, below) = (term.bytes / 500, term.bytes / 2000);
    Term {
        low: term.low.min(term.bytes - below),
        high: term.high.max(term.bytes.saturating_add(above)),
        ..term
    }
}

/// Ranks that exchange data: the tensor-parallel group and the pipeline.
pub(super) fn world(inputs: &Inputs<'_>) -> u64 {
    inputs.parallel.tensor.saturating_mul(inputs.parallel.pipeline)
}

/// Communication's share of the growth, where it is modelled.
pub(super) fn communication_of(inputs: &Inputs<'_>) -> Option<Observed> {
    let observed = communication(world(inputs));
    (inputs.measured.non_torch_bytes.is_none() && observed.point > 0).then_some(observed)
}
