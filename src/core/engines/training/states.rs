//! What stays from step to step: parameters, gradients, master weights, optimizer states; tensor by tensor, each
//! rounded as the allocator rounds it.

use super::settings::{Optimizer, OptimizerImpl, Precision, TrainSettings};
use crate::memory::training::{EIGHT_BIT_BLOCK, EIGHT_BIT_MINIMUM, PAGED_MINIMUM};
use crate::model::{DType, Model, TensorClass, TensorGroup};

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

fn rounded(elements: u64, e: u64) -> u64 {
    elements.saturating_mul(e).checked_next_multiple_of(super::pool::BLOCK).unwrap_or(u64::MAX)
}

/// The states of a job.
pub(super) fn states(model: &Model, train: &TrainSettings) -> States {
    let mut sum = States::default();
    let mut widest = 0;
    let mut together = 0u64;
    for h in held(model, train) {
        let times = |bytes: u64| bytes.saturating_mul(h.count);
        sum.parameters = sum.parameters.saturating_add(times(h.elements));
        sum.weights = sum.weights.saturating_add(times(rounded(h.elements, h.e)));
        if !h.trained {
            continue;
        }
        sum.trained_parameters = sum.trained_parameters.saturating_add(times(h.elements));
        let master = train.precision == Precision::Bf16Master;
        let gradient = if master { 4 } else { h.e };
        sum.gradients = sum.gradients.saturating_add(times(rounded(h.elements, gradient)));
        if master {
            sum.master = sum.master.saturating_add(times(rounded(h.elements, 4)));
        }
        let state_e = if master { 4 } else { h.e };
        let (bytes, paged) = state(train.optimizer, &h, state_e);
        // A fused optimizer keeps its step counters on the device.
        let fused = train.optimizer == Optimizer::Adamw && train.optimizer_impl == OptimizerImpl::Fused;
        let counter = if fused { super::pool::BLOCK } else { 0 };
        sum.optimizer = sum.optimizer.saturating_add(times(bytes.saturating_add(counter)));
        sum.paged = sum.paged.saturating_add(times(paged));
        let own = transient(train.optimizer, &h, state_e);
        widest = widest.max(own);
        if own > 0 {
            together = together.saturating_add(times(rounded(h.elements, state_e)));
        }
    }
    sum.transient = match (train.optimizer, train.optimizer_impl) {
        (Optimizer::Adamw, OptimizerImpl::Foreach) => together,
        (_, OptimizerImpl::Fused) => 0,
        _ => widest,
    };
    sum
}

/// Bytes of an optimizer's state for one tensor, and how many of them are paged.
fn state(optimizer: Optimizer, h: &Held, e: u64) -> (u64, u64) {
    let whole = rounded(h.elements, e);
    match optimizer {
        Optimizer::Adamw => (whole.saturating_mul(2), 0),
        Optimizer::SgdMomentum | Optimizer::Lion => (whole, 0),
        Optimizer::Sgd => (0, 0),
        Optimizer::Muon => (if h.hidden_matrix { whole } else { whole.saturating_mul(2) }, 0),
        Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit => {
            if h.elements < EIGHT_BIT_MINIMUM {
                return (rounded(h.elements, 4).saturating_mul(2), 0);
            }
            let quantised = rounded(h.elements, 1).saturating_mul(2);
            let scales = rounded(h.elements.div_ceil(EIGHT_BIT_BLOCK), 4).saturating_mul(2);
            let paged = optimizer == Optimizer::PagedAdamw8bit && h.elements >= PAGED_MINIMUM;
            (quantised.saturating_add(scales), if paged { quantised } else { 0 })
        }
        Optimizer::Adafactor => {
            if h.rows > 1 && h.columns > 1 {
                let rows = rounded(h.rows.saturating_mul(h.stack), 4);
                (rows.saturating_add(rounded(h.columns.saturating_mul(h.stack), 4)), 0)
            } else {
                (rounded(h.elements, 4), 0)
            }
        }
    }
}

/// Bytes of temporaries while one tensor is updated.
fn transient(optimizer: Optimizer, h: &Held, e: u64) -> u64 {
    let whole = rounded(h.elements, e);
    match optimizer {
        // The square root and its quotient; the interpolated momentum and its sum with the gradient.
        Optimizer::Adamw | Optimizer::Lion => whole.saturating_mul(2),
        // The fp32 copies of gradient, parameter, update and its square.
        Optimizer::Adafactor => rounded(h.elements, 4).saturating_mul(4),
        Optimizer::Muon => whole.saturating_mul(4),
        Optimizer::Sgd | Optimizer::SgdMomentum | Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit => 0,
    }
}
