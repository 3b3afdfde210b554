//! GGUF file types: names that people use and the storage type most tensors get.

use crate::model::ggml as t;
use crate::model::ggml::Type;
use crate::units::{Message, Problem};

/// File types by name, with the type most matrices get (`llama_ftype_get_default_type` of llama.cpp).
pub(crate) const FILES: &[(&str, Type)] = &[
    ("F32", t::F32),
    ("F16", t::F16),
    ("BF16", t::BF16),
    ("Q8_0", t::Q8_0),
    ("Q6_K", t::Q6_K),
    ("Q5_K_M", t::Q5_K),
    ("Q5_K_S", t::Q5_K),
    ("Q5_1", t::Q5_1),
    ("Q5_0", t::Q5_0),
    ("Q4_K_M", t::Q4_K),
    ("Q4_K_S", t::Q4_K),
    ("Q4_1", t::Q4_1),
    ("Q4_0", t::Q4_0),
    ("IQ4_NL", t::IQ4_NL),
    ("IQ4_XS", t::IQ4_XS),
    ("Q3_K_L", t::Q3_K),
    ("Q3_K_M", t::Q3_K),
    ("Q3_K_S", t::Q3_K),
    ("IQ3_M", t::IQ3_S),
    ("IQ3_S", t::IQ3_S),
    ("IQ3_XS", t::IQ3_S),
    ("IQ3_XXS", t::IQ3_XXS),
    ("Q2_K", t::Q2_K),
    ("Q2_K_S", t::Q2_K),
    ("IQ2_M", t::IQ2_S),
    ("IQ2_S", t::IQ2_XS),
    ("IQ2_XS", t::IQ2_XS),
    ("IQ2_XXS", t::IQ2_XXS),
    ("IQ1_M", t::IQ1_M),
    ("IQ1_S", t::IQ1_S),
    ("TQ2_0", t::TQ2_0),
    ("TQ1_0", t::TQ1_0),
    ("MXFP4_MOE", t::MXFP4),
];

/// Short names that the quantize tool takes for a mix.
const ALIASES: &[(&str, &str)] =
    &[("Q3_K", "Q3_K_M"), ("Q4_K", "Q4_K_M"), ("Q5_K", "Q5_K_M"), ("MXFP4", "MXFP4_MOE")];

/// The row of [`FILES`] of that name, upper or lower case.
///
/// Errors: names `weights.quantization` and every accepted type.
pub(crate) fn file_type(name: &str) -> Result<(&'static str, Type), Problem> {
    let upper = name.to_ascii_uppercase();
    let full = ALIASES.iter().find(|(short, _)| *short == upper).map_or(upper.as_str(), |(_, full)| full);
    FILES.iter().find(|(known, _)| *known == full).copied().ok_or_else(|| {
        let names: Vec<_> = FILES.iter().map(|(known, _)| *known).collect();
        let message = Message::new("problem.gguf_type")
            .with("given", format!("gguf:{name}"))
            .with("accepted", names.join(", "));
        Problem::new("weights.quantization", message)
    })
}
