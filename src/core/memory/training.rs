//! States of optimizers: what each keeps for a parameter, and from which size on.

/// Elements that one scale of an 8-bit optimizer's state covers.
///
/// bitsandbytes `Optimizer2State.init_state` with `block_wise`: 256 since release 0.44, 2048 before.
pub const EIGHT_BIT_BLOCK: u64 = 256;

/// Bytes of the two tables that an 8-bit optimizer's states are looked up in: 256 fp32 entries each (`fill_qmap`).
pub const EIGHT_BIT_MAPS: u64 = 2 * 256 * 4;

/// Tensors of fewer elements keep fp32 states under an 8-bit optimizer (`min_8bit_size`).
pub const EIGHT_BIT_MINIMUM: u64 = 4096;

/// Tensors of fewer elements are not paged (`get_state_buffer`).
pub const PAGED_MINIMUM: u64 = 100_000;
