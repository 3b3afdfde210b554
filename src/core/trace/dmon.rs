//! `nvidia-smi dmon` and `pmon`.

use super::cell::memory;
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp::{self, Order};
use super::timeline::Quantity;
use crate::units::Message;

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()).collect()
}

/// The column names of a header line (`# gpu pwr …`).
fn header(line: &str) -> Option<Vec<String>> {
    let rest = line.trim_start().strip_prefix('#')?;
    let names: Vec<String> = words(rest).into_iter().map(str::to_lowercase).collect();
    (names.iter().any(|n| n == "gpu") && names.len() > 2).then_some(names)
}

fn of_processes(names: &[String]) -> bool {
    names.iter().any(|n| n == "pid")
}

/// Whether a header with `gpu` and `pid` occurs.
pub fn sniff_pmon(input: &Input) -> bool {
    input.any_line(|l| header(l).is_some_and(|n| of_processes(&n)))
}

/// Whether a header with `gpu` and no `pid` occurs.
pub fn sniff_dmon(input: &Input) -> bool {
    input.any_line(|l| {
        header(l).is_some_and(|n| {
            !of_processes(&n)
                && n.iter().any(|n| {
                    matches!(
                        n.as_str(),
                        "pwr" | "sm" | "fb" | "mclk" | "gtemp" | "temp" | "rxpci" | "pviol" | "mem"
                    )
                })
        })
    })
}

/// Reads dmon.
pub fn read_dmon(input: &Input) -> Result<Rows, Message> {
    read(input, "trace.dmon_without_memory")
}

/// Reads pmon.
pub fn read_pmon(input: &Input) -> Result<Rows, Message> {
    read(input, "trace.pmon_without_memory")
}

fn read(input: &Input, without: &'static str) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut names: Vec<String> = Vec::new();
    let mut memory_seen = false;
    for (number, line) in (1..).zip(input.text.lines()) {
        if line.trim_start().starts_with('#') {
            if let Some(found) = header(line) {
                memory_seen |= found.iter().any(|n| n == "fb");
                names = found;
            }
            continue;
        }
        let fields = words(line);
        if fields.is_empty() || names.is_empty() {
            continue;
        }
        let at = |name: &str| names.iter().position(|n| n == name).and_then(|i| fields.get(i)).copied();
        // A command may hold blanks, and stands last.
        if fields.len() < names.len() || at("gpu").is_none_or(|g| g.parse::<u16>().is_err()) {
            rows.warn(number, Message::new("trace.row_skipped"));
            continue;
        }
        let when = match (at("date"), at("time")) {
            (Some(date), Some(time)) => stamp::stamp(&format!("{date} {time}"), Order::Month),
            (None, Some(time)) => stamp::stamp(time, Order::Month),
            _ => None,
        };
        let time = when.map(|s| rows.seconds(s));
        let mut card = Card { index: at("gpu").unwrap_or_default().to_owned(), ..Card::default() };
        if let Some(pid) = at("pid") {
            if pid == "-" {
                continue;
            }
            card.part = format!("pid {pid}");
            rows.quantity = Quantity::Process;
        }
        if let Some(used) = at("fb").and_then(|fb| memory(fb, 1 << 20, false)) {
            rows.push(number, time, &card, used, None, None);
        }
    }
    if !memory_seen {
        return Err(Message::new(without));
    }
    Ok(rows)
}
