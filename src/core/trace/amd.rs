//! `rocm-smi --showmeminfo vram` and `amd-smi monitor`.

use super::cell::memory;
use super::importers::Input;
use super::rows::{Card, Rows};
use super::timeline::NO_TIME;
use crate::units::Message;

/// Whether the CSV of rocm-smi is there.
pub fn sniff_rocm_csv(input: &Input) -> bool {
    input.any_line(|l| l.starts_with("device,") && l.contains("VRAM Total Used Memory"))
}

/// `GPU[0] : VRAM Total Used Memory (B): 27574272`: card, whether it is the used figure, bytes.
fn rocm(line: &str) -> Option<(String, bool, u64)> {
    let (gpu, rest) = line.trim_start().strip_prefix("GPU[")?.split_once(']')?;
    let rest = rest.trim_start_matches([' ', '\t', ':']);
    let (key, value) = rest.split_once("(B):")?;
    let used = match key.trim() {
        "VRAM Total Used Memory" => true,
        "VRAM Total Memory" => false,
        _ => return None,
    };
    Some((gpu.to_owned(), used, memory(value, 1, false)?))
}

/// Whether the text of rocm-smi is there.
pub fn sniff_rocm(input: &Input) -> bool {
    input.any_line(|l| rocm(l).is_some())
}

/// Reads the text of rocm-smi: the total comes a line before the used figure.
pub fn read_rocm(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut totals = std::collections::BTreeMap::new();
    for (number, line) in (1..).zip(input.text.lines()) {
        let Some((gpu, used, bytes)) = rocm(line) else { continue };
        if used {
            let total = totals.get(&gpu).copied();
            rows.push(number, Some(NO_TIME), &Card { index: gpu, ..Card::default() }, bytes, total, None);
        } else {
            totals.insert(gpu, bytes);
        }
    }
    Ok(rows)
}

fn monitor_header(line: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = line.split_whitespace().collect();
    (!line.contains(',') && names.contains(&"GPU") && names.contains(&"VRAM_USED")).then_some(names)
}

/// Whether the header of `amd-smi monitor` is there.
pub fn sniff_monitor(input: &Input) -> bool {
    input.any_line(|l| monitor_header(l).is_some())
}

/// Reads `amd-smi monitor`: every value is followed by its unit, so units are folded into the value before them.
pub fn read_monitor(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut names: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(input.text.lines()) {
        if let Some(found) = monitor_header(line) {
            names = found;
            rows.round += 1;
            continue;
        }
        let mut fields: Vec<String> = Vec::new();
        for word in line.split_whitespace() {
            let value = word.starts_with(|c: char| c.is_ascii_digit() || c == '-') || word == "N/A";
            match fields.last_mut() {
                Some(last) if !value => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => fields.push(word.to_owned()),
            }
        }
        if names.is_empty() || fields.len() != names.len() {
            if !line.trim().is_empty() {
                rows.warn(number, Message::new("trace.row_skipped"));
            }
            continue;
        }
        let at = |name: &str| names.iter().position(|n| *n == name).map(|i| fields[i].as_str());
        let amount = |name: &str| at(name).and_then(|t| memory(t, 1 << 20, false));
        if let Some(used) = amount("VRAM_USED") {
            let card = Card { index: at("GPU").unwrap_or_default().to_owned(), ..Card::default() };
            let time = at("TIMESTAMP").and_then(|t| t.parse().ok());
            rows.push(number, time, &card, used, amount("VRAM_TOTAL"), None);
        }
    }
    Ok(rows)
}
