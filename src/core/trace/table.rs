//! The table that plain `nvidia-smi` prints, once or in a loop.

use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp;
use crate::units::Message;

/// Whether a table's head occurs.
pub fn sniff(input: &Input) -> bool {
    input.any_line(|l| l.starts_with("| NVIDIA-SMI "))
        || input.any_line(|l| l.starts_with("|=====") && l.contains('+'))
}

/// `used MiB / total MiB` in a cell.
fn pair(cell: &str) -> Option<(u64, u64)> {
    let (used, total) = cell.split_once('/')?;
    let mib = |text: &str| text.trim().strip_suffix("MiB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 20);
    Some((mib(used)?, mib(total)?))
}

/// The index and name in a card's first line: `0  NVIDIA A100 …  On | 00000000:C1:00.0 Off | …`.
fn card(cells: &[&str]) -> Option<Card> {
    let bus = cells.get(1)?.split_whitespace().next()?;
    let shape = bus.len() >= 12 && bus.matches(':').count() == 2 && bus.contains('.');
    let mut words = cells.first()?.split_whitespace();
    let index = words.next()?.parse::<u16>().ok()?;
    let name: Vec<&str> =
        words.filter(|w| !matches!(*w, "On" | "Off" | "WDDM" | "TCC" | "MCDM" | "N/A")).collect();
    shape.then(|| Card { index: index.to_string(), name: name.join(" "), ..Card::default() })
}

/// Reads the tables.
pub fn read(input: &Input) -> Result<Rows, Message> {
    #[derive(PartialEq)]
    enum Part {
        Cards,
        Mig,
        Rest,
    }
    let mut rows = Rows::default();
    let (mut time, mut part, mut open): (_, _, Option<Card>) = (None, Part::Rest, None);
    let mut stamped = false;
    for (number, line) in (1..).zip(input.text.lines()) {
        let line = line.trim_end();
        if !line.starts_with('|') {
            if line.contains("GPU is lost") || line.contains("Unable to determine the device handle") {
                rows.warn(number, Message::new("trace.driver_message"));
            } else if let Some(at) = stamp::long_date(line).filter(|_| !line.starts_with('+')) {
                (time, stamped) = (Some(at), true);
            }
            continue;
        }
        if line.starts_with("| NVIDIA-SMI ") {
            part = Part::Cards;
            rows.round += 1;
            time = time.filter(|_| stamped);
            stamped = false;
            open = None;
            continue;
        }
        if line.contains("Processes:") {
            part = Part::Rest;
        } else if line.contains("MIG devices:") {
            (part, open) = (Part::Mig, None);
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match part {
            Part::Cards => {
                if let Some(found) = card(&cells) {
                    open = Some(found);
                } else if let Some(card) = &open {
                    if let Some((used, total)) = cells.iter().find_map(|c| pair(c)) {
                        if used <= total + total / 50 {
                            rows.push(number, time, card, used, Some(total), None);
                        }
                        open = None;
                    } else if line.contains("GPU is lost") || line.contains("ERR!") {
                        let lost = Card { index: card.index.clone(), ..Card::default() };
                        if rows.lost.iter().all(|(c, _)| *c != lost) {
                            rows.warn(
                                number,
                                Message::new("trace.card_lost").with("gpu", lost.index.as_str()),
                            );
                            rows.lost.push((lost, number));
                        }
                        open = None;
                    }
                }
            }
            Part::Mig => {
                let ids: Vec<&str> = cells.first().map_or(Vec::new(), |c| c.split_whitespace().collect());
                // The line without ids below is BAR1.
                if let ([gpu, gi, ci, _], Some((used, total))) =
                    (ids.as_slice(), cells.iter().find_map(|c| pair(c)))
                {
                    let card = Card {
                        index: (*gpu).to_owned(),
                        part: format!("GI {gi} CI {ci}"),
                        ..Card::default()
                    };
                    rows.push(number, time, &card, used, Some(total), None);
                }
            }
            Part::Rest => {}
        }
    }
    // Names are cut to fit and may differ between drivers; the index is the identity here.
    for card in &mut rows.cards {
        card.name.clear();
    }
    Ok(rows)
}
