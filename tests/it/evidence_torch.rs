//! What PyTorch's allocator writes down about itself: tables, counters, snapshots.

use oom_ledger_core::evidence::{Figure, read};
use proptest::prelude::*;

const SNAPSHOT: &[u8] = include_bytes!("../fixtures/evidence/snapshot.pickle");

/// `torch.cuda.memory_summary()` with the given columns of allocated and reserved memory.
fn summary(device: u32, allocated: [&str; 2], reserved: [&str; 2], requested: bool) -> String {
    let bar = format!("|{}|\n", "-".repeat(75));
    let row = |name: &str, now: &str, peak: &str| {
        format!("| {name:<22}| {now:>10} | {peak:>10} | 100000 MiB |  90000 MiB |\n")
    };
    let mut table = format!(
        "|{:=<75}|\n|                  PyTorch CUDA memory summary, device ID {device}                 |\n{bar}\
         |            CUDA OOMs: 2            |        cudaMalloc retries: 5         |\n|{:=<75}|\n\
         |        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n{bar}",
        "", ""
    );
    table += &row("Allocated memory", allocated[0], allocated[1]);
    table += &row("      from large pool", "1 MiB", "2 MiB");
    table += &bar;
    table += &row("Active memory", "77 MiB", "88 MiB");
    if requested {
        table += &row("Requested memory", "7 MiB", "8 MiB");
    }
    table += &row("GPU reserved memory", reserved[0], reserved[1]);
    table += &row("Non-releasable memory", "1536 KiB", "9 MiB");
    table += &bar;
    table + "| Allocations           |    1234    |    1234    |    1234    |    1234    |\n"
}

#[test]
fn a_summary_gives_current_and_peak_whatever_the_version() {
    for requested in [true, false] {
        let text = summary(3, ["14356 MiB", "23806 MiB"], ["32225 MiB", "768 GiB"], requested);
        let reading = read(text.as_bytes());
        let e = &reading.evidence;
        assert_eq!(reading.format, "pytorch-memory-stats");
        assert_eq!(e.bytes("allocated_by_pytorch"), Some(14356 << 20));
        assert_eq!(e.bytes("peak_allocated"), Some(23806 << 20));
        assert_eq!(e.bytes("reserved_total"), Some(32225 << 20));
        assert_eq!(e.bytes("peak_reserved"), Some(768 << 30));
        assert_eq!(e.bytes("non_releasable"), Some(1536 << 10));
        assert_eq!(e.bytes("requested"), requested.then_some(7 << 20));
        assert_eq!((e.count("oom_events"), e.count("alloc_retries")), (Some(2), Some(5)));
        assert!(e.facts.iter().all(|f| f.device == Some(3)));
        assert!(e.error_kind().is_none());
    }
}

#[test]
fn counters_are_read_from_any_print_of_the_dictionary() {
    for text in [
        "OrderedDict([('allocated_bytes.all.current', 15414722560), ('reserved_bytes.all.peak', 17179869184), ('num_ooms', 1)])",
        "{'allocated_bytes.all.current': 15414722560, 'reserved_bytes.all.peak': 17179869184, 'num_ooms': 1}",
        "{\n  \"allocated_bytes.all.current\": 15414722560,\n  \"reserved_bytes.all.peak\": 17179869184,\n  \"num_ooms\": 1\n}",
        "allocated_bytes.all.current: 15414722560\nreserved_bytes.all.peak = 17179869184\nnum_ooms 1",
    ] {
        let e = read(text.as_bytes()).evidence;
        assert_eq!(e.bytes("allocated_by_pytorch"), Some(15_414_722_560), "{text}");
        assert_eq!(e.bytes("peak_reserved"), Some(17_179_869_184), "{text}");
        assert_eq!(e.count("oom_events"), Some(1), "{text}");
    }
}

#[test]
fn a_snapshot_says_what_is_held_and_whether_it_is_in_pieces() {
    const G: i64 = 1 << 30;
    let reading = read(SNAPSHOT);
    let e = &reading.evidence;
    assert_eq!(reading.format, "pytorch-snapshot");
    assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
    for (key, bytes) in [
        ("reserved_total", 14 * G),
        ("allocated_by_pytorch", 9 * G),
        ("private_pools", 3 * G),
        ("active", 10 * G),
        ("inactive", 4 * G),
        ("largest_free_block", 2 * G),
        ("tried_to_allocate", 3 * G),
        ("free", 256 << 20),
    ] {
        assert_eq!(e.bytes(key), Some(bytes), "{key}");
    }
    assert_eq!(e.error_kind(), Some("torch_oom"));
    assert_eq!(e.get("fragmented").unwrap().value, Figure::Flag(true));
    assert_eq!((e.holders[0].place.as_str(), e.holders[0].bytes), ("train.py:41 step", 9 * G));
    assert_eq!(e.holders[1].place, "unknown");
}

#[test]
fn a_pickle_that_would_run_something_is_refused() {
    for bytes in [
        // os.system("true"), protocol 2 and 4.
        &b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03."[..],
        &b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94."[..],
    ] {
        let reading = read(bytes);
        assert!(reading.evidence.is_empty());
        assert_eq!(reading.warnings[0].id, "evidence.warn.pickle_refused");
    }
    assert_eq!(read(b"\x80\x04}\x94.").warnings[0].id, "evidence.warn.pickle_other");
    assert_eq!(read(b"\x80\x04}\x94").warnings[0].id, "evidence.warn.pickle_broken");
}

proptest! {
    /// A snapshot cut, or with bytes changed, is read or refused; never a panic.
    #[test]
    fn damaged_snapshots_do_no_harm(cut in 0usize..4000, at in 0usize..4000, byte in any::<u8>()) {
        let mut bytes = SNAPSHOT.to_vec();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(cut.max(2));
        let _ = read(&bytes).evidence.to_json();
    }
}
