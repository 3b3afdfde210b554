//! Eight-bit weights with scales per tensor, output channel or block: fp8 and W8A8 int8.

use super::split::{Shape, product};
use super::stored::Stored;
use crate::units::Problem;

/// Side of a block of DeepSeek-style block-scaled fp8 (`weight_block_size` [128, 128]).
const BLOCK: u64 = 128;
/// Scales are fp32.
const SCALE: u64 = 4;

/// fp8: one byte per weight. Scales: one per 128 × 128 block where `blocks` (DeepSeek, Qwen and the other public
/// checkpoints with experts), else one per output channel (dynamic checkpoints of dense models); one per tensor in
/// static ones (low end).
pub(super) fn fp8(shape: Shape, blocks: bool) -> Result<Stored, Problem> {
    let weights = shape.elements()?;
    let per_tensor = product(&[shape.batch, SCALE])?;
    let per_channel = product(&[shape.batch, shape.rows, SCALE])?;
    let (row_blocks, col_blocks) = (shape.rows.div_ceil(BLOCK), shape.cols.div_ceil(BLOCK));
    let per_block = product(&[shape.batch, row_blocks, col_blocks, SCALE])?;
    let scales = if blocks { per_block } else { per_channel };
    Ok(Stored {
        bytes: weights.saturating_add(scales),
        low: weights.saturating_add(per_tensor),
        high: weights.saturating_add(per_channel.max(per_block)),
        main: weights,
        side: scales,
        format: "fp8",
    })
}

/// int8: one byte per weight and one fp32 scale per output channel; a zero point per channel where asymmetric.
pub(super) fn int8(shape: Shape) -> Result<Stored, Problem> {
    let weights = shape.elements()?;
    let scales = product(&[shape.batch, shape.rows, SCALE])?;
    let bytes = weights.saturating_add(scales);
    Ok(Stored {
        bytes,
        low: bytes,
        high: bytes.saturating_add(scales),
        main: weights,
        side: 0,
        format: "int8",
    })
}
