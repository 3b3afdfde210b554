//! Four-bit floats: MXFP4 (gpt-oss) and NVFP4.

use super::Layout;
use super::split::{Shape, product};
use super::stored::Stored;
use crate::units::Problem;

/// Bytes of `shape` in MXFP4: two weights a byte, and a byte of scale per 32 along the input.
fn mx(shape: Shape) -> Result<(u64, u64), Problem> {
    let main = product(&[shape.batch, shape.rows, shape.cols.div_ceil(2)])?;
    let scales = product(&[shape.batch, shape.rows, shape.cols.div_ceil(32)])?;
    Ok((main, main.saturating_add(scales)))
}

/// MXFP4 of expert matrices. Kernels pad: the range spans no padding to both dimensions up to 256.
pub(super) fn mxfp4(shape: Shape, layout: Layout) -> Result<Stored, Problem> {
    let (main, bytes) = mx(shape)?;
    if layout == Layout::Transformers {
        return Ok(Stored { main, ..Stored::exact(bytes, "mxfp4") });
    }
    let pad = |n: u64| n.checked_next_multiple_of(256).unwrap_or(n);
    let (_, high) = mx(Shape { rows: pad(shape.rows), cols: pad(shape.cols), ..shape })?;
    Ok(Stored { bytes, low: bytes, high, main, format: "mxfp4" })
}

/// NVFP4: two weights a byte, an fp8 scale per 16 along the input, an fp32 scale per matrix (weights and, where
/// activations are quantised too, inputs).
pub(super) fn nvfp4(shape: Shape) -> Result<Stored, Problem> {
    let main = product(&[shape.batch, shape.rows, shape.cols.div_ceil(2)])?;
    let scales = product(&[shape.batch, shape.rows, shape.cols.div_ceil(16)])?;
    let bytes = main.saturating_add(scales).saturating_add(product(&[shape.batch, 8])?);
    Ok(Stored { main, ..Stored::exact(bytes, "nvfp4") })
}
