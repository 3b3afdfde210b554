//! What training frameworks print about memory: DeepSpeed, Megatron, bitsandbytes, plain prints of PyTorch's counters.
//!
//! Sources: `deepspeed/runtime/utils.py` (`see_memory_usage`), `deepspeed/runtime/zero/stage3.py`,
//! `megatron/training/utils.py` (`report_memory`), `csrc/pythonInterface.cpp` (bitsandbytes).

use crate::evidence::number::Unit::{Binary, Bytes, Count, Gib, Mib};
use crate::evidence::rule::{Rule, Take};

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("Max_MA").back(24).needs(&["Max_CA"]).reach(60).one_line().takes(&[
        Take::before("allocated_by_pytorch", "Max_MA", Binary),
        Take::after("peak_allocated", "Max_MA", Binary),
        Take::before("reserved_total", "Max_CA", Binary),
        Take::after("peak_reserved", "Max_CA", Binary),
    ]),
    Rule::new("CPU Virtual Memory:").reach(60).takes(&[Take::after("host_used", "used =", Binary)]),
    Rule::new("pytorch allocator cache flushes since last step").kind("allocator_pressure").reach(60),
    Rule::new("memory (MB) | allocated:").reach(160).one_line().takes(&[
        Take::after("allocated_by_pytorch", "| allocated:", Mib),
        Take::after("peak_allocated", "| max allocated:", Mib),
        Take::after("reserved_total", "| reserved:", Mib),
        Take::after("peak_reserved", "| max reserved:", Mib),
    ]),
    Rule::new("Error out of memory at line").needs(&["pythonInterface"]).kind("bitsandbytes_oom").reach(160),
    Rule::new("torch.cuda.memory_allocated").reach(90).one_line().takes(&[
        Take::after("allocated_by_pytorch", "torch.cuda.memory_allocated:", Gib),
        Take::after("allocated_by_pytorch", "torch.cuda.memory_allocated():", Bytes),
        Take::after("allocated_by_pytorch", "torch.cuda.memory_allocated() =", Bytes),
    ]),
    Rule::new("torch.cuda.memory_reserved").reach(90).one_line().takes(&[
        Take::after("reserved_total", "torch.cuda.memory_reserved:", Gib),
        Take::after("reserved_total", "torch.cuda.memory_reserved():", Bytes),
        Take::after("reserved_total", "torch.cuda.memory_reserved() =", Bytes),
    ]),
    Rule::new("torch.cuda.max_memory_allocated").reach(90).one_line().takes(&[
        Take::after("peak_allocated", "torch.cuda.max_memory_allocated:", Gib),
        Take::after("peak_allocated", "torch.cuda.max_memory_allocated():", Bytes),
        Take::after("peak_allocated", "torch.cuda.max_memory_allocated() =", Bytes),
    ]),
    Rule::new("torch.cuda.max_memory_reserved").reach(90).one_line().takes(&[
        Take::after("peak_reserved", "torch.cuda.max_memory_reserved:", Gib),
        Take::after("peak_reserved", "torch.cuda.max_memory_reserved():", Bytes),
        Take::after("peak_reserved", "torch.cuda.max_memory_reserved() =", Bytes),
    ]),
    Rule::new("after").needs(&["iterations) memory (MB)"]).reach(60).one_line().takes(&[Take::after(
        "iteration",
        "(after",
        Count,
    )]),
];
