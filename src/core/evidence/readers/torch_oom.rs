//! What PyTorch's allocators say when they find no memory, from 0.x to today, on every device.
//!
//! Sources: `c10/cuda/CUDACachingAllocator.cpp` (`DeviceCachingAllocator::malloc`),
//! `c10/cuda/CUDAMallocAsyncAllocator.cpp` (`mallocAsync`), `aten/src/ATen/mps/MPSAllocator.mm`
//! (`malloc`), torch_npu `NPUCachingAllocator.cpp`, at the releases named.

use crate::evidence::fact::Figure;
use crate::evidence::found::Found;
use crate::evidence::number::Unit::{Binary, Bytes, Count};
use crate::evidence::rule::{Rule, Take};
use crate::evidence::window::Window;
use crate::units::Message;

/// How far a report of the allocator reaches with a dozen neighbours and both hints.
const REPORT: usize = 2400;

/// 1.0 to 2.0: figures in one bracket.
const IN_BRACKETS: &[Take] = &[
    Take::before("total_capacity", "total capacity", Binary),
    Take::before("allocated_by_pytorch", "already allocated", Binary),
    Take::before("free", "free;", Binary),
    Take::before("allowed", "allowed;", Binary),
    Take::before("reserved_total", "reserved in total by PyTorch", Binary),
    Take::before("reserved_unallocated", "cached)", Binary),
    Take::before("reserved_unallocated", "cached;", Binary),
];

/// 2.1 on: sentences.
const IN_SENTENCES: &[Take] = &[
    Take::after("total_capacity", "has a total capacity of", Binary),
    Take::after("total_capacity", "has a total capacty of", Binary),
    Take::before("free", "is free.", Binary),
    Take::before("allowed", "allowed; Of the allocated", Binary),
    Take::after("allocated_by_pytorch", "Of the allocated memory", Binary),
    Take::before("private_pools", "allocated in private pools", Binary),
    Take::before("reserved_unallocated", "is reserved by PyTorch but unallocated", Binary),
];

const ASYNC: &[Take] = &[
    Take::after("allocated_by_pytorch", "Currently allocated :", Binary),
    Take::after("tried_to_allocate", "Requested :", Binary),
    Take::after("total_capacity", "Device limit :", Binary),
    Take::after("free", "Free (according to CUDA):", Binary),
    Take::after("allowed", "user-supplied memory fraction) :", Binary),
    Take::after("device", "Allocation on device", Count),
];

const MPS: &[Take] = &[
    Take::after("allocated_by_pytorch", "MPS allocated:", Binary),
    Take::after("other_allocations", "other allocations:", Binary),
    Take::after("allowed", "max allowed:", Binary),
    Take::after("tried_to_allocate", "Tried to allocate", Binary),
];

/// Messages of the allocators.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("out of memory. Tried to allocate")
        .kind("torch_oom")
        .reach(REPORT)
        .unless(&["MPS backend out of memory"])
        .more(report),
    Rule::new("MPS backend out of memory").kind("backend_oom").takes(MPS),
    Rule::new("would exceed allowed memory. (out of memory)").kind("torch_oom").takes(ASYNC),
    Rule::new("memory allocation failed with OOM on device").kind("torch_oom").takes(&[
        Take::after("device", "OOM on device", Count),
        Take::after("tried_to_allocate", "while trying to allocate", Bytes),
        Take::after("free", "(free:", Bytes),
        Take::after("total_capacity", "total:", Bytes),
    ]),
    Rule::new("NVML_SUCCESS == r INTERNAL ASSERT FAILED").kind("nvml_assert"),
    Rule::new("NVML_SUCCESS == DriverAPI::get()->nvml")
        .kind("nvml_assert")
        .needs(&["INTERNAL ASSERT FAILED"]),
    Rule::new("cuda runtime error (2) : out of memory").kind("thc_oom"),
    Rule::new("error=2 : out of memory").kind("thc_oom"),
    Rule::new("DefaultCPUAllocator: can't allocate memory: you tried to allocate")
        .kind("host_alloc_failed")
        .takes(&[Take::after("host_needed", "you tried to allocate", Bytes)]),
    Rule::new("DefaultCPUAllocator: not enough memory: you tried to allocate")
        .kind("host_alloc_failed")
        .takes(&[Take::after("host_needed", "you tried to allocate", Bytes)]),
];

/// A report of the caching allocator: brackets or sentences, CUDA, HIP or another device.
fn report(window: &Window, found: &mut Found) {
    let end = window.len();
    let (_, head) = window.find("Tried to allocate", 0, end).unwrap_or((0, 0));
    if window.has("more than 1EB memory", head, head + 30) {
        found.set_kind("torch_size_bug");
    } else if let Some((figure, _)) = window.figure(head, Binary) {
        found.fact(window, head, "tried_to_allocate", figure);
    }
    let brackets = window.has("total capacity;", 0, end.min(head + 120));
    if brackets {
        found.set_kind("torch_oom_legacy");
        // A bracket closes with the last figure.
        let close = window.find(")", head, end).map_or(end, |(_, e)| e);
        take(IN_BRACKETS, window, close, found);
    } else {
        take(IN_SENTENCES, window, end, found);
        processes(window, found);
    }
    for marker in ["GPU", "NPU", "XPU"] {
        let at = window.find(marker, head, end.min(head + 60));
        if let Some((Figure::Count(device), _)) = at.and_then(|(_, e)| window.figure(e, Count)) {
            found.device(u32::try_from(device).ok());
            break;
        }
    }
    if window.has("NPU", head, head + 60) || window.has("XPU", head, head + 60) {
        found.set_kind("backend_oom");
    }
}

fn take(takes: &[Take], window: &Window, end: usize, found: &mut Found) {
    for one in takes {
        if let Some((figure, at)) = one.read_within(window, end) {
            found.fact(window, at, one.key, figure);
        }
    }
}

/// The sentences about processes. NVML counts by process id: in a container the own process may be listed as
/// another one, or as "0 bytes", or as a figure above the device's total.
fn processes(window: &Window, found: &mut Found) {
    let end = window.len();
    let total = found.message_bytes("total_capacity");
    let sane = |bytes: i64| bytes > 0 && total.is_none_or(|total| bytes <= total);
    let own = window
        .find("this process has", 0, end)
        .and_then(|(at, e)| window.figure(e, Binary).map(|(figure, _)| (at, figure)));
    let mut own_known = false;
    if let Some((at, Figure::Bytes(bytes))) = own {
        if sane(bytes) {
            found.fact(window, at, "this_process", Figure::Bytes(bytes));
            own_known = true;
        } else {
            found
                .warnings
                .push(Message::new("evidence.warn.process_unknown").with("line", u64::from(window.line(at))));
        }
    }
    let mut listed: Vec<(usize, i64)> = Vec::new();
    let mut from = 0;
    while let Some((_, id)) = window.find("Process", from, end) {
        from = id;
        let figure = match window.figure(id, Count) {
            Some((Figure::Count(_), number)) if window.has("has", number, number + 3) => {
                window.figure(number + 3, Binary)
            }
            _ => None,
        };
        if let Some((Figure::Bytes(bytes), _)) = figure
            && sane(bytes)
        {
            listed.push((id, bytes));
        }
    }
    if !own_known && let Some(own) = own_among(&listed, found) {
        let (at, bytes) = listed.remove(own);
        found.fact(window, at, "this_process", Figure::Bytes(bytes));
    }
    if let Some((at, _)) = listed.first() {
        let sum = listed.iter().fold(0i64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        found.fact(window, *at, "other_processes", Figure::Bytes(sum));
    }
}

/// Which of the listed processes must be the own one: the listed ones and what this process reserved cannot all
/// have been on the device at once, and only one of them is large enough to hold that reserve.
fn own_among(listed: &[(usize, i64)], found: &Found) -> Option<usize> {
    let reserved = found
        .message_bytes("allocated_by_pytorch")?
        .saturating_add(found.message_bytes("reserved_unallocated").unwrap_or(0));
    let used = found.message_bytes("total_capacity")?.saturating_sub(found.message_bytes("free")?);
    let sum = listed.iter().fold(0i64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let mut large = listed.iter().enumerate().filter(|(_, (_, bytes))| *bytes >= reserved);
    let (first, _) = large.next()?;
    (large.next().is_none() && sum.saturating_add(reserved) > used).then_some(first)
}
