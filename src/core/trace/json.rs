//! The JSON formats: gpustat, Prometheus answers, W&B event lines, nvtop, rocm-smi.

use super::cell;
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp::{self, Order, Stamp};
use super::timeline::Quantity;
use crate::units::Message;
use serde_json::Value;

const MIB: u64 = 1 << 20;

fn is_json(input: &Input, marks: &[&str]) -> bool {
    let start = input.head().trim_start();
    // `[0] name | …` is gpustat's text.
    let open =
        start.starts_with('{') || (start.starts_with('[') && start[1..].trim_start().starts_with(['{', ']']));
    open && marks.iter().all(|mark| input.head().contains(mark))
}

/// The documents of a text, one after the other, with their lines; ends at what is no JSON.
fn documents<'a>(input: &Input<'a>, rows: &mut Rows, mut each: impl FnMut(&mut Rows, u32, Value)) {
    let text: &'a str = input.text;
    let (mut at, mut counted, mut line) = (0, 0, 1u32);
    loop {
        let skip = text[at..].find(|c: char| !(c.is_whitespace() || c == ',')).unwrap_or(text.len() - at);
        at += skip;
        if at >= text.len() {
            return;
        }
        line = line.saturating_add(u32::try_from(text[counted..at].matches('\n').count()).unwrap_or(0));
        counted = at;
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        if let Some(Ok(value)) = stream.next() {
            rows.round += 1;
            each(rows, line, value);
            at += stream.byte_offset().max(1);
        } else {
            rows.warn(line, Message::new("trace.cut_document"));
            // The next document may be whole: it begins on a line of its own.
            match text[at..].find("\n{").or_else(|| text[at..].find("\n[")) {
                Some(next) => at += next + 1,
                None => return,
            }
        }
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => match cell::cell(s, false) {
            cell::Cell::Number(n, _) => Some(n),
            _ => None,
        },
        _ => None,
    }
}

fn amount(value: &Value, bare: u64) -> Option<u64> {
    match value {
        Value::String(s) => cell::memory(s, bare, false),
        other => cell::bytes(number(other)?, bare),
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `gpustat --json`.
pub fn sniff_gpustat(input: &Input) -> bool {
    is_json(input, &["\"gpus\"", "\"memory."])
}

/// Reads `gpustat --json`.
pub fn read_gpustat(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    documents(input, &mut rows, |rows, line, value| {
        let when = value["query_time"].as_str().and_then(|t| stamp::stamp(t, Order::Month));
        let time = when.map(|s| rows.seconds(s));
        for gpu in value["gpus"].as_array().into_iter().flatten() {
            let card = Card { index: word(&gpu["index"]), uuid: word(&gpu["uuid"]), ..Card::default() };
            match amount(&gpu["memory.used"], MIB) {
                Some(used) => rows.push(line, time, &card, used, amount(&gpu["memory.total"], MIB), None),
                None => rows.lost.push((card, line)),
            }
        }
    });
    Ok(rows)
}

/// An answer of Prometheus' query API.
pub fn sniff_prometheus(input: &Input) -> bool {
    is_json(input, &["\"resultType\""])
}

/// Reads an answer of Prometheus: bytes where the metric's name says so, else MiB.
pub fn read_prometheus(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut read = Vec::new();
    documents(input, &mut rows, |_, line, value| {
        for result in value["data"]["result"].as_array().into_iter().flatten() {
            let metric = &result["metric"];
            let name = word(&metric["__name__"]).to_lowercase();
            let kind = [("total", 1), ("free", 2), ("used", 0)]
                .into_iter()
                .find(|(w, _)| name.contains(w))
                .map(|(_, k)| k);
            let memory = name.contains("fb_") || name.contains("memory") || name.contains("vram");
            let Some(kind) = kind.filter(|_| memory && !name.contains("util") && !name.contains("reserved"))
            else {
                continue;
            };
            let bare = if name.ends_with("bytes") { 1 } else { MIB };
            let any = |names: &[&str]| {
                names.iter().map(|n| word(&metric[*n])).find(|w| !w.is_empty()).unwrap_or_default()
            };
            let card = Card {
                index: any(&["gpu", "minor_number", "index"]),
                uuid: any(&["UUID", "uuid"]),
                part: any(&["GPU_I_ID"]),
                ..Card::default()
            };
            let single = result.get("value").cloned();
            for pair in result["values"].as_array().cloned().unwrap_or_default().into_iter().chain(single) {
                if let (Some(time), Some(bytes)) = (number(&pair[0]), amount(&pair[1], bare)) {
                    read.push((line, time, card.clone(), kind, bytes));
                }
            }
        }
    });
    let of = |kind: i32, card: &Card, time: f64| {
        read.iter().find(|r| r.3 == kind && r.2 == *card && r.1.total_cmp(&time).is_eq()).map(|r| r.4)
    };
    // Totals are few; a look-up per reading is fine up to the sizes that the API answers with (11 000 points).
    let others = read.iter().any(|r| r.3 != 0);
    for (line, time, card, kind, bytes) in &read {
        if *kind == 0 {
            let (total, free) = if others { (of(1, card, *time), of(2, card, *time)) } else { (None, None) };
            rows.push(*line, Some(*time), card, *bytes, total, free);
        }
    }
    if rows.list.is_empty() {
        return Err(Message::new("trace.prometheus_without_memory"));
    }
    Ok(rows)
}

/// W&B's event lines.
pub fn sniff_wandb(input: &Input) -> bool {
    is_json(input, &["\"system.gpu."])
}

/// Reads W&B's event lines: `memoryAllocated` is per cent of the card, `memory` is bandwidth.
pub fn read_wandb(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut bytes_seen = false;
    documents(input, &mut rows, |rows, line, value| {
        let time = number(&value["_timestamp"]).or_else(|| number(&value["_runtime"]));
        for (key, value) in value.as_object().into_iter().flatten() {
            let Some((gpu, field)) = key.strip_prefix("system.gpu.").and_then(|k| k.split_once('.')) else {
                continue;
            };
            if gpu == "process" {
                continue;
            }
            let card = Card { index: gpu.to_owned(), ..Card::default() };
            let share = number(value).filter(|p| (0.0..=100.5).contains(p));
            if field == "memoryAllocatedBytes" {
                bytes_seen = true;
                if let Some(bytes) = amount(value, 1) {
                    rows.push(line, time, &card, bytes, None, None);
                }
            } else if let (Some(share), "memoryAllocated", false) = (share, field, bytes_seen) {
                rows.push(line, time, &card, (share * 1e4) as u64, Some(1_000_000), None);
            }
        }
    });
    if bytes_seen {
        rows.list.retain(|row| row.total == 0);
    } else {
        rows.quantity = Quantity::Share;
    }
    rows.note(Message::new("trace.averages"));
    Ok(rows)
}

/// `nvtop -s`.
pub fn sniff_nvtop(input: &Input) -> bool {
    is_json(input, &["\"device_name\"", "\"mem_"])
}

/// Reads `nvtop -s`: bytes as strings, no time; the place in the list is the card.
pub fn read_nvtop(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    documents(input, &mut rows, |rows, line, value| {
        for (place, gpu) in value.as_array().into_iter().flatten().enumerate() {
            let card = Card { index: place.to_string(), ..Card::default() };
            let (total, free) = (amount(&gpu["mem_total"], 1), amount(&gpu["mem_free"], 1));
            if let Some(used) = amount(&gpu["mem_used"], 1) {
                rows.push(line, None, &card, used, total, free);
            }
        }
    });
    Ok(rows)
}

/// `rocm-smi --showmeminfo vram --json`.
pub fn sniff_rocm(input: &Input) -> bool {
    is_json(input, &["VRAM Total Used Memory"])
}

/// Reads `rocm-smi --json`.
pub fn read_rocm(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    documents(input, &mut rows, |rows, line, value| {
        for (name, card) in value.as_object().into_iter().flatten() {
            if let Some(used) = amount(&card["VRAM Total Used Memory (B)"], 1) {
                let total = amount(&card["VRAM Total Memory (B)"], 1);
                rows.push(line, None, &Card { index: name.clone(), ..Card::default() }, used, total, None);
            }
        }
    });
    Ok(rows)
}

/// A stamp that is a plain number of seconds.
pub fn plain_seconds(text: &str) -> Option<f64> {
    match stamp::stamp(text, Order::Month)? {
        Stamp::Date(t) | Stamp::Elapsed(t) => Some(t),
        _ => None,
    }
}
