//! The memory snapshot that PyTorch writes (`torch.cuda.memory._dump_snapshot`): segments, blocks, the trace.
//!
//! Source: `torch/csrc/cuda/memory_snapshot.cpp` and `torch/cuda/memory.py` (`_snapshot`), 2.0 to 2.11.

use super::fact::Figure;
use super::found::Found;
use super::pickle::{Data, Fault, Item};
use crate::units::Message;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes that are alive, by the place in the program that asked for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// File, line and function of the innermost Python frame outside PyTorch; `unknown` where no frame was recorded.
    pub place: String,
    /// Bytes.
    pub bytes: i64,
    /// Blocks.
    pub blocks: u64,
}

/// The most places listed.
const HOLDERS: usize = 20;

/// Whether `bytes` look like a pickle of a protocol that PyTorch writes.
pub(crate) fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

#[derive(Default)]
struct Device {
    reserved: i64,
    allocated: i64,
    active: i64,
    private: i64,
    free: i64,
    largest: i64,
    segments: u64,
    live: u64,
}

/// Reads a snapshot into `found`; whether it was one.
pub(crate) fn snapshot(bytes: &[u8], found: &mut Found) -> bool {
    found.reader = "pytorch-snapshot";
    let data = match Data::read(bytes) {
        Ok(data) => data,
        Err(fault) => {
            found.warnings.push(match fault {
                Fault::Broken => Message::new("evidence.warn.pickle_broken"),
                Fault::TooLarge => Message::new("evidence.warn.pickle_too_large"),
                Fault::Refused(code) => {
                    Message::new("evidence.warn.pickle_refused").with("opcode", format!("0x{code:02x}"))
                }
            });
            return false;
        }
    };
    // Old dumps are the list of segments itself.
    let segments = data.get(data.root, "segments").unwrap_or(data.root);
    if data.list(segments).is_empty() || data.int(data.list(segments)[0], "total_size").is_none() {
        found.warnings.push(Message::new("evidence.warn.pickle_other"));
        return false;
    }
    let mut devices: BTreeMap<i64, Device> = BTreeMap::new();
    let mut holders: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    for segment in data.list(segments) {
        let device = devices.entry(data.int(*segment, "device").unwrap_or(0)).or_default();
        add_segment(&data, *segment, device, &mut holders);
    }
    found.evidence.holders = largest(holders);
    let traces = data.get(data.root, "device_traces");
    let mut full: Vec<(i64, Device)> = devices.into_iter().collect();
    // The fullest comes last and stands for the whole.
    full.sort_by_key(|(_, d)| d.reserved);
    for (index, device) in &full {
        let trace =
            traces.and_then(|t| usize::try_from(*index).ok().and_then(|i| data.list(t).get(i).copied()));
        report(&data, *index, device, trace, found);
    }
    true
}

fn add_segment(
    data: &Data<'_>,
    segment: Item,
    device: &mut Device,
    holders: &mut BTreeMap<String, (i64, u64)>,
) {
    let int = |key: &str| data.int(segment, key).unwrap_or(0).max(0);
    let private = data
        .get(segment, "segment_pool_id")
        .is_some_and(|id| data.list(id).iter().any(|part| *part != Item::Int(0)));
    device.segments += 1;
    device.reserved = device.reserved.saturating_add(int("total_size"));
    device.allocated = device.allocated.saturating_add(int("allocated_size"));
    device.active = device.active.saturating_add(int("active_size"));
    if private {
        device.private = device.private.saturating_add(int("allocated_size"));
    }
    for block in data.get(segment, "blocks").map_or(&[][..], |b| data.list(b)) {
        let size = data.int(*block, "size").unwrap_or(0).max(0);
        let state = data.get(*block, "state").and_then(|s| data.text(s)).unwrap_or_default();
        if state == "inactive" {
            device.free = device.free.saturating_add(size);
            device.largest = device.largest.max(size);
        } else if state == "active_allocated" {
            device.live += 1;
            let holder = holders.entry(place(data, *block)).or_default();
            *holder = (holder.0.saturating_add(size), holder.1 + 1);
        }
    }
}

/// The innermost frame that is Python and not PyTorch's own; else the innermost.
fn place(data: &Data<'_>, block: Item) -> String {
    let frames = data.get(block, "frames").or_else(|| {
        // Dumps of 1.x and 2.0: a history, the newest first.
        let history = data.get(block, "history")?;
        data.get(*data.list(history).first()?, "frames")
    });
    let frames = frames.map_or(&[][..], |f| data.list(f));
    let text = |frame: Item, key: &str| data.get(frame, key).and_then(|t| data.text(t)).unwrap_or_default();
    let own = frames.iter().find(|f| {
        let file = text(**f, "filename");
        file.strip_suffix(".py").is_some() && !file.contains("/torch/")
    });
    match own.or(frames.first()) {
        Some(frame) => {
            let file = text(*frame, "filename").rsplit('/').next().unwrap_or_default();
            format!("{file}:{} {}", data.int(*frame, "line").unwrap_or(0), text(*frame, "name"))
        }
        None => "unknown".to_owned(),
    }
}

fn largest(holders: BTreeMap<String, (i64, u64)>) -> Vec<Holder> {
    let mut all: Vec<Holder> =
        holders.into_iter().map(|(place, (bytes, blocks))| Holder { place, bytes, blocks }).collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.place.cmp(&b.place)));
    all.truncate(HOLDERS);
    all
}

/// Figures of one device, and the failed request where its trace has one.
fn report(data: &Data<'_>, index: i64, device: &Device, trace: Option<Item>, found: &mut Found) {
    let number = u32::try_from(index).ok();
    let oom = trace.and_then(|t| {
        data.list(t)
            .iter()
            .find(|e| data.get(**e, "action").and_then(|a| data.text(a)) == Some("oom"))
            .copied()
    });
    let put = |found: &mut Found, key, value| found.fact_at(0, None, key, value);
    if let Some(oom) = oom {
        found.error_at("torch_oom", 0, None, None);
        let size = data.int(oom, "size").unwrap_or(0);
        put(found, "tried_to_allocate", Figure::Bytes(size));
        let free = data.int(oom, "device_free");
        if let Some(free) = free {
            put(found, "free", Figure::Bytes(free));
        }
        // Enough was free in the allocator's segments, but in no piece that is large enough.
        let fragmented = size <= device.free && size > device.largest.saturating_add(free.unwrap_or(0));
        put(found, "fragmented", Figure::Flag(fragmented));
    }
    put(found, "allocated_by_pytorch", Figure::Bytes(device.allocated));
    put(found, "reserved_total", Figure::Bytes(device.reserved));
    put(found, "reserved_unallocated", Figure::Bytes(device.reserved.saturating_sub(device.allocated)));
    if device.private > 0 {
        put(found, "private_pools", Figure::Bytes(device.private));
    }
    put(found, "active", Figure::Bytes(device.active));
    put(found, "inactive", Figure::Bytes(device.free));
    put(found, "largest_free_block", Figure::Bytes(device.largest));
    put(found, "segments", Figure::Count(device.segments));
    put(found, "blocks_live", Figure::Count(device.live));
    found.device(number);
    found.end_message();
}
