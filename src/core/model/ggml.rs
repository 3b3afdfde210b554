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
    ($($id:ident = $number:literal $name:literal $weights:literal / $bytes:literal;)*) => {
        $(pub(crate) const $id: Type = Type { name: $name, weights: $weights, bytes: $bytes };)*
        /// Every type that a mix of the quantize tool uses, with its number in `enum ggml_type`.
        pub(crate) const TYPES: &[(u32, Type)] = &[$(($number, $id),)*];
    };
}

// Block structs of ggml-common.h; numbers of `enum ggml_type` in ggml.h.
types! {
    F32 = 0 "F32" 1 / 4;
    F16 = 1 "F16" 1 / 2;
    BF16 = 30 "BF16" 1 / 2;
    Q4_0 = 2 "Q4_0" 32 / 18;
    Q4_1 = 3 "Q4_1" 32 / 20;
    Q5_0 = 6 "Q5_0" 32 / 22;
    Q5_1 = 7 "Q5_1" 32 / 24;
    Q8_0 = 8 "Q8_0" 32 / 34;
    Q2_K = 10 "Q2_K" 256 / 84;
    Q3_K = 11 "Q3_K" 256 / 110;
    Q4_K = 12 "Q4_K" 256 / 144;
    Q5_K = 13 "Q5_K" 256 / 176;
    Q6_K = 14 "Q6_K" 256 / 210;
    IQ1_S = 19 "IQ1_S" 256 / 50;
    IQ1_M = 29 "IQ1_M" 256 / 56;
    IQ2_XXS = 16 "IQ2_XXS" 256 / 66;
    IQ2_XS = 17 "IQ2_XS" 256 / 74;
    IQ2_S = 22 "IQ2_S" 256 / 82;
    IQ3_XXS = 18 "IQ3_XXS" 256 / 98;
    IQ3_S = 21 "IQ3_S" 256 / 110;
    IQ4_NL = 20 "IQ4_NL" 32 / 18;
    IQ4_XS = 23 "IQ4_XS" 256 / 136;
    TQ1_0 = 34 "TQ1_0" 256 / 54;
    TQ2_0 = 35 "TQ2_0" 256 / 66;
    MXFP4 = 39 "MXFP4" 32 / 17;
}

/// Types that no mix uses, but a file may hold: number, name, weights and bytes of a block. The repacked forms of
/// Q4_0 and IQ4_NL (31 to 33, 36 to 38; written by llama.cpp until the end of 2024) have the blocks of the plain
/// ones.
const OTHERS: &[(u32, &str, u64, u64)] = &[
    (9, "Q8_1", 32, 40),
    (15, "Q8_K", 256, 292),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (31, "Q4_0_4_4", 32, 18),
    (32, "Q4_0_4_8", 32, 18),
    (33, "Q4_0_8_8", 32, 18),
    (36, "IQ4_NL_4_4", 32, 18),
    (37, "IQ4_NL_4_8", 32, 18),
    (38, "IQ4_NL_8_8", 32, 18),
];

/// The type with number `number` in `enum ggml_type`; `None` where it is not known here.
pub(crate) fn by_number(number: u32) -> Option<Type> {
    let known = TYPES.iter().find(|(n, _)| *n == number).map(|(_, t)| *t);
    known.or_else(|| {
        let (_, name, weights, bytes) = *OTHERS.iter().find(|(n, ..)| *n == number)?;
        Some(Type { name, weights, bytes })
    })
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

#[cfg(test)]
mod tests {
    use super::{OTHERS, TYPES, by_number};

    #[test]
    fn blocks_hold_a_power_of_two_of_weights_and_names_and_numbers_are_unique() {
        let others = OTHERS.iter().filter_map(|(number, ..)| Some((*number, by_number(*number)?)));
        let all: Vec<_> = TYPES.iter().copied().chain(others).collect();
        for (i, (number, t)) in all.iter().enumerate() {
            assert!(t.weights.is_power_of_two(), "{}", t.name);
            // Between 1.1 and 64 bits a weight.
            assert!(t.bytes * 8 * 9 >= t.weights * 10 && t.bytes <= t.weights * 8, "{}", t.name);
            assert!(all.iter().skip(i + 1).all(|(n, o)| o.name != t.name && n != number), "{}", t.name);
        }
    }
}
