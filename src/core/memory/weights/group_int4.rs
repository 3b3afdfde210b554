//! Four-bit integers in groups along the input dimension: AWQ and GPTQ.

use super::split::{Shape, product};
use super::stored::Stored;
use crate::units::Problem;

/// Weights that share a scale and a zero point: 128 in nearly every public checkpoint.
const GROUP: u64 = 128;
/// Finest group seen in public checkpoints: the high end of the range.
const FINE_GROUP: u64 = 32;
/// Values of 4 bits in one 32-bit word.
const PACK: u64 = 8;
/// Bytes of an fp16 scale and of a packed word.
const SCALE: u64 = 2;
const WORD: u64 = 4;

/// `qweight` (two weights a byte, packed words) of all matrices.
fn packed(shape: Shape, along_rows: bool) -> Result<u64, Problem> {
    let (rows, cols) = if along_rows {
        (shape.rows.div_ceil(PACK), shape.cols)
    } else {
        (shape.rows, shape.cols.div_ceil(PACK))
    };
    product(&[shape.batch, rows, cols, WORD])
}

/// `scales` (fp16) and `qzeros` (4 bits, packed along the output) of all matrices.
fn scales_and_zeros(shape: Shape, group: u64, zeros: bool) -> Result<u64, Problem> {
    let groups = shape.cols.div_ceil(group);
    let scales = product(&[shape.batch, groups, shape.rows, SCALE])?;
    let zero = if zeros { product(&[shape.batch, groups, shape.rows.div_ceil(PACK), WORD])? } else { 0 };
    Ok(scales.saturating_add(zero))
}

/// AWQ: qweight [in, out/8], scales [in/128, out], qzeros [in/128, out/8].
pub(super) fn awq(shape: Shape) -> Result<Stored, Problem> {
    let main = packed(shape, true)?;
    let at = |group| Ok::<u64, Problem>(main.saturating_add(scales_and_zeros(shape, group, true)?));
    let bytes = at(GROUP)?;
    Ok(Stored { bytes, low: bytes, high: at(FINE_GROUP)?, main, side: 0, format: "awq-int4 g128" })
}

/// GPTQ: qweight [in/8, out], scales [in/128, out], qzeros [in/128, out/8], g_idx [in] int32. Kernels of
/// symmetric checkpoints drop zero points and order (low end); finer groups exist (high end).
pub(super) fn gptq(shape: Shape) -> Result<Stored, Problem> {
    let main = packed(shape, false)?;
    let order = product(&[shape.batch, shape.cols, 4])?;
    let with_order = |group| {
        Ok::<u64, Problem>(main.saturating_add(scales_and_zeros(shape, group, true)?).saturating_add(order))
    };
    Ok(Stored {
        bytes: with_order(GROUP)?,
        low: main.saturating_add(scales_and_zeros(shape, GROUP, false)?),
        high: with_order(FINE_GROUP)?,
        main,
        side: 0,
        format: "gptq-int4 g128",
    })
}
