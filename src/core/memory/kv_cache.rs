//! Keys, values and latents of past tokens: bytes of one token in one layer, and how many tokens a layer keeps.

use crate::model::{AttentionKind, DType, KvDType};
use crate::units::{Bytes, Overflow, Problem};

/// Every KV number format, by the ids that engines accept. `auto` is not a row: it means the dtype of the weights.
///
/// ggml's block formats store 32 elements with one 16-bit scale (`q4_1`, `q5_1`: and one minimum); `nvfp4` stores
/// 16 elements with one fp8 scale; `fp8_ds_mla` is a whole latent row (see [`DS_MLA_ROW`]).
pub const KV_DTYPES: &[KvDType] = &[
    row("fp32", 1, 4),
    row("float32", 1, 4),
    row("f32", 1, 4),
    row("fp16", 1, 2),
    row("float16", 1, 2),
    row("half", 1, 2),
    row("f16", 1, 2),
    row("bf16", 1, 2),
    row("bfloat16", 1, 2),
    row("fp8", 1, 1),
    row("fp8_e4m3", 1, 1),
    row("fp8_e5m2", 1, 1),
    row("fp8_inc", 1, 1),
    row("int8", 1, 1),
    row("int4", 2, 1),
    row("q8_0", 32, 34),
    row("q5_1", 32, 24),
    row("q5_0", 32, 22),
    row("q4_1", 32, 20),
    row("q4_0", 32, 18),
    row("iq4_nl", 32, 18),
    row("nvfp4", 16, 9),
    row(DS_MLA, 1, 1),
];

const DS_MLA: &str = "fp8_ds_mla";

/// Bytes of one latent row under `fp8_ds_mla`: 512 fp8 elements, four fp32 scales, 64 rotary elements in bf16.
pub const DS_MLA_ROW: u64 = 512 + 4 * 4 + 64 * 2;

const fn row(id: &'static str, elements: u64, bytes: u64) -> KvDType {
    KvDType { id, elements, bytes }
}

/// The number format that `id` names; `auto` (and an empty text) is the dtype of the weights.
///
/// Formula: table look-up.
/// Accuracy: exact.
/// Source: vLLM `--kv-cache-dtype`, llama.cpp `--cache-type-k`; block sizes of ggml (`ggml-common.h`).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::kv_cache::kv_dtype;
/// use oom_ledger_core::model::DType;
/// assert_eq!(kv_dtype("q8_0", DType::Bf16).unwrap().bytes, 34);
/// assert_eq!(kv_dtype("auto", DType::Fp32).unwrap().bytes, 4);
/// assert!(kv_dtype("fp7", DType::Bf16).is_err());
/// ```
///
/// Errors: names the ids that are accepted.
pub fn kv_dtype(id: &str, weights: DType) -> Result<KvDType, Problem> {
    let wanted = id.trim().to_ascii_lowercase();
    let wanted = match wanted.as_str() {
        "auto" | "" => weights.id(),
        other => other,
    };
    KV_DTYPES.iter().copied().find(|d| d.id == wanted).ok_or_else(|| {
        let ids: Vec<_> = KV_DTYPES.iter().map(|d| d.id).collect();
        Problem::not_accepted("job.serve.kv_cache_dtype", id, format!("auto, {}", ids.join(", ")))
    })
}

/// KV heads that one tensor-parallel rank holds: at least one, since a head is not split but replicated.
///
/// Formula: `max(1, ceil(H_kv / t))`.
/// Accuracy: exact.
/// Source: `get_num_kv_heads` of vLLM (`vllm/config/model.py`).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::kv_cache::heads_per_rank;
/// assert_eq!(heads_per_rank(8, 2), 4);
/// assert_eq!(heads_per_rank(4, 8), 1); // replicated twice
/// ```
pub fn heads_per_rank(kv_heads: u64, tensor: u64) -> u64 {
    kv_heads.div_ceil(tensor.max(1)).max(1)
}

/// Bytes that one token adds to one layer's cache on one rank; zero for layers without one.
///
/// Formula: `heads per rank · (D_k + D_v) · e`; MLA: `(kv_lora_rank + qk_rope_head_dim) · e`, whole on every rank.
/// Symbols: e bytes per element of `dtype`; a block format rounds every row (one head) up to whole blocks.
/// Accuracy: exact.
/// Source: cache shapes of vLLM (`AttentionSpec`, `MLAAttentionSpec` in `vllm/v1/kv_cache_interface.py`) and of
/// transformers (`cache_utils.py`).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::kv_cache::{bytes_per_token, kv_dtype};
/// use oom_ledger_core::model::{AttentionKind, DType};
/// let bf16 = kv_dtype("auto", DType::Bf16).unwrap();
/// let gqa = AttentionKind::Full { heads: 32, kv_heads: 8, head_dim: 128, v_head_dim: 128 };
/// assert_eq!(bytes_per_token(&gqa, bf16, 1), Ok(4096));
/// let mla = AttentionKind::Mla { heads: 128, q_lora_rank: 1536, kv_lora_rank: 512, qk_nope_head_dim: 128,
///     qk_rope_head_dim: 64, v_head_dim: 128 };
/// assert_eq!(bytes_per_token(&mla, bf16, 8), Ok(1152));
/// ```
pub fn bytes_per_token(kind: &AttentionKind, dtype: KvDType, tensor: u64) -> Result<u64, Overflow> {
    match *kind {
        AttentionKind::Full { kv_heads, head_dim, v_head_dim, .. }
        | AttentionKind::Sliding { kv_heads, head_dim, v_head_dim, .. } => {
            let row = Bytes(row_bytes(head_dim, dtype)?).add(Bytes(row_bytes(v_head_dim, dtype)?))?;
            Ok(row.times(heads_per_rank(kv_heads, tensor))?.0)
        }
        AttentionKind::Chunked { kv_heads, head_dim, .. } => {
            Ok(Bytes::product(&[2, heads_per_rank(kv_heads, tensor), row_bytes(head_dim, dtype)?])?.0)
        }
        AttentionKind::Mla { kv_lora_rank, qk_rope_head_dim, .. } => {
            let width = kv_lora_rank.checked_add(qk_rope_head_dim).ok_or(Overflow)?;
            if dtype.id == DS_MLA && width == 576 { Ok(DS_MLA_ROW) } else { row_bytes(width, dtype) }
        }
        AttentionKind::Recurrent(_) | AttentionKind::None => Ok(0),
    }
}

/// Bytes of `elements` stored in whole blocks of `dtype`.
fn row_bytes(elements: u64, dtype: KvDType) -> Result<u64, Overflow> {
    Ok(Bytes::product(&[elements.div_ceil(dtype.elements), dtype.bytes])?.0)
}

/// Most tokens that a layer needs to keep after `tokens`, as the mechanism itself asks: all, the window less the
/// token being computed, or the tokens of the current chunk. Engines may keep more.
///
/// Formula: full `T`; sliding `min(T, window - 1)`; chunked `min(T, chunk - 1)`; recurrent 0.
/// Accuracy: exact for transformers' sliding layers after a step; a lower bound for paged engines.
/// Source: `DynamicSlidingWindowLayer` of transformers (`cache_utils.py`).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::kv_cache::tokens_kept;
/// use oom_ledger_core::model::AttentionKind;
/// let window = AttentionKind::Sliding { heads: 32, kv_heads: 8, head_dim: 128, v_head_dim: 128, window: 4096 };
/// assert_eq!(tokens_kept(&window, 1000), 1000);
/// assert_eq!(tokens_kept(&window, 32_768), 4095);
/// ```
pub fn tokens_kept(kind: &AttentionKind, tokens: u64) -> u64 {
    match *kind {
        AttentionKind::Full { .. } | AttentionKind::Mla { .. } => tokens,
        AttentionKind::Sliding { window, .. } => tokens.min(window.saturating_sub(1)),
        AttentionKind::Chunked { chunk, .. } => tokens.min(chunk.saturating_sub(1)),
        AttentionKind::Recurrent(_) | AttentionKind::None => 0,
    }
}

/// Bytes that one layer's cross-attention keeps for `encoder_tokens` of one sequence on one rank: keys and values
/// of the encoder's output, computed once, not growing with the answer.
///
/// Formula: `bytes per token of the layer · encoder tokens`.
/// Accuracy: exact where cross-attention has the heads of the layer's self-attention (T5, BART, Whisper).
/// Source: `EncoderDecoderCache` of transformers, `CrossAttentionSpec` of vLLM.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::kv_cache::{cross_attention_bytes, kv_dtype};
/// use oom_ledger_core::model::{AttentionKind, DType};
/// let fp16 = kv_dtype("fp16", DType::Bf16).unwrap();
/// let whisper = AttentionKind::Full { heads: 20, kv_heads: 20, head_dim: 64, v_head_dim: 64 };
/// assert_eq!(cross_attention_bytes(&whisper, fp16, 1, 1500), Ok(1500 * 2 * 20 * 64 * 2));
/// ```
pub fn cross_attention_bytes(
    kind: &AttentionKind,
    dtype: KvDType,
    tensor: u64,
    encoder_tokens: u64,
) -> Result<u64, Overflow> {
    Ok(Bytes(bytes_per_token(kind, dtype, tensor)?).times(encoder_tokens)?.0)
}
