//! The tensors of a GGUF file one by one, as an engine lays them into the buffers of its devices.

use super::super::declared::effective_quantization;
use super::super::file::File;
use super::super::split::{Shape, product};
use super::recipe::{Recipe, role};
use crate::memory::WeightsSpec;
use crate::model::ggml as t;
use crate::model::{DType, Model, Quantization, TensorClass, TensorGroup};
use crate::units::Problem;

/// Rows of quantised matrices are padded to this many weights on a CUDA device (`MATRIX_ROW_PADDING`).
const ROW: u64 = 512;
/// Tensors start at multiples of this in a device buffer.
const ALIGN: u64 = 128;

/// One tensor of a file; where the file holds several in place of one of the model (gate and up), all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileTensor {
    /// Index of its group among the model's tensors.
    pub(crate) group: usize,
    /// Layer; none outside the stack.
    pub(crate) layer: Option<usize>,
    /// Bytes in the file.
    pub(crate) bytes: u64,
    /// Leanest way the quantize tool stores it.
    pub(crate) low: u64,
    /// Largest way.
    pub(crate) high: u64,
    /// What a device buffer holds beyond the bytes: padding of rows, alignment.
    pub(crate) padding: u64,
    /// Type as shown to people.
    pub(crate) format: &'static str,
}

/// Every tensor of the GGUF file of a model, vision tower and its projector aside: those are a file of their own.
///
/// Errors: a quantisation that GGUF does not have (`weights.quantization`).
pub(crate) fn file_tensors(model: &Model, spec: &WeightsSpec) -> Result<Vec<FileTensor>, Problem> {
    let kind = match effective_quantization(model, spec).quantization {
        Some(Quantization::Gguf(kind)) => kind.as_str(),
        // The converter keeps the experts of an MXFP4 checkpoint and stores the rest as asked.
        Some(Quantization::Mxfp4) => "MXFP4_MOE",
        _ => match spec.dtype {
            DType::Fp32 => "F32",
            DType::Fp16 => "F16",
            DType::Bf16 => "BF16",
        },
    };
    if let Some(file) = File::new(model, spec).filter(|file| file.gguf && file.total.is_none()) {
        return from_file(model, &file);
    }
    let recipe = Recipe::new(kind, model)?;
    let mut out = Vec::new();
    let counted = |(_, g): &(usize, &TensorGroup)| g.class != TensorClass::Encoder;
    for (index, group) in model.tensors.iter().enumerate().filter(counted) {
        let (batch, rows, cols) = group.matrix();
        let shape = Shape { batch, rows, cols };
        if group.layers.is_empty() {
            out.push(tensor(&recipe, (index, group), shape, None)?);
        }
        for layer in group.layers.iter().flat_map(|(a, b)| u64::from(*a)..=u64::from(*b)) {
            out.push(tensor(&recipe, (index, group), shape, Some(layer))?);
        }
    }
    Ok(out)
}

/// The tensors of a file as its header names them, each with the tensor of the model that it stands for.
fn from_file(model: &Model, file: &File<'_>) -> Result<Vec<FileTensor>, Problem> {
    let index = |group: &TensorGroup| model.tensors.iter().position(|g| std::ptr::eq(g, group));
    let class = |class: TensorClass| model.tensors.iter().position(|g| g.class == class);
    let mut out = Vec::new();
    for held in &file.held {
        if held.group.class == TensorClass::Encoder {
            continue;
        }
        let (_, rows, cols) = held.like.first().map_or((1, 1, ROW), |group| group.matrix());
        for piece in &held.pieces {
            let inside = !piece.row.layers.is_empty();
            // Biases of routers and tables of rotary factors are no parameters of the model: they lie with the
            // router, or with the output.
            let home = if inside { TensorClass::Router } else { TensorClass::Norm };
            let own = held.like.first().and_then(|group| index(group));
            let Some(group) = own.or_else(|| class(home)).or_else(|| class(TensorClass::Norm)) else {
                continue;
            };
            // Vectors and matrices of floats have no blocks.
            let whole = cols == 1 || matches!(piece.format, "fp32" | "fp16" | "bf16");
            let (short, elements) = (cols % ROW, product(&[rows, cols])?);
            let row = if whole || short == 0 || elements == 0 {
                0
            } else {
                product(&[ROW - short, piece.row.bytes])? / elements
            };
            let one = piece.row.bytes.saturating_add(row);
            let each = (piece.bytes / piece.row.bytes.max(1)).max(1);
            let placed = product(&[one.checked_next_multiple_of(ALIGN).unwrap_or(one), each])?;
            let tensor = |layer: Option<usize>| FileTensor {
                group,
                layer,
                bytes: piece.bytes,
                low: piece.bytes,
                high: piece.bytes,
                padding: placed.saturating_sub(piece.bytes),
                format: "",
            };
            if !inside {
                out.push(tensor(None));
            }
            for (first, last) in &piece.row.layers {
                let most = u32::try_from(model.layers.len()).unwrap_or(u32::MAX);
                out.extend((*first..=*last).filter(|l| *l < most).map(|l| tensor(Some(l as usize))));
            }
        }
    }
    Ok(out)
}

/// Padding of the stack of per-head K matrices, stored beside that of V, whose rows have 128 weights.
fn short_rows(kind: t::Type) -> u64 {
    let kind = kind.for_row(128);
    let row = if kind.weights > 1 { (ROW - 128) / kind.weights * kind.bytes } else { 0 };
    row.checked_next_multiple_of(ALIGN).unwrap_or(row)
}

fn tensor(
    recipe: &Recipe,
    (index, group): (usize, &TensorGroup),
    shape: Shape,
    layer: Option<u64>,
) -> Result<FileTensor, Problem> {
    let one = recipe.stored(group, shape, layer)?;
    let kind = recipe
        .kind(role(group), group, shape, layer.unwrap_or(0), recipe.needs_imatrix())
        .for_row(shape.cols);
    let pieces = if group.name.contains("gate_up_proj") && group.expert { 2 } else { 1 };
    let short = shape.cols % ROW;
    let row = if kind.weights > 1 && short > 0 { (ROW - short) / kind.weights * kind.bytes } else { 0 };
    let piece = one.bytes / pieces + row;
    let mut placed = product(&[piece.checked_next_multiple_of(ALIGN).unwrap_or(piece), pieces])?;
    if group.name.ends_with("kv_b_proj.weight") {
        placed = placed.saturating_add(short_rows(kind));
    }
    let all: u64 = group.layers.iter().map(|(a, b)| u64::from(*b - *a) + 1).sum();
    let times = group.count / all.max(1);
    Ok(FileTensor {
        group: index,
        layer: layer.map(|l| l as usize),
        bytes: product(&[one.bytes, times])?,
        low: product(&[one.low, times])?,
        high: product(&[one.high, times])?,
        padding: product(&[placed.saturating_sub(one.bytes), times])?,
        format: if one.format.is_empty() { t::F32.name } else { one.format },
    })
}
