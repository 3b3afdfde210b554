//! The prefill batch that 3.0 and later reckon for themselves (`compute_optimal` and `vram_maximum` of the launcher).

use crate::engines::Inputs;
use crate::memory::weights::effective_quantization;
use crate::model::{AttentionKind, MlpKind};

/// Tera-operations in 16 bits per second that the launcher knows, by name of the device.
const KNOWN: &[(&str, u64)] = &[
    ("RTX 4090", 82),
    ("T4", 65),
    ("L40S", 363),
    ("L40", 181),
    ("L4", 121),
    ("A10G", 125),
    ("A40", 149),
    ("H100", 900),
    ("H200", 989),
    ("A100", 312),
];

/// The sizes that the launcher reads from the config.
struct Sizes {
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    hidden: u64,
    intermediate: u64,
    /// Feed-forwards that a token passes, and that there are.
    active: u64,
    experts: u64,
    layers: u64,
    vocabulary: u64,
}

fn sizes(inputs: &Inputs<'_>) -> Option<Sizes> {
    let model = inputs.model;
    let layer = model.layers.last()?;
    let (heads, kv_heads, head_dim) = match layer.attention.kind {
        AttentionKind::Full { heads, kv_heads, head_dim, .. }
        | AttentionKind::Sliding { heads, kv_heads, head_dim, .. }
        | AttentionKind::Chunked { heads, kv_heads, head_dim, .. } => (heads, kv_heads, head_dim),
        AttentionKind::Mla { .. } | AttentionKind::Recurrent(_) | AttentionKind::None => return None,
    };
    let (intermediate, active, experts) = match layer.mlp.kind {
        MlpKind::Dense { intermediate } => (intermediate, 1, 1),
        MlpKind::Moe { experts, top_k, intermediate, .. } => (intermediate, top_k, experts),
        MlpKind::None => return None,
    };
    let layers = model.layers.len() as u64;
    let (hidden, vocabulary) = (model.hidden_size, model.vocab_size);
    Some(Sizes { heads, kv_heads, head_dim, hidden, intermediate, active, experts, layers, vocabulary })
}

impl Sizes {
    /// Operations for one token.
    fn operations(&self) -> u128 {
        let (h, kv, d) = (u128::from(self.heads), u128::from(self.kv_heads), u128::from(self.head_dim));
        let hidden = u128::from(self.hidden);
        let attention = 2 * d * hidden * (3 * h + 2 * kv);
        let mlp = 6 * hidden * u128::from(self.intermediate) * u128::from(self.active);
        (attention + mlp) * u128::from(self.layers)
    }

    /// Bytes that the launcher expects of a token, and of the model.
    fn bytes(&self) -> (u128, u128) {
        let (h, kv, d) = (u128::from(self.heads), u128::from(self.kv_heads), u128::from(self.head_dim));
        let (hidden, mlp) = (u128::from(self.hidden), u128::from(self.intermediate));
        let (experts, layers) = (u128::from(self.experts), u128::from(self.layers));
        let token = kv * 2 * d * 2 * layers + (mlp + mlp / 2) * experts * 6;
        let layer = 3 * mlp * experts * hidden + (h + 2 * kv) * d + h * d * hidden;
        (token, 2 * (layer * layers + 2 * hidden * u128::from(self.vocabulary)))
    }
}

/// Tokens of the prefill batch by default.
pub(super) fn reckoned(inputs: &Inputs<'_>, share: f64) -> u64 {
    let name = inputs.device.gpu.map_or("", |g| g.name);
    let has = |word: &str| name.split([' ', '-']).any(|part| part == word);
    let known = KNOWN.iter().find(|(words, _)| words.split(' ').all(has));
    let sizes = sizes(inputs);
    let devices = u128::from(inputs.parallel.tensor.max(1));
    let vision = inputs.model.vision.is_some();
    let by_default = match inputs.model.model_type.as_str() {
        "qwen2_vl" | "qwen2_5_vl" => 10_000,
        "gemma3" => 8000,
        _ => 4096,
    };
    let optimal = match (known, &sizes) {
        (Some((_, tera)), Some(sizes)) if !vision => {
            let operations = u128::from(*tera) * 1_000_000_000_000 * devices;
            operations / sizes.operations().max(1)
        }
        _ => 0,
    };
    let mut tokens = if optimal > 100 { u64::try_from(optimal).unwrap_or(u64::MAX) } else { by_default };
    if inputs.model.max_position_embeddings > 0 {
        tokens = tokens.min(inputs.model.max_position_embeddings);
    }
    let quantised = effective_quantization(inputs.model, inputs.weights).quantization.is_some();
    if let (Some(sizes), Some(gpu), false) = (&sizes, inputs.device.gpu, quantised) {
        let available = gpu.smi_total_mib as f64 * f64::from(1 << 20) * devices as f64 * share * 0.95;
        let (token, model) = sizes.bytes();
        // Where the model is larger than that, the launcher only warns.
        if let Some(left) = (available as u128).checked_sub(model) {
            tokens = tokens.min(u64::try_from(left / token.max(1)).unwrap_or(u64::MAX));
        }
    }
    tokens.max(1)
}
