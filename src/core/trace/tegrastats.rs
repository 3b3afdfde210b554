//! `tegrastats` of Jetson boards: memory of the whole system, which processor and GPU share.

use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp::{self, Order};
use crate::units::Message;

/// `RAM 506/3964MB`.
fn ram(line: &str) -> Option<(u64, u64)> {
    let at = line.find("RAM ").filter(|at| *at == 0 || line[..*at].ends_with(' '))?;
    let (used, rest) = line[at + 4..].split_once('/')?;
    let end = rest.find("MB")?;
    let mib = |t: &str| t.trim().parse::<u64>().ok()?.checked_mul(1 << 20);
    Some((mib(used)?, mib(&rest[..end])?))
}

/// Whether such a line occurs.
pub fn sniff(input: &Input) -> bool {
    input.any_line(|l| ram(l).is_some())
}

/// Reads the lines.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    rows.note(Message::new("trace.unified"));
    for (number, line) in (1..).zip(input.text.lines()) {
        if let Some((used, total)) = ram(line) {
            let head = line[..line.find("RAM ").unwrap_or(0)].trim();
            let time = stamp::stamp(head, Order::Month).map(|s| rows.seconds(s));
            rows.push(number, time, &Card::default(), used, Some(total), None);
        }
    }
    Ok(rows)
}
