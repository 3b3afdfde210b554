//! States of optimizers: what each keeps for a parameter, and from which size on.

/// Elements that one scale of an 8-bit optimizer's state covers.
///
/// bitsandbytes `Optimizer2State` with `block_wise`: `blocksize = 256` since 0.44 (2048 before).
pub const EIGHT_BIT_BLOCK: u64 = 256;

/// Tensors of fewer elements keep fp32 states under an 8-bit optimizer (`min_8bit_size`).
pub const EIGHT_BIT_MINIMUM: u64 = 4096;

/// Tensors of fewer elements are not paged (`get_state_buffer`).
pub const PAGED_MINIMUM: u64 = 100_000;
