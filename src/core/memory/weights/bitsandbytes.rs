//! bitsandbytes: NF4 with double quantisation, and LLM.int8().

use super::split::{Shape, product};
use super::stored::Stored;
use crate::units::Problem;

/// Weights that share an absmax.
const BLOCK: u64 = 64;
/// Absmax values that share a second-level scale.
const NESTED_BLOCK: u64 = 256;
/// Per matrix: the offset, the 16-entry code and the 256-entry nested code, all fp32.
const TABLES: u64 = 4 + 16 * 4 + 256 * 4;

/// NF4: two weights a byte; absmax per 64 weights in 8 bits, rescaled in fp32 per 256 of those. Without double
/// quantisation absmax is fp32 (high end).
pub(super) fn nf4(shape: Shape) -> Result<Stored, Problem> {
    let elements = shape.elements()?;
    let main = elements.div_ceil(2);
    let blocks = elements.div_ceil(BLOCK);
    let nested = product(&[blocks.div_ceil(NESTED_BLOCK), 4])?;
    let tables = product(&[shape.batch, TABLES])?;
    let bytes = main.saturating_add(blocks).saturating_add(nested).saturating_add(tables);
    let single = main.saturating_add(product(&[blocks, 4])?).saturating_add(tables);
    Ok(Stored { bytes, low: bytes, high: single.max(bytes), main, side: 0, format: "nf4" })
}

/// LLM.int8(): a byte per weight and an fp32 scale per output row. Outlier columns are converted to fp16 while
/// a product runs, not stored.
pub(super) fn int8(shape: Shape) -> Result<Stored, Problem> {
    let main = shape.elements()?;
    let rows = product(&[shape.batch, shape.rows, 4])?;
    Ok(Stored { main, ..Stored::exact(main.saturating_add(rows), "int8") })
}
