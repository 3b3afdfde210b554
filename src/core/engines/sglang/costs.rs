//! The static share: what is free before loading, what loading takes of it, what is left for the pools.

use super::cells::{Cells, cells};
use super::pools::Pools;
use super::settings::Settings;
use crate::engines::pooled::{End, Span};
use crate::engines::{Detail, Inputs};
use crate::memory::context::{Observed, communication, context_overhead, non_torch_growth};
use crate::memory::weights::{Layout, weights, weights_bytes, weights_figures};
use crate::memory::{Parallel, Part, Term, WeightsSpec};
use crate::model::{Model, TensorClass};
use crate::units::{Bytes, Problem};

/// Everything that decides the size of the pools.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) settings: Settings,
    pub(super) cells: Cells,
    pub(super) total: u64,
    pub(super) context: Span,
    pub(super) communication: Span,
    pub(super) others: u64,
    /// Before loading everything outside of the framework was read from a log.
    pub(super) before_measured: bool,
    pub(super) weights: Span,
    /// What loading takes beside the weights: kernels, library handles.
    pub(super) growth: Span,
    /// Weights of a draft model, and whether they are loaded before the pools are sized.
    pub(super) draft: u64,
    /// Layers of the draft.
    pub(super) draft_layers: u64,
    /// Kept back for image embeddings.
    pub(super) images: u64,
    /// KV pool as printed.
    pub(super) printed: Option<u64>,
    pub(super) max_total_tokens: Option<u64>,
}

impl Costs {
    /// Costs of a job, and the row of the weights.
    ///
    /// Errors: settings, splits or schemes that cannot be used.
    pub(super) fn new(inputs: &Inputs<'_>, detail: Detail) -> Result<(Costs, Term), Problem> {
        let settings = Settings::new(inputs)?;
        let measured = inputs.measured;
        let arch = inputs.device.gpu.map(|g| g.arch);
        let layout = Layout::serving(arch);
        let of_weights = match detail {
            Detail::Whole => weights,
            Detail::Figures => weights_figures,
        };
        let parallel = Parallel { data: 1, ..inputs.parallel };
        let mut term = of_weights(inputs.model, inputs.weights, parallel, layout, measured.weights_bytes)?;
        if settings.groups > 1 && measured.weights_bytes.is_none() {
            replicate(inputs, &settings, layout, detail, &mut term)?;
        }
        let world = inputs.parallel.tensor.saturating_mul(inputs.parallel.pipeline);
        let before = measured.non_torch_bytes;
        let none = Span::exactly(0);
        let draft = match inputs.draft {
            // A draft stays in its own dtype and is split as the model is.
            Some(draft) => weights_bytes(draft, &WeightsSpec::default(), parallel, layout)?,
            None => 0,
        };
        let draft_layers = match inputs.draft {
            Some(draft) => draft.layers.len() as u64,
            None if settings.speculative > 0 => inputs.model.mtp_layers.min(64),
            None => 0,
        };
        let costs = Costs {
            cells: cells(inputs, &settings)?,
            total: inputs.device.total_bytes,
            context: before.map_or_else(|| context_overhead(arch).into(), Span::exactly),
            communication: if before.is_some() { none } else { communication(world).into() },
            others: if before.is_some() { 0 } else { inputs.device.other_processes_bytes },
            before_measured: before.is_some(),
            weights: Span { point: term.bytes, low: term.low, high: term.high },
            // The log prints what loading took in all, as a difference of free memory.
            growth: if measured.weights_bytes.is_some() { none } else { growth(arch).into() },
            draft,
            draft_layers,
            images: inputs.model.vision.map_or(0, |_| settings.version.image_cache() * Bytes::MIB),
            printed: measured.kv_available_bytes,
            max_total_tokens: inputs.serve.max_total_tokens,
            settings,
        };
        Ok((costs, term))
    }

    /// Free before weights are loaded, with what lies outside at that end of its range.
    pub(super) fn free(&self, end: End) -> u64 {
        let taken = end.of(self.context).saturating_add(end.of(self.communication));
        self.total.saturating_sub(taken.saturating_add(self.others))
    }

    /// f · free: weights and pools together.
    pub(super) fn budget(&self, end: End) -> u64 {
        (self.free(end) as f64 * self.settings.fraction) as u64
    }

    /// What loading takes of it.
    pub(super) fn loaded(&self, end: End) -> u64 {
        let draft = if self.settings.version.counts_draft() { self.draft } else { 0 };
        end.of(self.weights).saturating_add(end.of(self.growth)).saturating_add(draft)
    }

    /// Left for the pools; negative where loading takes more than the share.
    pub(super) fn rest(&self, end: End) -> i128 {
        i128::from(self.budget(end)) - i128::from(self.loaded(end)) - i128::from(self.images)
    }

    /// The pools at that end.
    pub(super) fn pools(&self, end: End) -> Pools {
        Pools::new(self, self.rest(end))
    }

    /// The smallest share, in thousandths, under which anything is left.
    pub(super) fn least_share(&self) -> f64 {
        let needed = self.loaded(End::Point).saturating_add(self.images) as f64;
        let free = (self.free(End::Point) as f64).max(1.0);
        (needed / free * 1000.0).ceil() / 1000.0
    }
}

/// Growth while weights are loaded; collectives are there before.
pub(super) fn growth(arch: Option<u32>) -> Observed {
    non_torch_growth(arch, 1)
}

/// Under data-parallel attention every group holds attention whole, and every rank the embedding.
fn replicate(
    inputs: &Inputs<'_>,
    s: &Settings,
    layout: Layout,
    detail: Detail,
    term: &mut Term,
) -> Result<(), Problem> {
    let of = |class: &dyn Fn(TensorClass) -> bool, tensor: u64| -> Result<u64, Problem> {
        let tensors = inputs.model.tensors.iter().filter(|g| class(g.class)).cloned().collect();
        let part = Model { tensors, ..inputs.model.clone() };
        let parallel = Parallel { tensor, data: 1, ..inputs.parallel };
        weights_bytes(&part, inputs.weights, parallel, layout)
    };
    let attention = |class| {
        use TensorClass::{AttentionK, AttentionLatent, AttentionOut, AttentionQ, AttentionQkv, AttentionV};
        matches!(class, AttentionQ | AttentionK | AttentionV | AttentionQkv | AttentionOut | AttentionLatent)
    };
    let embedding = |class| class == TensorClass::Embedding;
    let tensor = inputs.parallel.tensor;
    let more = of(&attention, s.attention_ranks)?
        .saturating_sub(of(&attention, tensor)?)
        .saturating_add(of(&embedding, 1)?.saturating_sub(of(&embedding, tensor)?));
    for bytes in [&mut term.bytes, &mut term.low, &mut term.high, &mut term.working.result] {
        *bytes = Bytes(*bytes).add(Bytes(more))?.0;
    }
    if detail == Detail::Whole {
        let label = "part.attention_replicated".into();
        let detail = format!("{} × {}", s.groups, s.attention_ranks);
        term.working.parts.push(Part { label, detail, bytes: more });
    }
    Ok(())
}
