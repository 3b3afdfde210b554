//! Closed forms of the four stages that decide most peaks of a transformers forward pass: what the stage itself
//! holds, beside weights, cache and residual stream. `engines::transformers` walks every operator; these are
//! for the explainer and for a check by hand.

use crate::units::{Bytes, Overflow};

/// Logits of the kept positions, in bytes.
///
/// Formula: c · B · n · V · e, with c = 2 where logits are soft-capped (a new tensor beside the old), else 1.
/// Symbols: B sequences, n positions kept per sequence, V vocabulary, e bytes per element.
/// Excludes: the last hidden state, B · T · d · e, alive beside them.
/// Accuracy: exact; transformers keeps logits in the model's dtype.
/// Source: transformers 5.24 `*ForCausalLM.forward`; traced.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::hf_forward::logits_bytes, units::Bytes};
/// // Llama 3.1 8B, 2048 positions, bf16: 501 MiB.
/// assert_eq!(logits_bytes(1, 2048, 128_256, 2, false), Ok(Bytes(525_336_576)));
/// ```
///
/// Errors: more than 64 bits.
pub fn logits_bytes(b: u64, n: u64, v: u64, e: u64, softcapped: bool) -> Result<Bytes, Overflow> {
    Bytes::product(&[if softcapped { 2 } else { 1 }, b, n, v, e])
}

/// Scores of eager attention around softmax, in bytes, mask included.
///
/// Formula: B · H · q · k · (e + 4 + c) + B · q · k · e, with c = 4 in bf16 (the fp32 copy that softmax reads)
/// and 2 in fp16 (softmax reads half precision itself; the peak comes when its output is cast back).
/// Symbols: B sequences, H query heads, q query tokens, k tokens seen, e bytes per element (2).
/// Excludes: repeated K and V.
/// Accuracy: exact for classes with softmax in fp32; not for Falcon, MPT and gpt-oss.
/// Source: transformers 5.24 `eager_attention_forward`; ATen `half_to_float`; traced.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::hf_forward::eager_scores_bytes, units::Bytes};
/// // Llama 3.1 8B at 2048 tokens in bf16: 1.26 GiB of scores.
/// assert_eq!(eager_scores_bytes(1, 32, 2048, 2048, false), Ok(Bytes(1_350_565_888)));
/// ```
///
/// Errors: more than 64 bits.
pub fn eager_scores_bytes(b: u64, heads: u64, q: u64, k: u64, fp16: bool) -> Result<Bytes, Overflow> {
    let per_score = if fp16 { 2 + 4 + 2 } else { 2 + 4 + 4 };
    Bytes::product(&[b, heads, q, k, per_score])?.add(Bytes::product(&[b, q, k, 2])?)
}

/// Widest moment of a dense feed-forward, in bytes.
///
/// Formula: m · B · T · d_ff · e, with m = 3 gated (activated gate, up, product), 4 gated with one fused matrix
/// (its output is 2 · d_ff wide and stays), 2 plain.
/// Symbols: B sequences, T tokens, d_ff intermediate width, e bytes per element.
/// Accuracy: exact.
/// Source: transformers 5.24 `*MLP.forward`; traced.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::hf_forward::feed_forward_bytes, units::Bytes};
/// assert_eq!(feed_forward_bytes(1, 2048, 14_336, 2, 3), Ok(Bytes(176_160_768)));
/// ```
///
/// Errors: more than 64 bits.
pub fn feed_forward_bytes(b: u64, t: u64, d_ff: u64, e: u64, tensors: u64) -> Result<Bytes, Overflow> {
    Bytes::product(&[tensors, b, t, d_ff, e])
}

/// Widest moment of combining routed experts, in bytes.
///
/// Formula: B · T · k · d · (2 · e + 2 · c): gathered input and expert output, then weighted and put back in
/// order.
/// Symbols: B sequences, T tokens, k experts per token, d hidden size, e bytes per element, c bytes of an
/// element while combining (4 where routing weights stay fp32, as in Mixtral and DeepSeek).
/// Excludes: indices (28 bytes per pick) and the sum itself.
/// Accuracy: exact for experts run as one grouped product, the default since transformers 5.
/// Source: transformers 5.24 `integrations/moe.py`; traced.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::hf_forward::expert_combine_bytes, units::Bytes};
/// assert_eq!(expert_combine_bytes(1, 8192, 8, 2048, 2, 2), Ok(Bytes(1 << 30)));
/// ```
///
/// Errors: more than 64 bits.
pub fn expert_combine_bytes(b: u64, t: u64, k: u64, d: u64, e: u64, c: u64) -> Result<Bytes, Overflow> {
    let each = Bytes(e).times(2)?.add(Bytes(c).times(2)?)?;
    Bytes::product(&[b, t, k, d, each.0])
}
