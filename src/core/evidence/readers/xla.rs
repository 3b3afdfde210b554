//! What JAX, XLA and TensorFlow print.
//!
//! Sources: `xla/service/gpu`, `xla/pjrt` (`RESOURCE_EXHAUSTED`), `xla/tsl/framework/bfc_allocator.cc`
//! (`AllocateRawInternal`), `xla/stream_executor/cuda/cuda_executor.cc`; github.com/openxla/xla.

use crate::evidence::number::Unit::{Binary, Bytes, Count};
use crate::evidence::rule::{Rule, Take};

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("RESOURCE_EXHAUSTED: Out of memory").kind("xla_resource_exhausted").reach(900).takes(&[
        Take::after("tried_to_allocate", "trying to allocate", Bytes),
        Take::after("tried_to_allocate", "allocating", Bytes),
        Take::after("required_full", "total allocation:", Binary),
        Take::after("required_full", "Used", Binary),
        Take::before("total_capacity", "hbm.", Binary),
    ]),
    Rule::new("RESOURCE_EXHAUSTED: Failed to allocate request for")
        .kind("xla_resource_exhausted")
        .reach(160)
        .takes(&[
            Take::before("tried_to_allocate", ") on device", Binary),
            Take::after("device", "device ordinal", Count),
        ]),
    Rule::new("RESOURCE_EXHAUSTED:")
        .unless(&["RESOURCE_EXHAUSTED: Out of memory", "RESOURCE_EXHAUSTED: Failed to allocate request"])
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
        .kind("cuda_error_oom")
        .unless(&["not a failure"])
        .reach(120),
    Rule::new("failed to allocate")
        .needs(&["from device: CUDA_ERROR_OUT_OF_MEMORY"])
        .reach(80)
        .takes(&[Take::before("tried_to_allocate", ") from device", Bytes)]),
    Rule::new("OOM when allocating tensor with shape").kind("tensorflow_oom").reach(200),
];
