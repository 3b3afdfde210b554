//! Programs' own lines: `GPU Memory: 121.0MB / 6144.0MB`, `allocated … reserved …`, `[VRAM] …: 2.89 GB`.

use super::cell::{self, Unit};
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp::{self, Order};
use super::timeline::Quantity;
use crate::units::Message;

/// One amount in a line, with the words before it.
#[derive(Debug, PartialEq)]
struct Amount<'a> {
    label: &'a str,
    value: f64,
    unit: Unit,
    after: &'a str,
}

/// The amounts with a unit of memory or per cent.
fn amounts(line: &str) -> Vec<Amount<'_>> {
    let (mut out, mut at, mut label) = (Vec::new(), 0, 0);
    let bytes = line.as_bytes();
    while at < bytes.len() {
        let starts = bytes[at].is_ascii_digit()
            && (at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'.' | b'-')));
        if !starts {
            at += 1;
            continue;
        }
        let digits =
            line[at..].find(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(line.len(), |n| at + n);
        let rest = line[digits..].trim_start_matches(' ');
        let from = line.len() - rest.len();
        let word =
            rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '%')).map_or(line.len(), |n| from + n);
        let unit = cell::unit(&line[from..word]);
        if let (Ok(value), Unit::Bytes(_) | Unit::Percent) = (line[at..digits].parse(), unit) {
            out.push(Amount { label: line[label..at].trim(), value, unit, after: &line[word..] });
            label = word;
        }
        at = word.max(digits);
    }
    out
}

/// What a line says about memory.
#[derive(Debug, Default, PartialEq)]
struct Said {
    used: Option<u64>,
    total: Option<u64>,
    share: Option<f64>,
    allocated: Option<u64>,
    reserved: Option<u64>,
    bandwidth: bool,
}

impl Said {
    fn any(&self) -> bool {
        self.used.is_some() || self.share.is_some() || self.allocated.is_some() || self.reserved.is_some()
    }
}

fn said(line: &str) -> Said {
    let mut out = Said::default();
    if !line.contains(['B', 'b', '%']) || line.len() > 2000 {
        return out;
    }
    let whole = line.to_lowercase();
    let gpu_line = ["memory", "vram", "mem ", "mib", "alloc"].iter().any(|w| whole.contains(w));
    // A message about running out quotes figures that are no readings.
    if !gpu_line || whole.contains("out of memory") || whole.contains("tried to allocate") {
        return out;
    }
    let all = amounts(line);
    for (i, amount) in all.iter().enumerate() {
        let label = amount.label.to_lowercase();
        let has = |w: &str| label.contains(w);
        let Unit::Bytes(per_unit) = amount.unit else {
            let memory = has("memory") || has("vram") || has("mem ");
            if has("memory util") || has("mem util") {
                out.bandwidth = true;
            } else if memory
                && (has("usage") || has("used") || label.ends_with("memory:"))
                && !has("cpu")
                && !has("ram:")
            {
                out.share = out.share.or((0.0..=100.5).contains(&amount.value).then_some(amount.value));
            }
            continue;
        };
        let Some(bytes) = cell::bytes(amount.value, per_unit) else { continue };
        if ["max", "peak", "cpu", "host", "system", "swap", "file", "disk", "model size", "download"]
            .iter()
            .any(|w| has(w))
        {
            continue;
        }
        let before_slash =
            amount.after.trim_start().starts_with('/') || amount.after.trim_start().starts_with("of ");
        let second = i > 0 && (label.starts_with('/') || label == "of" || label.starts_with("of total"));
        if second || (i > 0 && label.ends_with("out of")) {
            out.total = out.total.or(Some(bytes));
            if amount.after.trim_start().starts_with("total") && label.contains("free") {
                // `56153 MiB free out of 81050 MiB total`: what was taken for used is what is free.
                out.used = out.used.and_then(|free| bytes.checked_sub(free));
            }
        } else if amount.after.trim_start().starts_with("free out of") {
            out.used = Some(bytes);
        } else if has("reserved") || has("cached") {
            out.reserved = out.reserved.or(Some(bytes));
        } else if has("allocated") || has("alloc:") || has("alloc ") {
            out.allocated = out.allocated.or(Some(bytes));
        } else if (has("vram") || has("memory") || has("gpu mem") || (before_slash && gpu_line))
            && !has("total")
            && !has("free")
        {
            out.used = out.used.or(Some(bytes));
        }
    }
    out
}

fn counts(input: &Input) -> (usize, usize) {
    let (mut torch, mut card) = (0, 0);
    for (_, line) in input.head_lines().take(20_000) {
        let said = said(line);
        torch += usize::from(said.allocated.is_some() || said.reserved.is_some());
        card += usize::from(said.used.is_some() || said.share.is_some());
    }
    (torch, card)
}

/// Whether lines print what a framework's allocator holds, and nothing about the card.
pub fn sniff_torch(input: &Input) -> bool {
    let (torch, card) = counts(input);
    torch > 0 && card * 2 < torch
}

/// Whether lines print a card's memory.
pub fn sniff(input: &Input) -> bool {
    counts(input).1 > 0
}

/// The card that a line names: `cuda:1`, `GPU 1`, `[1]`.
fn card(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    for mark in ["cuda:", "gpu ", "gpu:", "gpu#", "device "] {
        if let Some(at) = lower.find(mark) {
            let digits: String = lower[at + mark.len()..].chars().take_while(char::is_ascii_digit).collect();
            let rest = &lower[at + mark.len() + digits.len()..];
            if (1..3).contains(&digits.len()) && !rest.starts_with(['.', '%']) {
                return digits;
            }
        }
    }
    String::new()
}

/// Reads the lines.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let (torch, of_card) = counts(input);
    let allocator = torch > 0 && of_card * 2 < torch;
    let (mut time, mut share, mut bytes) = (None, false, false);
    for (number, line) in (1..).zip(input.text.lines()) {
        let found = stamp::leading(line, Order::Month).map(|(s, _)| s).or_else(|| inner(line));
        if let Some(at) = found
            .map(|s| rows.seconds(s))
            .or_else(|| if line.len() < 60 { stamp::long_date(line) } else { None })
        {
            time = Some(at);
        }
        let said = said(line);
        if !said.any() {
            continue;
        }
        let index = card(line);
        if allocator {
            for (part, amount) in [("allocated", said.allocated), ("reserved", said.reserved)] {
                if let Some(amount) = amount {
                    let card = Card { index: index.clone(), part: part.to_owned(), ..Card::default() };
                    rows.push(number, time, &card, amount, said.total, None);
                }
            }
            continue;
        }
        let card = Card { index, ..Card::default() };
        if let Some(used) = said.used {
            bytes = true;
            let total = said.total.filter(|t| *t >= used);
            rows.push(number, time, &card, used, total, None);
        } else if let Some(share_now) = said.share {
            share = true;
            rows.push(number, time, &card, (share_now * 1e4) as u64, Some(1_000_000), None);
        }
    }
    if bytes && share {
        // Bytes are the better reading; per cents of the same file repeat them.
        rows.list.retain(|row| row.total != 1_000_000);
    } else if share {
        rows.quantity = Quantity::Share;
    }
    if allocator {
        rows.note(Message::new("trace.allocator_lines"));
    }
    Ok(rows)
}

/// `Timestamp: 2024-09-02 23:44:03` inside a line.
fn inner(line: &str) -> Option<stamp::Stamp> {
    let lower = line.to_ascii_lowercase();
    let at = lower.find("timestamp")? + 9;
    let rest = line.get(at..)?.trim_start_matches([':', ' ', '=', '"']);
    stamp::leading(rest, Order::Month).map(|(s, _)| s)
}

/// Whether a text speaks of memory bandwidth only.
pub fn only_bandwidth(input: &Input) -> bool {
    let mut bandwidth = false;
    for (_, line) in input.head_lines().take(20_000) {
        let said = said(line);
        if said.any() {
            return false;
        }
        bandwidth |= said.bandwidth;
    }
    bandwidth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_say() {
        const MIB: u64 = 1 << 20;
        let one = said("GPU Memory: 121.0MB / 6144.0MB (2.0%)");
        assert_eq!((one.used, one.total), (Some(121 * MIB), Some(6144 * MIB)));
        let two = said("cuda:1 A6000: 100 MiB free out of 300 MiB total, temperature: 72 C");
        assert_eq!((two.used, two.total), (Some(200 * MIB), Some(300 * MIB)));
        let three = said("step 3, GPU Memory Allocated: 10.5 MB, GPU Memory Reserved: 20 MB");
        assert_eq!((three.allocated, three.reserved, three.used), (Some(21 << 19), Some(20 * MIB), None));
        assert_eq!(said("[VRAM] after load: 2.50 GB").used, Some(5 << 29));
        assert_eq!(said("Memory Usage: 16.5% | GPU Utilization: 11%").share, Some(16.5));
        assert!(said("GPU Utilization: 3% | Memory Utilization: 17%").bandwidth);
        assert!(!said("GPU Utilization: 3% | Memory Utilization: 17%").any());
        assert!(!said("CUDA out of memory. Tried to allocate 50.00 MiB").any());
    }
}
