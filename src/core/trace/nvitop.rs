//! Wide CSV, one column a card: nvitop's collector and W&B's chart export.

use super::cell;
use super::fields::{lines, split};
use super::importers::Input;
use super::json::plain_seconds;
use super::rows::{Card, Rows};
use super::timeline::Quantity;
use crate::units::Message;

const MIB: u64 = 1 << 20;

/// What one column holds: the card, and whether it is the total.
struct Wide {
    at: usize,
    card: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Used,
    Total,
    Share,
    Bytes,
}

fn number_after<'a>(name: &'a str, mark: &str) -> Option<&'a str> {
    let rest = &name[name.find(mark)? + mark.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// `train/cuda:0 (gpu:3)/memory_used (MiB)/max`. The greatest of an interval keeps its peaks.
fn nvitop(name: &str) -> Option<(String, Kind, u8)> {
    let card = number_after(name, "(gpu:").or_else(|| number_after(name, "/gpu:"))?.to_owned();
    let kind = if name.contains("/memory_used (MiB)/") {
        Kind::Used
    } else if name.contains("/memory_total (MiB)/") {
        Kind::Total
    } else {
        return None;
    };
    let rank = [("/max", 3), ("/last", 2), ("/mean", 1)].into_iter().find(|(end, _)| name.ends_with(end));
    rank.map(|(_, rank)| (card, kind, rank))
}

/// `run-1 - system/gpu.0.memoryAllocated__MAX`.
fn wandb(name: &str) -> Option<(String, Kind, u8)> {
    let card = number_after(name, "system/gpu.")?.to_owned();
    let kind = if name.contains(".memoryAllocatedBytes") {
        Kind::Bytes
    } else if name.contains(".memoryAllocated") {
        Kind::Share
    } else {
        return None;
    };
    let rank = if name.ends_with("__MAX") { 3 } else { u8::from(!name.ends_with("__MIN")) };
    Some((card, kind, rank))
}

type Naming = fn(&str) -> Option<(String, Kind, u8)>;

fn header(line: &str, of: Naming) -> Option<Vec<Wide>> {
    let mut fields = Vec::new();
    split(line, ',', &mut fields);
    let mut best: Vec<(Wide, u8)> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let Some((card, kind, rank)) = of(field) else { continue };
        match best.iter_mut().find(|(w, _)| w.card == card && w.kind == kind) {
            Some(found) if found.1 < rank => *found = (Wide { at, card, kind }, rank),
            Some(_) => {}
            None => best.push((Wide { at, card, kind }, rank)),
        }
    }
    let wide: Vec<Wide> = best.into_iter().map(|(w, _)| w).collect();
    wide.iter().any(|w| w.kind != Kind::Total).then_some(wide)
}

/// nvitop's collector.
pub fn sniff(input: &Input) -> bool {
    input.head_lines().take(20).any(|(_, l)| header(l, nvitop).is_some())
}

/// W&B's chart export.
pub fn sniff_wandb(input: &Input) -> bool {
    input.head_lines().take(20).any(|(_, l)| header(l, wandb).is_some())
}

/// Reads nvitop's collector.
pub fn read(input: &Input) -> Result<Rows, Message> {
    wide(input, nvitop)
}

/// Reads W&B's chart export.
pub fn read_wandb(input: &Input) -> Result<Rows, Message> {
    let mut rows = wide(input, wandb)?;
    rows.note(Message::new("trace.averages"));
    Ok(rows)
}

fn wide(input: &Input, of: Naming) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let (mut columns, mut time_at, mut width) = (Vec::new(), 0, 0);
    let mut fields = Vec::new();
    for (number, line) in lines(input.text) {
        if let Some(found) = header(line, of) {
            split(line, ',', &mut fields);
            width = fields.len();
            // A data frame's first column is its row number.
            time_at = fields.iter().position(|f| f == "timestamp").unwrap_or(0);
            columns = found;
            continue;
        }
        split(line, ',', &mut fields);
        if columns.is_empty() || fields.len() != width {
            if !line.trim().is_empty() {
                rows.warn(number, Message::new("trace.row_skipped"));
            }
            continue;
        }
        let time = plain_seconds(&fields[time_at]);
        for column in &columns {
            let text = &fields[column.at];
            let card = Card { index: column.card.clone(), ..Card::default() };
            match column.kind {
                Kind::Total => {}
                Kind::Share => {
                    if let cell::Cell::Number(share, _) = cell::cell(text, false)
                        && (0.0..=100.5).contains(&share)
                    {
                        rows.quantity = Quantity::Share;
                        rows.push(number, time, &card, (share * 1e4) as u64, Some(1_000_000), None);
                    }
                }
                Kind::Used | Kind::Bytes => {
                    let bare = if column.kind == Kind::Used { MIB } else { 1 };
                    let total = columns.iter().find(|c| c.kind == Kind::Total && c.card == column.card);
                    let total = total.and_then(|c| cell::memory(&fields[c.at], MIB, false));
                    if let Some(used) = cell::memory(text, bare, false) {
                        rows.push(number, time, &card, used, total, None);
                    }
                }
            }
        }
    }
    Ok(rows)
}
