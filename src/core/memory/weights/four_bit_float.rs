//! Four-bit floats: MXFP4 (gpt-oss) and NVFP4.

use super::Layout;
use super::split::{Shape, product};
use super::stored::Stored;
use crate::model::TensorClass;
use crate::units::Problem;

/// Bytes of `shape` in MXFP4: two weights a byte, and a byte of scale per 32 along the input.
fn mx(shape: Shape) -> Result<(u64, u64), Problem> {
    let main = product(&[shape.batch, shape.rows, shape.cols.div_ceil(2)])?;
    let scales = product(&[shape.batch, shape.rows, shape.cols.div_ceil(32)])?;
    Ok((main, scales))
}

fn padded(n: u64, step: u64) -> u64 {
    n.checked_next_multiple_of(step).unwrap_or(n)
}

/// As Marlin kernels take it (before Hopper): the experts' width padded to 128, the hidden size to 256.
fn marlin(shape: Shape, class: TensorClass) -> Result<(u64, u64), Problem> {
    let (rows, cols) = if class == TensorClass::ExpertDown {
        (padded(shape.rows, 256), padded(shape.cols, 128))
    } else {
        // Gate and up lie in one matrix, each padded.
        (padded(shape.rows.div_ceil(2), 128).saturating_mul(2), padded(shape.cols, 256))
    };
    mx(Shape { rows, cols, ..shape })
}

/// As Triton's layout for Hopper takes it: packed weights padded to 256 along the input, scales not.
fn hopper(shape: Shape) -> Result<(u64, u64), Problem> {
    let (main, _) = mx(Shape { cols: padded(shape.cols, 256), ..shape })?;
    let (_, scales) = mx(shape)?;
    Ok((main, scales))
}

/// MXFP4 of expert matrices. Kernels pad; the range spans from no padding to the most.
pub(super) fn mxfp4(shape: Shape, class: TensorClass, layout: Layout) -> Result<Stored, Problem> {
    let sum = |(main, scales): (u64, u64)| main.saturating_add(scales);
    let least = mx(shape)?;
    let (before, since) = (marlin(shape, class)?, hopper(shape)?);
    let (main, side) = match layout {
        Layout::Transformers => {
            let exact = Stored::exact(sum(least), "mxfp4");
            return Ok(Stored { main: least.0, side: least.1, ..exact });
        }
        Layout::ServingMarlin => before,
        Layout::Serving => since,
    };
    let most = sum(before).max(sum(since));
    Ok(Stored { bytes: sum((main, side)), low: sum(least), high: most, main, side, format: "mxfp4" })
}

/// NVFP4: two weights a byte, an fp8 scale per 16 along the input, two fp32 scales per matrix (of the weights and
/// of the activations that meet them).
pub(super) fn nvfp4(shape: Shape) -> Result<Stored, Problem> {
    let main = product(&[shape.batch, shape.rows, shape.cols.div_ceil(2)])?;
    let side = product(&[shape.batch, shape.rows, shape.cols.div_ceil(16)])?;
    let bytes = main.saturating_add(side).saturating_add(product(&[shape.batch, 8])?);
    Ok(Stored { main, side, ..Stored::exact(bytes, "nvfp4") })
}
