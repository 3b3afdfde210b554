//! Adapter slots of a serving engine: stacks of A and B matrices beside every linear layer.

use super::Layout;
use super::split::{Cut, product, stages};
use crate::memory::{Parallel, PhaseId, Provenance, Residency, Term, TermId, Working};
use crate::model::{Model, Sharding, TensorClass, TensorGroup};
use crate::units::{Bytes, Problem};

/// Which adapters an engine has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterSlots {
    /// S: adapters on the device at once.
    pub slots: u64,
    /// r: largest rank.
    pub rank: u64,
    /// Bytes per element.
    pub element: u64,
    /// Routed experts have stacks, too.
    pub experts: bool,
    /// Embedding and head have stacks, which every rank holds whole.
    pub vocabulary: bool,
}

/// Rows that older versions reserved for tokens an adapter adds (`lora_extra_vocab_size`).
const EXTRA_ROWS: u64 = 256;

/// Bytes of the adapter slots on the fullest rank.
///
/// Every linear layer of shape rows × columns as the rank holds it gets S matrices A of r × columns and S matrices
/// B of rows × r, filled or not, and of the full rank r whatever an adapter's own. The merged layers (q, k, v; gate,
/// up) hold a pair for each part. Embedding and head hold r · (V + d) each.
///
/// Formula: S · r · Σ (rows / t + columns / t) · e, split as the layer is.
/// Accuracy: linear layers exact; the high end adds a third stack of the vocabulary and 256 rows for added tokens,
/// which some versions hold (0.8.1: 248.3 MB printed for rank 64 of Llama-3.2-3B, high end 250; 0.11.2: 62.8 MB
/// for rank 32 of Llama-3.2-1B, point 61.8, high end 72).
/// Source: `create_lora_weights` of `BaseLinearLayerWithLoRA`, `VocabParallelEmbeddingWithLoRA` and
/// `LogitsProcessorWithLoRA` in vllm/lora/layers; unslothai/notebooks for the two prints.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::{Parallel, weights::{AdapterSlots, Layout, adapter_slots}};
/// use oom_ledger_core::model::preset;
/// let model = preset("llama-3.2-1b").unwrap().model().unwrap();
/// let slots = AdapterSlots { slots: 1, rank: 32, element: 2, experts: false, vocabulary: false };
/// let term = adapter_slots(&model, Parallel::default(), slots, Layout::Serving).unwrap();
/// assert_eq!(term.bytes, 32 * 2 * 16 * (9216 + 4096 + 20_480 + 10_240));
/// ```
///
/// Errors: degrees that cannot be used, sizes that overflow.
pub fn adapter_slots(
    model: &Model,
    parallel: Parallel,
    slots: AdapterSlots,
    layout: Layout,
) -> Result<Term, Problem> {
    let cut = Cut::new(parallel, layout)?;
    let runs = stages(model.layers.len() as u64, parallel.pipeline)?;
    let mut fullest = 0;
    for (start, size) in runs {
        let mut sum = 0u64;
        for group in model.tensors.iter().filter(|g| wrapped(g, slots.experts)) {
            let all: u64 = group.layers.iter().map(|(a, b)| u64::from(*b - *a) + 1).sum();
            let within = |(a, b): &(u32, u32)| {
                let from = u64::from(*a).max(start);
                (u64::from(*b) + 1).min(start + size).saturating_sub(from)
            };
            let mine: u64 = group.layers.iter().map(within).sum();
            let per_layer = group.count.checked_div(all).unwrap_or(0);
            let shape = cut.shape(group)?;
            let edges = Bytes(shape.rows).add(Bytes(shape.cols))?.0;
            let here = product(&[edges, shape.batch, per_layer, mine])?;
            sum = Bytes(sum).add(Bytes(here))?.0;
        }
        fullest = fullest.max(sum);
    }
    let unit = product(&[slots.slots, slots.rank, slots.element])?;
    let linear = product(&[fullest, unit])?;
    let (vocabulary, hidden) = (model.vocab_size, model.hidden_size);
    let stack = product(&[Bytes(vocabulary).add(Bytes(hidden))?.0, unit])?;
    // Rows of the embedding itself and of both stacks.
    let extra = product(&[3, EXTRA_ROWS, hidden, slots.element])?;
    let (point, high) = if slots.vocabulary {
        let low = Bytes(linear).add(Bytes(product(&[2, stack])?))?;
        (low.0, low.add(Bytes(stack))?.add(Bytes(extra))?.0)
    } else {
        (linear, linear)
    };
    let working = Working::new("S · r · Σ (rows + columns) · e", point)
        .with("S", slots.slots, "adapters")
        .with("r", slots.rank, "")
        .with("Σ (rows + columns)", fullest, "elements")
        .with("e", slots.element, "B/element")
        .with("embedding and head", point - linear, "B");
    Ok(Term {
        id: TermId::Adapter,
        bytes: point,
        low: linear,
        high,
        residency: Residency::Resident,
        phases: PhaseId::ALL.to_vec(),
        provenance: if high == linear { Provenance::Exact } else { Provenance::Bounded },
        source: "vllm/lora/layers, create_lora_weights",
        working,
    })
}

/// Whether the engine puts stacks beside these matrices.
fn wrapped(group: &TensorGroup, experts: bool) -> bool {
    let matrix = group.shape.len() >= 2 && !matches!(group.sharding, Sharding::Vocab);
    let linear = matches!(
        group.class,
        TensorClass::AttentionQ
            | TensorClass::AttentionK
            | TensorClass::AttentionV
            | TensorClass::AttentionQkv
            | TensorClass::AttentionOut
            | TensorClass::AttentionLatent
            | TensorClass::MlpGate
            | TensorClass::MlpUp
            | TensorClass::MlpDown
            | TensorClass::SharedExpert
            | TensorClass::RecurrentProjection
    );
    let routed = matches!(group.class, TensorClass::ExpertGateUp | TensorClass::ExpertDown);
    matrix && !group.layers.is_empty() && (linear || (routed && experts))
}
