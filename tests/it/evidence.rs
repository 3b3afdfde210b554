//! Texts that people paste: every message gives its figures, however it was delivered; look-alikes give none.

use oom_ledger_core::evidence::{KEYS, KINDS, READERS, Weight, key_of, kind_of, read};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Messages {
    #[allow(dead_code)]
    note: String,
    rows: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    text: Vec<String>,
    format: String,
    expect: Map<String, Value>,
}

fn messages() -> Vec<Message> {
    let file: Messages =
        serde_json::from_str(include_str!("../fixtures/evidence/messages.json")).expect("messages.json");
    file.rows
}

/// What a text says, without the lines.
fn said(text: &[u8]) -> Map<String, Value> {
    let Value::Object(mut map) = read(text).evidence.to_json() else { panic!("no object") };
    map.remove("lines");
    map.remove("errors");
    map.remove("derived");
    map.remove("ranks");
    map.remove("devices");
    map
}

#[test]
fn every_message_gives_its_figures() {
    for row in messages() {
        let text = row.text.join("\n");
        let reading = read(text.as_bytes());
        assert_eq!(said(text.as_bytes()), row.expect, "{text}");
        assert_eq!(reading.format, row.format, "{text}");
    }
}

/// The same messages as loggers, terminals, launchers and collectors deliver them.
#[test]
fn delivery_does_not_matter() {
    let wrapped = |text: &str, width: usize| {
        let mut out = String::new();
        for line in text.lines() {
            let mut column = 0;
            for word in line.split(' ') {
                if column > 0 && column + word.len() > width {
                    out.push('\n');
                    column = 0;
                } else if column > 0 {
                    out.push(' ');
                }
                out.push_str(word);
                column += word.len() + 1;
            }
            out.push('\n');
        }
        out
    };
    let each = |text: &str, f: &dyn Fn(&str) -> String| text.lines().map(f).collect::<Vec<_>>().join("\n");
    for row in messages() {
        let text = row.text.join("\n");
        let utf16: Vec<u8> =
            std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(said(&utf16), row.expect, "UTF-16: {text}");
        let ways: Vec<(&str, String)> = vec![
            ("carriage returns", text.replace('\n', "\r\n")),
            (
                "engine core",
                each(&text, &|l| format!("(EngineCore_DP0 pid=276) ERROR 10-21 06:12:11 [core.py:708] {l}")),
            ),
            (
                "ray",
                each(&text, &|l| format!("\u{1b}[36m(RayWorkerWrapper pid=88, ip=10.0.0.9)\u{1b}[0m {l}")),
            ),
            ("journal", each(&text, &|l| format!("Oct 21 06:12:11 node7 serve[88]: {l}"))),
            ("compose", each(&text, &|l| format!("vllm-1  | {l}"))),
            ("containers", each(&text, &|l| format!("2025-10-21T06:12:11.123456789Z stderr F {l}"))),
            ("quoted", each(&text, &|l| format!("> {l}"))),
            (
                "docker json",
                each(&text, &|l| {
                    serde_json::json!({"log": format!("{l}\n"), "stream": "stderr", "time": "2025-10-21T06:12:11Z"}).to_string()
                }),
            ),
        ];
        for (way, given) in ways {
            assert_eq!(said(given.as_bytes()), row.expect, "{way}: {given}");
        }
        // Messages that end with their line may lose what was wrapped away; those of allocators may not.
        if row.format == "pytorch-oom" {
            let (mut given, mut expect) = (said(wrapped(&text, 60).as_bytes()), row.expect.clone());
            // The tag of a rank may be wrapped away from the message.
            given.remove("rank");
            expect.remove("rank");
            assert_eq!(given, expect, "wrapped: {text}");
        }
    }
}

#[test]
fn ranks_are_told_apart_and_the_first_error_counts() {
    let text = "\
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.11 GiB of which 1.00 GiB is free.
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 2.00 GiB is free.
";
    let reading = read(text.as_bytes());
    assert_eq!(reading.evidence.bytes("tried_to_allocate"), Some(2 << 30));
    assert_eq!(reading.evidence.to_json()["rank"], 1);
    assert_eq!(reading.evidence.errors.len(), 2);
    // With times, time decides and not the order of lines.
    let timed = "\
2025-10-21 06:12:12,000 CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.11 GiB
2025-10-21 06:12:11,000 CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 79.11 GiB
";
    assert_eq!(read(timed.as_bytes()).evidence.bytes("tried_to_allocate"), Some(3 << 30));
}

#[test]
fn what_follows_from_a_message_is_computed() {
    let text = "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is \
        free. Process 7 has 4.00 GiB memory in use. Including non-PyTorch memory, this process has 19.00 GiB memory in \
        use. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.";
    let json = read(text.as_bytes()).evidence.to_json();
    let gib = |n: u64| Value::from(n << 30);
    assert_eq!(json["other_processes"], gib(4));
    assert_eq!(json["derived"]["other"], gib(4));
    assert_eq!(json["derived"]["non_torch"], gib(1));
    assert_eq!(json["derived"]["shortfall"], gib(2));
    assert_eq!(json["derived"]["unallocated_share"], 0.3333);
    assert_eq!(json["derived"]["request_exceeds_device"], false);
}

#[test]
fn tables_are_consistent() {
    let ids: BTreeSet<_> = KEYS.iter().map(|k| k.id).collect();
    assert_eq!(ids.len(), KEYS.len());
    let kinds: BTreeSet<_> = KINDS.iter().map(|k| k.id).collect();
    assert_eq!(kinds.len(), KINDS.len());
    for row in messages() {
        for key in row.expect.keys().filter(|k| *k != "error_kind" && *k != "rank") {
            assert!(key_of(key).is_some(), "{key} is no key");
        }
        if let Some(Value::String(kind)) = row.expect.get("error_kind") {
            assert!(kind_of(kind).is_some(), "{kind} is no kind");
        }
    }
    assert!(READERS.iter().all(|r| r.id != "unknown"));
    for kind in KINDS {
        assert!(oom_ledger_core::text::has(&format!("evidence.kind.{}", kind.id)), "{}", kind.id);
    }
    assert!(KINDS.iter().any(|k| k.weight == Weight::LookAlike));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes).evidence.to_json();
    }

    /// Pieces of real messages put together and cut anywhere.
    #[test]
    fn no_mixture_panics(picks in proptest::collection::vec((0usize..400, 0usize..300, 0usize..300), 1..12)) {
        let all: Vec<String> = messages().into_iter().map(|m| m.text.join("\n")).collect();
        let mut text = Vec::new();
        for (which, from, length) in picks {
            let piece = all[which % all.len()].as_bytes();
            let from = from.min(piece.len());
            text.extend_from_slice(&piece[from..(from + length).min(piece.len())]);
        }
        let _ = read(&text).evidence.to_json();
    }
}

/// A log that prints the same figure for hours still gives the error at its end, and its last figures.
#[test]
fn a_long_log_loses_neither_its_start_nor_its_end() {
    let mut text = String::from(
        "[2025-03-25 16:00:00 TP0] Load weight end. type=X, avail mem=63.48 GB, mem usage=15.11 GB.\n",
    );
    for i in 0..30_000u32 {
        let _ = writeln!(
            text,
            "[2025-03-25 16:{:02}:{:02} TP0] Decode batch. #running-req: 8, #token: {i}, token usage: 0.{:02}, gen throughput",
            i / 60 % 60,
            i % 60,
            i % 90 + 10
        );
    }
    text += "[2025-03-25 17:00:00 TP0] RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n";
    let e = read(text.as_bytes()).evidence;
    assert!(e.facts.len() < 100, "{}", e.facts.len());
    assert_eq!(e.bytes("tried_to_allocate"), Some(2 << 30));
    assert_eq!(e.get("tried_to_allocate").unwrap().line, 30_002);
    assert_eq!(e.real("token_usage"), Some(0.39));
    assert!(e.bytes("weights").is_some());
}

#[test]
fn ranks_keep_their_own_figures_and_the_poorest_pool_counts() {
    let text = "\
(Worker_TP0 pid=770) INFO 08-21 18:18:05 [gpu_model_runner.py:5405] Model loading took 55.19 GiB memory and 48.5 seconds
(Worker_TP1 pid=771) INFO 08-21 18:18:05 [gpu_model_runner.py:5405] Model loading took 55.20 GiB memory and 48.5 seconds
(Worker_TP0 pid=770) INFO 08-21 18:21:05 [gpu_worker.py:681] Available KV cache memory: 27.85 GiB
(Worker_TP1 pid=771) INFO 08-21 18:21:05 [gpu_worker.py:681] Available KV cache memory: 28.31 GiB
";
    let json = read(text.as_bytes()).evidence.to_json();
    let gib = |x: f64| Value::from((x * f64::from(1 << 30)).round() as i64);
    assert_eq!(json["kv_available"], gib(27.85));
    assert_eq!(json["weights"], gib(55.2));
    assert_eq!(json["ranks"]["1"]["kv_available"], gib(28.31));
}

/// Two buffers of one process on two devices are parts of one whole; what lies on the host is not.
#[test]
fn buffers_of_several_devices_add_up() {
    let text = "\
load_tensors: offloaded 41/41 layers to GPU
load_tensors:   CPU_Mapped model buffer size =  1640.62 MiB
load_tensors:        CUDA0 model buffer size =  5434.38 MiB
load_tensors:        CUDA1 model buffer size = 13989.53 MiB
llama_kv_cache_init:      CUDA0 KV buffer size =  1536.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =  3584.00 MiB
";
    let json = read(text.as_bytes()).evidence.to_json();
    assert_eq!(json["kv_available"], 5120i64 << 20);
    assert_eq!(json["devices"]["1"]["kv_available"], 3584i64 << 20);
    assert_eq!(json["layers_offloaded"], 41);
    assert!(json["weights"].as_i64().unwrap() > 19_000 << 20);
}
