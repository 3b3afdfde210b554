//! What JAX, XLA and TensorFlow print.
//!
//! Sources: `xla/service/gpu`, `xla/pjrt` (`RESOURCE_EXHAUSTED`), `xla/tsl/framework/bfc_allocator.cc`
//! (`AllocateRawInternal`), `xla/stream_executor/cuda/cuda_executor.cc`; github.com/openxla/xla.

use crate::evidence::number::Unit::{Binary, Bytes, Count};
use crate::evidence::rule::{Rule, Take};

const FROM: &[Take] = &[Take::before("tried_to_allocate", ") from device:", Bytes)];

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("Out of memory while trying to allocate").kind("xla_resource_exhausted").reach(900).takes(&[
        Take::after("tried_to_allocate", "", Bytes),
        Take::after("required_full", "total allocation:", Binary),
    ]),
    Rule::new("RESOURCE_EXHAUSTED: Out of memory")
        .unless(&["Out of memory while trying to allocate"])
        .kind("xla_resource_exhausted")
        .reach(300)
        .takes(&[Take::after("tried_to_allocate", "allocating", Bytes)]),
    Rule::new("RESOURCE_EXHAUSTED: Failed to allocate request for")
        .kind("xla_resource_exhausted")
        .reach(160)
        .takes(&[
            Take::before("tried_to_allocate", ") on device", Binary),
            Take::after("device", "device ordinal", Count),
        ]),
    Rule::new("RESOURCE_EXHAUSTED:")
        .unless(&["Out of memory", "RESOURCE_EXHAUSTED: Failed to allocate request"])
        .needs(&["allocat"])
        .kind("xla_resource_exhausted")
        .reach(200)
        .takes(&[Take::after("tried_to_allocate", "allocate", Bytes)]),
    Rule::new("ran out of memory trying to allocate")
        .unless(&["not a failure"])
        .kind("xla_resource_exhausted")
        .reach(300)
        .takes(&[
            Take::after("tried_to_allocate", "(rounded to", Bytes),
            Take::after("tried_to_allocate", "trying to allocate", Binary),
        ]),
    Rule::new("from device: CUDA_ERROR_OUT_OF_MEMORY")
        .back(24)
        .kind("xla_resource_exhausted")
        .reach(40)
        .takes(FROM),
    Rule::new("from device: HIP_ERROR_OutOfMemory")
        .back(24)
        .kind("xla_resource_exhausted")
        .reach(40)
        .takes(FROM),
    Rule::new("OOM when allocating tensor with shape").kind("tensorflow_oom").reach(200),
];
