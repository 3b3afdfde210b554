//! Which tensors a rank holds, and in which shape: pipeline stages, tensor and expert parallel splits.

use super::Layout;
use crate::memory::Parallel;
use crate::model::{AttentionKind, Model, Sharding, TensorClass, TensorGroup};
use crate::units::{Message, Problem};

/// Vocabulary rows are padded to this before they are split (`DEFAULT_VOCAB_PADDING_SIZE` of vLLM; SGLang the same).
const VOCAB_PAD: u64 = 64;

/// One tensor as a rank holds it: `batch` matrices of `rows` × `cols` (a vector has one column).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Experts of a stacked tensor; 1 otherwise.
    pub(super) batch: u64,
    /// Output features.
    pub(super) rows: u64,
    /// Input features: what quantisation groups run along.
    pub(super) cols: u64,
}

impl Shape {
    /// Elements of all matrices.
    pub(super) fn elements(self) -> Result<u64, Problem> {
        product(&[self.batch, self.rows, self.cols])
    }
}

/// The product of counts, or the overflow problem.
pub(super) fn product(factors: &[u64]) -> Result<u64, Problem> {
    Ok(crate::units::Bytes::product(factors)?.0)
}

/// Layers of every pipeline stage, first layer and count: the remainder goes to the stages before the last,
/// from the back, since first and last also hold embedding and head (`get_pp_indices` of vLLM).
pub(super) fn stages(layers: u64, pipeline: u64) -> Result<Vec<(u64, u64)>, Problem> {
    if pipeline == 0 || pipeline > layers.max(1) {
        let accepted = format!("1 … {}", layers.max(1));
        return Err(Problem::not_accepted("parallel.pipeline", pipeline, accepted));
    }
    let (base, rest) = (layers / pipeline, layers % pipeline);
    let mut start = 0;
    Ok((0..pipeline)
        .map(|stage| {
            let from_back = pipeline - stage;
            let size = base + u64::from(from_back >= 2 && from_back < rest + 2);
            let run = (start, size);
            start += size;
            run
        })
        .collect())
}

/// Checks that the heads of every layer can be spread over the tensor-parallel ranks.
///
/// Errors: names `parallel.tensor`, the heads and the degrees that work.
pub(super) fn check_heads(model: &Model, tensor: u64) -> Result<(), Problem> {
    if tensor == 0 {
        return Err(Problem::not_accepted("parallel.tensor", tensor, "1, 2, 4, 8, …"));
    }
    for layer in model.layers.iter().chain(&model.encoder_layers) {
        let (heads, kv_heads) = match layer.attention.kind {
            AttentionKind::Full { heads, kv_heads, .. }
            | AttentionKind::Sliding { heads, kv_heads, .. }
            | AttentionKind::Chunked { heads, kv_heads, .. } => (heads, kv_heads),
            AttentionKind::Mla { heads, .. } => (heads, heads),
            AttentionKind::Recurrent(state) => (state.state_heads, state.state_heads),
            AttentionKind::None => continue,
        };
        let spread = heads.is_multiple_of(tensor)
            && (kv_heads.is_multiple_of(tensor) || (kv_heads > 0 && tensor.is_multiple_of(kv_heads)));
        if !spread {
            let works: Vec<String> = (1..=heads.min(1024))
                .filter(|t| heads.is_multiple_of(*t))
                .filter(|t| kv_heads.is_multiple_of(*t) || (kv_heads > 0 && t.is_multiple_of(kv_heads)))
                .map(|t| t.to_string())
                .collect();
            let message = Message::new("problem.tensor_heads")
                .with("given", tensor)
                .with("heads", heads)
                .with("kv_heads", kv_heads)
                .with("accepted", works.join(", "));
            return Err(Problem::new("parallel.tensor", message));
        }
    }
    Ok(())
}

/// How one rank cuts tensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) tensor: u64,
    pub(super) expert: u64,
    pub(super) layout: Layout,
}

impl Cut {
    /// From the degrees of a job. Expert parallelism spreads whole experts; what tensor parallelism has left
    /// beyond it splits inside an expert (SGLang's `tp / ep`; vLLM's `ep = tp · dp` leaves none).
    pub(super) fn new(parallel: Parallel, layout: Layout) -> Result<Cut, Problem> {
        if parallel.expert == 0 {
            return Err(Problem::not_accepted("parallel.expert", parallel.expert, "1, 2, 4, 8, …"));
        }
        Ok(Cut { tensor: parallel.tensor, expert: parallel.expert, layout })
    }

    /// The shape of one tensor of `group` on the fullest rank.
    ///
    /// Errors: names `parallel.tensor` where a split dimension is not a multiple of it.
    pub(super) fn shape(self, group: &TensorGroup) -> Result<Shape, Problem> {
        let (batch, rows, cols) = group.matrix();
        let mut shape = Shape { batch, rows, cols };
        let mut ranks = self.tensor;
        if group.expert {
            shape.batch = shape.batch.div_ceil(self.expert);
            ranks = (self.tensor / self.expert).max(1);
        }
        match group.sharding {
            Sharding::Replicated => {}
            Sharding::Column => shape.rows = divide(group, shape.rows, ranks)?,
            Sharding::Row => shape.cols = divide(group, shape.cols, ranks)?,
            Sharding::KvHeads { kv_heads } => {
                shape.rows = divide(group, shape.rows, ranks.min(kv_heads.max(1)))?;
            }
            Sharding::Qkv { kv_heads, head_dim, .. } => {
                let kv_rows = product(&[2, kv_heads, head_dim])?;
                let query = divide(group, shape.rows.saturating_sub(kv_rows), ranks)?;
                let kv = divide(group, kv_rows.min(shape.rows), ranks.min(kv_heads.max(1)))?;
                shape.rows = query.saturating_add(kv);
            }
            Sharding::Vocab => {
                let padded = match self.layout {
                    Layout::Serving | Layout::ServingMarlin => {
                        shape.rows.checked_next_multiple_of(VOCAB_PAD).unwrap_or(shape.rows)
                    }
                    Layout::Transformers => shape.rows,
                };
                shape.rows = padded.div_ceil(ranks);
            }
        }
        Ok(shape)
    }
}

fn divide(group: &TensorGroup, size: u64, ranks: u64) -> Result<u64, Problem> {
    // Small tensors of recurrent layers and encoders are padded or copied rather than refused.
    let strict = !matches!(
        group.class,
        TensorClass::RecurrentProjection
            | TensorClass::RecurrentSmall
            | TensorClass::Encoder
            | TensorClass::Other
            | TensorClass::Bias
    );
    if strict && !size.is_multiple_of(ranks) {
        let message = Message::new("problem.tensor_split")
            .with("given", ranks)
            .with("name", group.name.as_str())
            .with("size", size);
        return Err(Problem::new("parallel.tensor", message));
    }
    Ok(size.div_ceil(ranks))
}

/// Whether a tensor outside the stack of layers lives on the first pipeline stage (else on the last).
pub(super) fn on_first_stage(class: TensorClass) -> bool {
    matches!(class, TensorClass::Embedding | TensorClass::PositionEmbedding | TensorClass::Encoder)
}
