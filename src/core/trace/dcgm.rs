//! `dcgmi dmon` and scrapes of the DCGM exporter.

use super::cell::memory;
use super::importers::Input;
use super::rows::{Card, Rows};
use crate::units::Message;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

fn entity_header(line: &str) -> Option<Vec<&str>> {
    let rest = line.trim_start().trim_start_matches('#').trim_start();
    rest.starts_with("Entity ").then(|| rest.split_whitespace().skip(1).collect())
}

/// Whether the header of dcgmi dmon occurs.
pub fn sniff_dmon(input: &Input) -> bool {
    input.any_line(|l| entity_header(l).is_some())
}

/// Reads dcgmi dmon: two words name the entity, then one value a column.
pub fn read_dmon(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut names: Vec<&str> = Vec::new();
    let mut seen = false;
    for (number, line) in (1..).zip(input.text.lines()) {
        if let Some(found) = entity_header(line) {
            seen |= found.contains(&"FBUSD");
            names = found;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != names.len() + 2 || !words[0].starts_with("GPU") {
            continue;
        }
        let amount =
            |name: &str| names.iter().position(|n| *n == name).and_then(|i| memory(words[i + 2], MIB, false));
        let part = if words[0] == "GPU" { String::new() } else { words[0].to_owned() };
        let card = Card { index: words[1].to_owned(), part, ..Card::default() };
        if let Some(used) = amount("FBUSD") {
            rows.push(number, None, &card, used, amount("FBTTL"), amount("FBFRE"));
        }
    }
    if !seen {
        return Err(Message::new("trace.dcgm_without_memory"));
    }
    Ok(rows)
}

/// `DCGM_FI_DEV_FB_USED{gpu="0",UUID="…"} 12`: metric, labels, value.
fn metric(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once('{')?;
    let (labels, value) = rest.rsplit_once('}')?;
    name.starts_with("DCGM_FI_").then(|| (name, labels, value.split_whitespace().next().unwrap_or_default()))
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let at = labels.match_indices(name).find(|(at, _)| {
        (*at == 0 || labels[..*at].ends_with([',', ' '])) && labels[at + name.len()..].starts_with("=\"")
    })?;
    labels[at.0 + name.len() + 2..].split('"').next()
}

/// Whether a metric of the exporter occurs.
pub fn sniff_exporter(input: &Input) -> bool {
    input.any_line(|l| metric(l).is_some() || l.starts_with("# HELP DCGM_FI_"))
}

/// Reads scrapes: a card's used, free and reserved stand on lines of their own, and a scrape has no time.
pub fn read_exporter(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut free: BTreeMap<String, u64> = BTreeMap::new();
    let mut reserved: BTreeMap<String, u64> = BTreeMap::new();
    let mut used: Vec<(u32, Card, String, u64)> = Vec::new();
    for (number, line) in (1..).zip(input.text.lines()) {
        let Some((name, labels, value)) = metric(line) else { continue };
        let get = |n: &str| label(labels, n).unwrap_or_default().to_owned();
        let instance = get("GPU_I_ID");
        let part = if instance.is_empty() { String::new() } else { format!("GI {instance}") };
        let card =
            Card { index: get("gpu"), uuid: get("UUID"), name: get("modelName"), part, ..Card::default() };
        let key = format!("{} {}", card.uuid, card.part);
        let Some(bytes) = memory(value, MIB, false) else { continue };
        match name {
            "DCGM_FI_DEV_FB_USED" => used.push((number, card, key, bytes)),
            "DCGM_FI_DEV_FB_FREE" => drop(free.insert(key, bytes)),
            "DCGM_FI_DEV_FB_RESERVED" => drop(reserved.insert(key, bytes)),
            _ => {}
        }
    }
    if used.is_empty() {
        return Err(Message::new("trace.dcgm_without_memory"));
    }
    // Free and reserved of the last scrape give the total; free itself moves from scrape to scrape.
    let last: BTreeMap<String, u64> = used.iter().map(|(_, _, key, bytes)| (key.clone(), *bytes)).collect();
    for (number, card, key, bytes) in used {
        let total = free.get(&key).map(|f| f + last[&key] + reserved.get(&key).copied().unwrap_or(0));
        rows.push(number, None, &card, bytes, total, None);
    }
    Ok(rows)
}
