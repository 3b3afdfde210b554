//! Names of weight quantisation schemes; what they cost is `memory::weights`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A weight quantisation scheme as named in the Scenario document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Quantization {
    /// 8-bit float weights, per-tensor, per-channel or 128x128 block scales.
    Fp8,
    /// 8-bit integer weights, per-channel scales (W8A8 compressed-tensors).
    Int8,
    /// AWQ 4-bit, group scales and zero points.
    AwqInt4,
    /// GPTQ 4-bit, group scales, zero points and g_idx.
    GptqInt4,
    /// bitsandbytes NF4 with double quantisation.
    BnbNf4,
    /// bitsandbytes LLM.int8().
    BnbInt8,
    /// OCP MXFP4: 32 elements share one 8-bit scale.
    Mxfp4,
    /// NVFP4: 16 elements share one fp8 scale, plus a per-tensor fp32 scale.
    Nvfp4,
    /// A GGUF file type, e.g. `Q4_K_M`.
    Gguf(String),
}

impl Quantization {
    /// The schemes that have a fixed name, in the order shown to people.
    pub const NAMED: &'static [(&'static str, Quantization)] = &[
        ("fp8", Quantization::Fp8),
        ("int8", Quantization::Int8),
        ("awq-int4", Quantization::AwqInt4),
        ("gptq-int4", Quantization::GptqInt4),
        ("bnb-nf4", Quantization::BnbNf4),
        ("bnb-int8", Quantization::BnbInt8),
        ("mxfp4", Quantization::Mxfp4),
        ("nvfp4", Quantization::Nvfp4),
    ];

    /// The id used in the Scenario document.
    pub fn id(&self) -> String {
        match self {
            Quantization::Gguf(kind) => format!("gguf:{kind}"),
            other => Self::NAMED.iter().find(|(_, q)| q == other).map_or("", |(id, _)| id).to_owned(),
        }
    }

    /// From the id used in the Scenario document; `None` where it is no such id.
    pub fn from_id(id: &str) -> Option<Quantization> {
        if let Some(kind) = id.strip_prefix("gguf:") {
            return Some(Quantization::Gguf(kind.to_ascii_uppercase()));
        }
        Self::NAMED.iter().find(|(name, _)| *name == id).map(|(_, q)| q.clone())
    }
}

impl Serialize for Quantization {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.id())
    }
}

impl<'de> Deserialize<'de> for Quantization {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let id = String::deserialize(d)?;
        Quantization::from_id(&id).ok_or_else(|| {
            let names: Vec<_> = Self::NAMED.iter().map(|(n, _)| *n).collect();
            serde::de::Error::custom(format!(
                "quantization \"{id}\" is not known; accepted: null, {}, gguf:Q4_K_M and the other GGUF types",
                names.join(", ")
            ))
        })
    }
}
