//! What LMDeploy (TurboMind and the PyTorch engine) prints.
//!
//! Sources: `src/turbomind/models/llama/BlockManager.cc`, `src/turbomind/models/llama/SequenceManager.cc`,
//! `src/turbomind/utils/cuda_utils.h` (`check`), `lmdeploy/pytorch/engine/executor/base.py`; github.com/InternLM/lmdeploy.

use crate::evidence::number::Unit::{Binary, Count, Real};
use crate::evidence::rule::{Rule, Take};

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("lmdeploy")
}

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    rule("[TM][ERROR] CUDA runtime error: out of memory").kind("lmdeploy_oom").reach(120),
    rule("CUDA runtime error: out of memory").needs(&["turbomind"]).kind("lmdeploy_oom").reach(200),
    rule("[BlockManager] block_size =").reach(40).takes(&[Take::after("block_bytes", "", Binary)]),
    rule("[BlockManager] max_block_count =").reach(40).takes(&[Take::after("blocks", "", Count)]),
    rule("max cached tokens:").reach(30).takes(&[Take::after("kv_tokens", "", Count)]),
    rule("No enough blocks for session_len").reach(120).takes(&[
        Take::after("max_model_len", "session_len (", Count),
        Take::after("estimated_max_model_len", "truncated to max k/v cache token (", Count),
        Take::after("estimated_max_model_len", "truncated to ", Count),
    ]),
    rule("[TM][INFO] cache_max_entry_count").reach(20).takes(&[Take::after(
        "free_gpu_memory_fraction",
        "",
        Real,
    )]),
];
