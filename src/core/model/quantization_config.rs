//! What a checkpoint says about its own quantisation: `quantization_config` and `torch_dtype`.

use super::fields::Fields;
use super::{DType, Quantization};
use crate::units::{Message, Problem};
use serde_json::Value;

/// The scheme that `quantization_config` declares.
///
/// Errors: a method that is not known here; a wrong guess would be wrong by a factor.
pub(crate) fn declared_quantization(fields: Fields<'_>) -> Result<Option<Quantization>, Problem> {
    let Some(map) = fields.object("quantization_config") else { return Ok(None) };
    let config = Fields::new(map, "quantization_config.");
    let method = config.text("quant_method|quant_type").unwrap_or_default().to_ascii_lowercase();
    let bits = config.whole("bits|w_bit|weight_bits", 1, 32)?;
    let scheme = match method.as_str() {
        "fp8" | "fbgemm_fp8" => Some(Quantization::Fp8),
        "mxfp4" => Some(Quantization::Mxfp4),
        "awq" if bits.unwrap_or(4) == 4 => Some(Quantization::AwqInt4),
        "gptq" if bits.unwrap_or(4) == 4 => Some(Quantization::GptqInt4),
        "bitsandbytes" if config.flag("load_in_8bit|_load_in_8bit", false)? => Some(Quantization::BnbInt8),
        "bitsandbytes" => Some(Quantization::BnbNf4),
        "compressed-tensors" | "compressed_tensors" => compressed_tensors(map),
        "modelopt" | "modelopt_fp4" => match config.text("quant_algo").unwrap_or_default() {
            "NVFP4" => Some(Quantization::Nvfp4),
            "FP8" => Some(Quantization::Fp8),
            _ => None,
        },
        _ => None,
    };
    scheme.map(Some).ok_or_else(|| {
        let names: Vec<_> = Quantization::NAMED.iter().map(|(n, _)| *n).collect();
        let message = Message::new("model.quantization_unknown")
            .with("given", bits.map_or(method.clone(), |b| format!("{method} {b}-bit")))
            .with("accepted", names.join(", "));
        Problem::new("model.config.quantization_config.quant_method", message)
    })
}

/// compressed-tensors describes the weights of each group by type and bits; all groups of one checkpoint
/// agree in the public ones, so the first decides.
fn compressed_tensors(map: &serde_json::Map<String, Value>) -> Option<Quantization> {
    let groups = map.get("config_groups")?.as_object()?;
    let group = groups.values().next()?;
    let weights = group.get("weights")?;
    let bits = weights.get("num_bits").and_then(Value::as_u64)?;
    match (weights.get("type").and_then(Value::as_str)?, bits) {
        ("float", 8) => Some(Quantization::Fp8),
        ("int", 8) => Some(Quantization::Int8),
        ("float", 4) if weights.get("group_size").and_then(Value::as_u64) == Some(16) => {
            Some(Quantization::Nvfp4)
        }
        ("float", 4) => Some(Quantization::Mxfp4),
        // pack-quantized int4: group scales and packed zero points, as GPTQ lays them out.
        ("int", 4) => Some(Quantization::GptqInt4),
        _ => None,
    }
}

/// The dtype that the config declares, if it is one of the three modelled.
pub(crate) fn declared_dtype(fields: Fields<'_>) -> Option<DType> {
    match fields.text("dtype|torch_dtype")?.trim_start_matches("torch.") {
        "float32" | "float" => Some(DType::Fp32),
        "float16" | "half" => Some(DType::Fp16),
        "bfloat16" => Some(DType::Bf16),
        _ => None,
    }
}
