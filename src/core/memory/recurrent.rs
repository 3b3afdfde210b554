//! Constant state of recurrent layers: Mamba, Gated DeltaNet, lightning attention.

use super::kv_cache::heads_per_rank;
use crate::model::RecurrentState;
use crate::units::{Bytes, Overflow};

/// How an engine lays the state of one layer out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLayout {
    /// Columns of the convolution state.
    pub conv_columns: u64,
    /// Bytes per element of the convolution state.
    pub conv_element: u64,
    /// Bytes per element of the recurrent state.
    pub state_element: u64,
}

impl StateLayout {
    /// Layout of transformers: as many convolution columns as the kernel is wide.
    ///
    /// Formula: `conv_kernel` columns in the model's dtype; the state in its own.
    /// Accuracy: exact.
    /// Source: `LinearAttentionLayer` and the Mamba caches of transformers (`cache_utils.py`).
    ///
    /// Example:
    /// ```
    /// use oom_ledger_core::memory::recurrent::StateLayout;
    /// assert_eq!(StateLayout::transformers(4, 2, 4).conv_columns, 4);
    /// ```
    pub fn transformers(conv_kernel: u64, element: u64, state_element: u64) -> StateLayout {
        StateLayout { conv_columns: conv_kernel, conv_element: element, state_element }
    }

    /// Layout of vLLM: one convolution column less than the kernel is wide, one more per speculative token.
    ///
    /// Formula: `conv_kernel - 1 + speculative tokens` columns.
    /// Accuracy: exact; attention blocks of 784, 1568 and 1600 tokens of Qwen3.6-27B follow from it.
    /// Source: `MambaStateShapeCalculator` of vLLM (`vllm/model_executor/layers/mamba/mamba_utils.py`).
    ///
    /// Example:
    /// ```
    /// use oom_ledger_core::memory::recurrent::StateLayout;
    /// assert_eq!(StateLayout::vllm(4, 3, 2, 4).conv_columns, 6);
    /// ```
    pub fn vllm(conv_kernel: u64, speculative: u64, element: u64, state_element: u64) -> StateLayout {
        let conv_columns = conv_kernel.saturating_sub(1).saturating_add(speculative);
        StateLayout { conv_columns, conv_element: element, state_element }
    }
}

/// Bytes of the state of one layer and one sequence on one tensor-parallel rank.
///
/// Formula: `conv_dim / t · columns · e_conv + state_heads / t · state per head · e_state`.
/// Symbols: t tensor parallel degree; e bytes per element.
/// Accuracy: exact where t divides the heads; rounded up otherwise (engines refuse that).
/// Source: state shapes of transformers and vLLM, as for [`StateLayout`].
///
/// Example:
/// ```
/// use oom_ledger_core::memory::recurrent::{StateLayout, state_bytes};
/// use oom_ledger_core::model::RecurrentState;
/// let state = RecurrentState { mechanism: "gated_delta_net", conv_dim: 8192, conv_kernel: 4, state_heads: 32,
///     state_per_head: 128 * 128, state_dtype: None };
/// let bytes = state_bytes(&state, StateLayout::transformers(4, 2, 4), 1);
/// assert_eq!(bytes, Ok(2_162_688)); // Qwen3-Next, one layer, as transformers allocates it
/// ```
pub fn state_bytes(state: &RecurrentState, layout: StateLayout, tensor: u64) -> Result<u64, Overflow> {
    let conv_dim = state.conv_dim.div_ceil(tensor.max(1));
    let conv = Bytes::product(&[conv_dim, layout.conv_columns, layout.conv_element])?;
    let heads = if state.state_heads == 0 { 0 } else { heads_per_rank(state.state_heads, tensor) };
    Ok(conv.add(Bytes::product(&[heads, state.state_per_head, layout.state_element])?)?.0)
}
