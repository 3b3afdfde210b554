//! ggml's storage types: bytes of a block of weights.

/// One storage type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    /// Name as ggml prints it.
    pub(crate) name: &'static str,
    /// Weights of a block.
    pub(crate) weights: u64,
    /// Bytes of a block, scales included.
    pub(crate) bytes: u64,
}

macro_rules! types {
    ($($id:ident = $name:literal $weights:literal / $bytes:literal;)*) => {
        $(pub(crate) const $id: Type = Type { name: $name, weights: $weights, bytes: $bytes };)*
        /// Every storage type (block structs of ggml-common.h).
        #[cfg(test)]
        pub(crate) const TYPES: &[Type] = &[$($id,)*];
    };
}

types! {
    F32 = "F32" 1 / 4;
    F16 = "F16" 1 / 2;
    BF16 = "BF16" 1 / 2;
    Q4_0 = "Q4_0" 32 / 18;
    Q4_1 = "Q4_1" 32 / 20;
    Q5_0 = "Q5_0" 32 / 22;
    Q5_1 = "Q5_1" 32 / 24;
    Q8_0 = "Q8_0" 32 / 34;
    Q2_K = "Q2_K" 256 / 84;
    Q3_K = "Q3_K" 256 / 110;
    Q4_K = "Q4_K" 256 / 144;
    Q5_K = "Q5_K" 256 / 176;
    Q6_K = "Q6_K" 256 / 210;
    IQ1_S = "IQ1_S" 256 / 50;
    IQ1_M = "IQ1_M" 256 / 56;
    IQ2_XXS = "IQ2_XXS" 256 / 66;
    IQ2_XS = "IQ2_XS" 256 / 74;
    IQ2_S = "IQ2_S" 256 / 82;
    IQ3_XXS = "IQ3_XXS" 256 / 98;
    IQ3_S = "IQ3_S" 256 / 110;
    IQ4_NL = "IQ4_NL" 32 / 18;
    IQ4_XS = "IQ4_XS" 256 / 136;
    TQ1_0 = "TQ1_0" 256 / 54;
    TQ2_0 = "TQ2_0" 256 / 66;
    MXFP4 = "MXFP4" 32 / 17;
}

impl Type {
    /// The type stored instead where rows are not a multiple of the block (`tensor_type_fallback` of llama.cpp).
    pub(crate) fn for_row(self, cols: u64) -> Type {
        if cols.is_multiple_of(self.weights) {
            return self;
        }
        let other = match self {
            Q4_K => Q5_0,
            Q5_K => Q5_1,
            Q6_K => Q8_0,
            Q2_K | Q3_K | TQ1_0 | TQ2_0 => Q4_0,
            _ => IQ4_NL,
        };
        if cols.is_multiple_of(other.weights) { other } else { F16 }
    }
}
