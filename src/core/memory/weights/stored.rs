//! What one tensor costs under a scheme: dispatch over the files of this folder.

use super::file::File;
use super::split::{Shape, product};
use super::{Layout, bitsandbytes, four_bit_float, gguf, group_int4, row_scaled};
use crate::model::{DType, Quantization, TensorClass, TensorGroup};
use crate::units::Problem;

/// Bytes of one tensor: point, range over the variants of its scheme, and the format's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Point estimate.
    pub(super) bytes: u64,
    /// Leanest variant of the scheme.
    pub(super) low: u64,
    /// Largest variant.
    pub(super) high: u64,
    /// The largest single allocation among them.
    pub(super) main: u64,
    /// The second largest, where it may be large too: block scales.
    pub(super) side: u64,
    /// Format as shown to people.
    pub(super) format: &'static str,
}

impl Stored {
    /// A tensor whose bytes follow from its shape alone.
    pub(super) fn exact(bytes: u64, format: &'static str) -> Stored {
        Stored { bytes, low: bytes, high: bytes, main: bytes, side: 0, format }
    }
}

/// A matrix of a linear layer, which the integer and float schemes quantise. Embedding, head, norms, routers,
/// small recurrent tensors and encoders stay as they are in every public checkpoint of these schemes.
pub(super) fn is_linear(class: TensorClass) -> bool {
    use TensorClass as C;
    matches!(
        class,
        C::AttentionQ
            | C::AttentionK
            | C::AttentionV
            | C::AttentionQkv
            | C::AttentionOut
            | C::AttentionLatent
            | C::MlpGate
            | C::MlpUp
            | C::MlpDown
            | C::ExpertGateUp
            | C::ExpertDown
            | C::SharedExpert
            | C::RecurrentProjection
    )
}

/// Bytes of one tensor of `group`, cut to `shape`, kept at full precision.
pub(super) fn plain(group: &TensorGroup, shape: Shape, dtype: DType) -> Result<Stored, Problem> {
    let dtype = group.dtype.unwrap_or(dtype);
    Ok(Stored::exact(product(&[shape.elements()?, dtype.bytes()])?, dtype.id()))
}

/// Bytes of one tensor of `group`, cut to `shape`, in layer `layer` of the scheme.
pub(super) fn stored(
    group: &TensorGroup,
    shape: Shape,
    layer: Option<u64>,
    scheme: &Scheme<'_>,
) -> Result<Stored, Problem> {
    if let Some(recipe) = &scheme.gguf {
        return recipe.stored(group, shape, layer);
    }
    let Some(quantization) = scheme.quantization else { return plain(group, shape, scheme.dtype) };
    let matrix = is_linear(group.class) && shape.cols > 1;
    if !matrix {
        return plain(group, shape, scheme.dtype);
    }
    match quantization {
        Quantization::Fp8 => row_scaled::fp8(shape, scheme.experts),
        Quantization::Int8 => row_scaled::int8(shape),
        Quantization::AwqInt4 => group_int4::awq(shape),
        Quantization::GptqInt4 => group_int4::gptq(shape),
        Quantization::BnbNf4 => bitsandbytes::nf4(shape),
        Quantization::BnbInt8 => bitsandbytes::int8(shape),
        Quantization::Mxfp4 if group.expert => four_bit_float::mxfp4(shape, group.class, scheme.layout),
        Quantization::Nvfp4 => four_bit_float::nvfp4(shape),
        // MXFP4 checkpoints quantise experts only; GGUF was answered by its recipe above.
        Quantization::Mxfp4 | Quantization::Gguf(_) => plain(group, shape, scheme.dtype),
    }
}

/// How every tensor of a model is stored.
pub(super) struct Scheme<'a> {
    pub(super) dtype: DType,
    pub(super) quantization: Option<&'a Quantization>,
    pub(super) gguf: Option<gguf::Recipe>,
    /// The checkpoint itself, where it decides.
    pub(super) file: Option<File<'a>>,
    pub(super) layout: Layout,
    /// The model routes to experts.
    pub(super) experts: bool,
}
