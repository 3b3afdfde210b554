//! What stays from step to step: parameters, gradients, master weights, optimizer states; tensor by tensor, each
//! rounded as the allocator rounds it.

use super::optimizer::{Transients, fixed, state};
use super::settings::{Precision, TrainSettings};
use crate::memory::training::reduce_buckets_bytes;
use crate::memory::weights;
use crate::memory::{Parallel, WeightsSpec};
use crate::model::{DType, Model, Quantization, TensorClass, TensorGroup};
use crate::units::Problem;

/// Some tensors of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) elements: u64,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) stack: u64,
    pub(super) count: u64,
    /// Bytes per element of the parameter.
    pub(super) e: u64,
    pub(super) trained: bool,
    /// A matrix that Muon takes: inside the layers.
    pub(super) hidden_matrix: bool,
}

/// Bytes that stay, and those of the optimizer's widest moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct States {
    pub(super) weights: u64,
    pub(super) gradients: u64,
    pub(super) master: u64,
    pub(super) optimizer: u64,
    /// Of these, in managed memory that the driver may page out.
    pub(super) paged: u64,
    /// Temporaries of the optimizer's widest moment.
    pub(super) transient: u64,
    pub(super) trained_parameters: u64,
    pub(super) parameters: u64,
    /// Buffers that gradients are reduced in.
    pub(super) buckets: u64,
    /// Data-parallel ranks.
    pub(super) ranks: u64,
}

impl Held {
    /// Elements of one rank's share: the first dimension is split, the last rank's padding counted.
    fn shard(&self, ranks: u64) -> u64 {
        let first = if self.stack > 1 { self.stack } else { self.rows };
        let rest = self.elements.checked_div(first).unwrap_or(0);
        first.div_ceil(ranks).saturating_mul(rest)
    }

    /// The tensor as one rank holds it.
    fn shared(self, ranks: u64) -> Held {
        Held { elements: self.shard(ranks), ..self }
    }
}

/// Every parameter tensor, adapters included.
pub(super) fn held(model: &Model, train: &TrainSettings) -> Vec<Held> {
    let e = train.precision.parameter_bytes();
    let full = train.lora.is_none();
    let mut all: Vec<Held> = model.tensors.iter().map(|t| of_group(t, e, full)).collect();
    if let Some(lora) = &train.lora {
        for t in model.tensors.iter().filter(|t| adapted(t)) {
            if !lora.targets.hold(module(&t.name)) {
                continue;
            }
            let (stack, out, input) = t.matrix();
            for (rows, columns) in [(lora.rank, input), (out, lora.rank)] {
                all.push(Held {
                    elements: rows.saturating_mul(columns).saturating_mul(stack),
                    rows,
                    columns,
                    stack,
                    count: t.count,
                    e: 4,
                    trained: true,
                    hidden_matrix: true,
                });
            }
        }
    }
    all
}

fn of_group(t: &TensorGroup, e: u64, trained: bool) -> Held {
    // Text alone gives a vision tower no gradient, so the optimizer passes it over.
    let trained = trained && t.class != TensorClass::Encoder;
    let (stack, rows, columns) = t.matrix();
    let matrix = t.shape.len() == 2
        && !matches!(t.class, TensorClass::Embedding | TensorClass::LmHead | TensorClass::PositionEmbedding);
    Held {
        elements: t.elements(),
        rows,
        columns,
        stack,
        count: t.count,
        e: t.dtype.map_or(e, DType::bytes),
        trained,
        hidden_matrix: matrix,
    }
}

/// Linear layers of the stack: what `all-linear` means, the head left out.
fn adapted(t: &TensorGroup) -> bool {
    t.name.ends_with(".weight")
        && !t.layers.is_empty()
        && !t.expert
        && t.shape.len() == 2
        && !matches!(t.class, TensorClass::Norm | TensorClass::Router | TensorClass::Other)
}

/// The last part of a module's name.
pub(super) fn module(name: &str) -> &str {
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    stem.rsplit('.').next().unwrap_or(stem)
}

pub(super) fn rounded(elements: u64, e: u64) -> u64 {
    elements.saturating_mul(e).checked_next_multiple_of(super::pool::BLOCK).unwrap_or(u64::MAX)
}

/// The states of a job.
///
/// Errors: a scheme of the base that does not fit the model.
pub(super) fn states(model: &Model, train: &TrainSettings, ranks: u64) -> Result<States, Problem> {
    let quantised = base(model, train)?;
    let ranks = ranks.max(1);
    let mut sum = States { optimizer: fixed(train.optimizer), ranks, ..States::default() };
    let stage = if ranks > 1 { train.stage() } else { 0 };
    let mut grads = 0u64;
    let mut transients = Transients::new(train);
    for h in held(model, train) {
        let count = h.count;
        let times = |bytes: u64| bytes.saturating_mul(count);
        sum.parameters = sum.parameters.saturating_add(times(h.elements));
        if quantised.is_none() || h.trained {
            let own = if stage >= 3 { h.shard(ranks) } else { h.elements };
            sum.weights = sum.weights.saturating_add(times(rounded(own, h.e)));
        }
        if !h.trained {
            continue;
        }
        sum.trained_parameters = sum.trained_parameters.saturating_add(times(h.elements));
        let master = train.precision == Precision::Bf16Master;
        let wide = if master { 4 } else { h.e };
        let own = if stage >= 2 { h.shard(ranks) } else { h.elements };
        sum.gradients = sum.gradients.saturating_add(times(rounded(own, wide)));
        grads = grads.saturating_add(times(rounded(h.elements, wide)));
        let h = if stage >= 1 { h.shared(ranks) } else { h };
        if master {
            sum.master = sum.master.saturating_add(times(rounded(h.elements, 4)));
        }
        let (bytes, paged) = state(train, &h, wide);
        sum.optimizer = sum.optimizer.saturating_add(times(bytes));
        sum.paged = sum.paged.saturating_add(times(paged));
        transients.add(&h, wide);
    }
    sum.transient = transients.widest();
    // DistributedDataParallel keeps a copy of every gradient in its buckets (`gradient_as_bucket_view=False`); ZeRO 1
    // and 2 reduce through two buckets, communication overlapping.
    let e = if train.precision == Precision::Bf16Master { 2 } else { train.precision.parameter_bytes() };
    sum.buckets = match stage {
        _ if ranks == 1 => 0,
        0 => grads,
        1 | 2 => reduce_buckets_bytes(train.reduce_bucket_elements, e, true)?.0,
        _ => 0,
    };
    sum.weights = sum.weights.saturating_add(quantised.unwrap_or(0));
    Ok(sum)
}

/// Bytes of a frozen base in a quantised scheme; none where it is not quantised.
fn base(model: &Model, train: &TrainSettings) -> Result<Option<u64>, Problem> {
    if train.base_quantization.is_none() {
        return Ok(None);
    }
    let spec = WeightsSpec {
        dtype: DType::Bf16,
        quantization: Some(Quantization::BnbNf4),
        ..WeightsSpec::default()
    };
    let layout = weights::Layout::Transformers;
    Ok(Some(weights::weights_figures(model, &spec, Parallel::default(), layout, None)?.bytes))
}
