//! `nvidia-smi -q` and `-q -d MEMORY`, once or in a loop.

use super::cell::memory;
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp;
use crate::units::Message;

/// Whether the report's head occurs.
pub fn sniff(input: &Input) -> bool {
    input.any_line(|l| l.starts_with("=====") && l.contains("NVSMI LOG="))
}

/// Reads the reports: memory stands in the block "FB Memory Usage"; BAR1 and protected memory have the same keys.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let (mut time, mut bus, mut block, mut slice) = (None, String::new(), false, String::new());
    let (mut used, mut total, mut free) = (None, None, None);
    let mut gi = String::new();
    for (number, line) in (1u32..).zip(input.text.lines().chain([""])) {
        let text = line.trim();
        let (key, value) = text.split_once(" : ").map_or((text, ""), |(k, v)| (k.trim(), v.trim()));
        if block && (value.is_empty() || !matches!(key, "Total" | "Reserved" | "Used" | "Free")) {
            if let Some(used) = used {
                let card = Card { bus: bus.clone(), part: slice.clone(), ..Card::default() };
                rows.push(number.saturating_sub(1), time, &card, used, total, free);
            }
            block = false;
        }
        if line.starts_with("GPU ") && value.is_empty() {
            bus = key.trim_start_matches("GPU ").to_owned();
            slice.clear();
        } else if key == "Timestamp" {
            time = stamp::long_date(value);
            rows.round += 1;
        } else if key == "GPU Instance ID" {
            gi = value.to_owned();
        } else if key == "Compute Instance ID" {
            slice = format!("GI {gi} CI {value}");
        } else if value.is_empty() && (key == "FB Memory Usage" || key == "Shared FB Memory Usage") {
            if line.starts_with("    FB") {
                slice.clear();
            }
            (block, used, total, free) = (true, None, None, None);
        } else if block {
            let amount = memory(value, 1 << 20, false);
            match key {
                "Used" => used = amount,
                "Total" => total = amount,
                "Free" => free = amount,
                _ => {}
            }
        }
    }
    if rows.list.is_empty() {
        return Err(Message::new("trace.no_values"));
    }
    Ok(rows)
}
