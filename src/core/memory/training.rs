//! States of training in bytes per parameter: optimizers' constants, ZeRO's shares, and the rules that other
//! estimators publish.

use crate::units::{Bytes, Overflow};

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

/// Bytes per parameter of each kind of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerParameter {
    /// Parameters that the model computes with.
    pub weights: u64,
    /// Gradients.
    pub gradients: u64,
    /// Master weights and moments.
    pub optimizer: u64,
}

impl PerParameter {
    /// 16-bit parameters and gradients, fp32 master weights and two moments: the 16 bytes of the ZeRO paper.
    pub const MIXED_ADAM: PerParameter = PerParameter { weights: 2, gradients: 2, optimizer: 12 };
}

/// Model states on one of z data-parallel devices, in bytes.
///
/// Formula: N · (w / z₃ + g / z₂ + o / z₁), with z₁ = z from stage 1 on, z₂ from stage 2, z₃ at stage 3, else 1;
/// each share rounded up to a whole parameter.
/// Symbols: N parameters, w, g, o bytes per parameter of weights, gradients, optimizer; z devices.
/// Excludes: buckets, gathered layers, padding of single tensors, activations.
/// Accuracy: exact for the states themselves; what is gathered for a while comes on top.
/// Source: arXiv 1910.02054, section 5 and figure 1.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::training::{PerParameter, zero_states_bytes}, units::Bytes};
/// let mixed = PerParameter::MIXED_ADAM;
/// // 7.5 billion parameters on 64 devices: 120, 31.4, 16.6 and 1.9 GB.
/// assert_eq!(zero_states_bytes(7_500_000_000, 64, 0, mixed), Ok(Bytes(120_000_000_000)));
/// assert_eq!(zero_states_bytes(7_500_000_000, 64, 3, mixed), Ok(Bytes(1_875_000_000)));
/// ```
///
/// Errors: more than 64 bits.
pub fn zero_states_bytes(n: u64, z: u64, stage: u64, b: PerParameter) -> Result<Bytes, Overflow> {
    let share = |from: u64| if stage >= from { n.div_ceil(z.max(1)) } else { n };
    Bytes::sum([
        Bytes::product(&[share(3), b.weights])?,
        Bytes::product(&[share(2), b.gradients])?,
        Bytes::product(&[share(1), b.optimizer])?,
    ])
}

/// Buckets in which ZeRO 1 and 2 reduce gradients, in bytes.
///
/// Formula: k · E · e, with k = 2 where communication overlaps with backward, else 1.
/// Symbols: E elements of a bucket (`reduce_bucket_size`), e bytes of a gradient's element.
/// Accuracy: the buffers; a single gradient larger than a bucket is reduced by itself.
/// Source: deepspeed `runtime/zero/stage_1_and_2.py`, `ipg_buffer` (two with `overlap_comm`).
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::training::reduce_buckets_bytes, units::Bytes};
/// // The default of 5e8 elements in 16 bits, overlapped: 2 GB whatever the model.
/// assert_eq!(reduce_buckets_bytes(500_000_000, 2, true), Ok(Bytes(2_000_000_000)));
/// ```
///
/// Errors: more than 64 bits.
pub fn reduce_buckets_bytes(elements: u64, e: u64, overlap: bool) -> Result<Bytes, Overflow> {
    Bytes::product(&[if overlap { 2 } else { 1 }, elements, e])
}

/// What DeepSpeed's own estimator answers for a device under ZeRO 2, in bytes.
///
/// Formula: 2 · N + 18 · N / z; 2 · N with the optimizer offloaded.
/// Symbols: N parameters, z devices.
/// Excludes: activations and buckets.
/// Accuracy: as the code; its documentation says 4 · N + 16 · N / z, which leaves gradients unsharded and has no
/// fp32 gradients.
/// Source: deepspeed `runtime/zero/stage_1_and_2.py`, `estimate_zero2_model_states_mem_needs`.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::training::deepspeed_zero2_bytes, units::Bytes};
/// assert_eq!(deepspeed_zero2_bytes(8_000_000_000, 8, false), Ok(Bytes(34_000_000_000)));
/// ```
///
/// Errors: more than 64 bits.
pub fn deepspeed_zero2_bytes(n: u64, z: u64, offload: bool) -> Result<Bytes, Overflow> {
    let weights = Bytes::product(&[2, n])?;
    if offload {
        return Ok(weights);
    }
    weights.add(Bytes(Bytes::product(&[18, n])?.0 / z.max(1)))
}

/// What DeepSpeed's own estimator answers for a device under ZeRO 3, in bytes.
///
/// Formula: 4 · M + 18 · N / z; the optimizer offloaded 4 · M + 2 · N / z; the parameters as well 4 · M.
/// Symbols: N parameters, M parameters of the largest module, z devices.
/// Excludes: activations, buckets, prefetched and live parameters.
/// Accuracy: as the code; the gathered layers are really bounded by `stage3_max_live_parameters` and the prefetch
/// bucket, not by the largest module.
/// Source: deepspeed `runtime/zero/stage3.py`, `estimate_zero3_model_states_mem_needs`.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::training::deepspeed_zero3_bytes, units::Bytes};
/// let all = deepspeed_zero3_bytes(8_000_000_000, 525_000_000, 8, false, false);
/// assert_eq!(all, Ok(Bytes(20_100_000_000)));
/// ```
///
/// Errors: more than 64 bits.
pub fn deepspeed_zero3_bytes(
    n: u64,
    largest: u64,
    z: u64,
    offload_optimizer: bool,
    offload_params: bool,
) -> Result<Bytes, Overflow> {
    let per_parameter = match (offload_optimizer, offload_params) {
        (true, true) => 0,
        (true, false) => 2,
        (false, _) => 18,
    };
    let share = Bytes::product(&[per_parameter, n])?.0 / z.max(1);
    Bytes::product(&[4, largest])?.add(Bytes(share))
}

/// What Megatron's theoretical report counts for weights and optimizer of a device, in bytes.
///
/// Formula: 18 · N, or with the distributed optimizer 6 · N + 12 · N / z.
/// Symbols: N parameters of the device, z data-parallel devices.
/// Includes: 16-bit parameters (2), fp32 gradients (4), fp32 master weights (4) and two moments (8).
/// Accuracy: exact for `bf16-master`.
/// Source: Megatron-LM `megatron/training/theoretical_memory_usage.py`, `compute_weight_and_optimizer_memory`.
///
/// Example:
/// ```
/// use oom_ledger_core::{memory::training::megatron_states_bytes, units::Bytes};
/// assert_eq!(megatron_states_bytes(1_000_000_000, 1, false), Ok(Bytes(18_000_000_000)));
/// assert_eq!(megatron_states_bytes(1_000_000_000, 8, true), Ok(Bytes(7_500_000_000)));
/// ```
///
/// Errors: more than 64 bits.
pub fn megatron_states_bytes(n: u64, z: u64, distributed: bool) -> Result<Bytes, Overflow> {
    if !distributed {
        return Bytes::product(&[18, n]);
    }
    Bytes::product(&[6, n])?.add(Bytes(Bytes::product(&[12, n])?.0 / z.max(1)))
}
