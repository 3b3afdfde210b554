//! `gpustat` as text, in a loop.

use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp;
use crate::units::Message;

/// `[0] name | 60'C, 68 % | 3712 / 7982 MB | …`: index, name, used, total.
fn row(line: &str) -> Option<(String, String, u64, u64)> {
    let (index, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    index.parse::<u16>().ok()?;
    let mut cells = rest.split('|');
    let name = cells.next()?.trim().to_owned();
    let amounts = cells.find_map(|c| {
        let (used, total) = c.split_once('/')?;
        let total = total.trim().strip_suffix("MB")?;
        let mib = |t: &str| t.trim().parse::<u64>().ok()?.checked_mul(1 << 20);
        Some((mib(used)?, mib(total)?))
    })?;
    Some((index.to_owned(), name, amounts.0, amounts.1))
}

/// Whether a card's line occurs.
pub fn sniff(input: &Input) -> bool {
    input.any_line(|l| row(l).is_some())
}

/// Reads the cards' lines; the host's line above them has the time.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut time = None;
    for (number, line) in (1..).zip(input.text.lines()) {
        if let Some((index, name, used, total)) = row(line) {
            let card = Card { index, name, ..Card::default() };
            rows.push(number, time, &card, used, Some(total), None);
        } else if let Some(at) = stamp::long_date(line) {
            time = Some(at);
            rows.round += 1;
        }
    }
    Ok(rows)
}
