//! CSV with a header: `nvidia-smi --query-gpu=… --format=csv`, `--query-compute-apps`, and people's own files.

use super::cell::{self, Cell};
use super::columns::{Column, column, is_nvidia};
use super::fields::{lines, separator, split};
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp::{self, Order, Stamp};
use super::timeline::Quantity;
use crate::units::Message;
use std::borrow::Cow;

/// Columns by meaning, from a header.
#[derive(Clone, Debug, Default)]
pub struct Map {
    columns: Vec<Column>,
    /// Names as written.
    pub names: Vec<String>,
    separator: char,
    /// Fields that rows have in front of what the header names.
    shift: Option<usize>,
}

impl Map {
    /// Whether a column holds memory in use, or what it follows from.
    pub fn has_memory(&self) -> bool {
        let has = |f: fn(&Column) -> bool| self.columns.iter().any(f);
        has(|c| matches!(c, Column::Used(_) | Column::Share))
            || (has(|c| matches!(c, Column::Total(_))) && has(|c| matches!(c, Column::Free(_))))
    }

    fn is_nvidia(&self) -> bool {
        self.names.iter().any(|n| is_nvidia(n))
    }

    fn at(&self, want: fn(&Column) -> bool) -> Option<usize> {
        self.columns.iter().position(want)
    }
}

/// The header that a line is, if it is one: names, no values.
pub fn header(line: &str) -> Option<Map> {
    if line.len() > 20_000 || line.trim().is_empty() {
        return None;
    }
    let separator = separator(line);
    let mut fields = Vec::new();
    split(line, separator, &mut fields);
    let name = |f: &str| {
        f.len() < 80
            && !f.contains(": ")
            && matches!(cell::cell(f, false), Cell::Text)
            && stamp::stamp(f, Order::Month).is_none()
            && f.contains(|c: char| c.is_alphabetic())
    };
    // A name may be empty (the first one of a data frame), but most must be names.
    let empty = fields.iter().filter(|f| f.is_empty()).count();
    if empty > 1 || !fields.iter().all(|f| f.is_empty() || name(f)) {
        return None;
    }
    let columns: Vec<Column> = fields.iter().map(|f| column(f)).collect();
    let known = columns.iter().filter(|c| **c != Column::Other).count();
    let bracket = fields.iter().any(|f| f.ends_with(']') && f.contains('['));
    (known > 0 && (fields.len() > 1 || bracket)).then(|| Map {
        columns,
        names: fields.iter().map(std::string::ToString::to_string).collect(),
        separator,
        shift: None,
    })
}

fn first_header(input: &Input) -> Option<Map> {
    input.head_lines().take(4000).find_map(|(_, line)| header(line).filter(Map::has_memory))
}

/// nvidia-smi's own header about cards.
pub fn sniff_query(input: &Input) -> bool {
    first_header(input).is_some_and(|m| m.is_nvidia() && !processes(&m))
}

fn processes(map: &Map) -> bool {
    map.names.iter().any(|n| n.starts_with("used_gpu_memory") || n.starts_with("used_memory"))
}

/// nvidia-smi's own header about processes.
pub fn sniff_processes(input: &Input) -> bool {
    first_header(input).is_some_and(|m| processes(&m))
}

/// Any header with a memory column.
pub fn sniff_any(input: &Input) -> bool {
    first_header(input).is_some()
}

/// Reads the rows under their headers.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let order = date_order(input);
    let mut map: Option<Map> = None;
    let (mut fields, mut comma) = (Vec::new(), false);
    let (mut date, mut headers, mut readings, mut blank) = (None, 0u32, 0u64, 0u64);
    let mut process = false;
    for (number, line) in lines(input.text) {
        if line.trim().is_empty() {
            continue;
        }
        // Digits first: a row is far more common than a header.
        let row = line.as_bytes()[0].is_ascii_digit() && map.is_some();
        if !row && let Some(found) = header(line) {
            if found.has_memory() {
                headers += 1;
                rows.round += 1;
                comma = found.separator != ',';
                process = processes(&found);
                map = Some(Map {
                    shift: map.as_ref().filter(|m| m.names == found.names).and_then(|m| m.shift),
                    ..found
                });
            }
            continue;
        }
        let Some(map) = map.as_mut() else {
            if let Some(at) = stamp::long_date(line) {
                date = Some(at);
            }
            continue;
        };
        split(line, map.separator, &mut fields);
        if fields.len() == map.names.len() + 1 && fields.last().is_some_and(|f| f.is_empty()) {
            fields.pop();
        }
        let cut = input.open_end
            && std::ptr::eq(line.as_bytes().as_ptr_range().end, input.text.as_bytes().as_ptr_range().end);
        if process && fields.len() > map.names.len() {
            join_name(&mut fields, map);
        }
        let shift = match fields.len().checked_sub(map.names.len()) {
            Some(0) => 0,
            Some(1) => {
                if map.shift.is_none() {
                    let (names, count) = (map.columns.len() as u64, fields.len() as u64);
                    rows.note(Message::new("trace.header_short").with("names", names).with("fields", count));
                }
                let shift = map.shift.unwrap_or_else(|| usize::from(shifted(map, &fields, order)));
                map.shift = Some(shift);
                shift
            }
            _ => {
                if let Some(at) = stamp::long_date(line) {
                    date = Some(at);
                    rows.round += 1;
                } else if cut {
                    rows.warn(number, Message::new("trace.cut_line"));
                } else if !input.is_table_line(line) {
                    rows.warn(number, Message::new("trace.row_skipped"));
                }
                continue;
            }
        };
        match value(map, &fields[shift..], comma, order, &mut rows) {
            Reading::Value(card, time, used, total, free, share) => {
                // The last digits of a cut line may be missing.
                if cut
                    && map.at(|c| matches!(c, Column::Used(_))) == Some(map.columns.len() - 1)
                    && map.is_nvidia()
                    && !line.ends_with('B')
                    && map_has_units(input)
                {
                    rows.warn(number, Message::new("trace.cut_line"));
                    continue;
                }
                if share {
                    rows.quantity = Quantity::Share;
                }
                readings += 1;
                rows.push(number, time.or(date), &card, used, total, free);
            }
            Reading::Lost(card) => rows.lost.push((card, number)),
            Reading::None => blank += 1,
            Reading::Bad => rows.warn(number, Message::new("trace.row_skipped")),
        }
    }
    // Headers before every row say nothing; before every batch of rows they are its rounds.
    rows.rounds = headers > 1 && readings > u64::from(headers);
    if process {
        rows.quantity = Quantity::Process;
    }
    if readings == 0 && blank > 0 {
        return Err(Message::new(if process { "trace.no_process_values" } else { "trace.no_values" }));
    }
    Ok(rows)
}

fn map_has_units(input: &Input) -> bool {
    input.head_lines().take(40).filter(|(_, l)| l.contains(" MiB")).count() > 1
}

enum Reading {
    Value(Card, Option<f64>, u64, Option<u64>, Option<u64>, bool),
    Lost(Card),
    None,
    Bad,
}

fn value(map: &Map, fields: &[Cow<str>], comma: bool, order: Order, rows: &mut Rows) -> Reading {
    let mut card = Card::default();
    let (mut time, mut used, mut total, mut free, mut share) = (None, None, None, None, None);
    let (mut lost, mut bad) = (false, false);
    for (column, text) in map.columns.iter().zip(fields) {
        let amount = |bare: u64| cell::memory(text, bare, comma);
        match column {
            Column::Time => {
                let found =
                    stamp::stamp(&if comma { text.replace(',', ".") } else { text.to_string() }, order);
                bad |= found.is_none() && !text.is_empty();
                time = time.or(found.map(|s| rows.seconds(s)));
            }
            Column::Index => card.index = (**text).to_owned(),
            Column::Gpu => card.gpu = (**text).to_owned(),
            Column::Uuid => card.uuid = (**text).to_owned(),
            Column::Bus => card.bus = (**text).to_owned(),
            Column::Name => card.name = (**text).to_owned(),
            Column::Pid => card.part = format!("pid {text}"),
            Column::Used(bare) => {
                used = used.or(amount(*bare));
                let cell = cell::cell(text, comma);
                lost |= cell == Cell::Lost;
                bad |= cell == Cell::Text;
            }
            Column::Share => {
                if let Cell::Number(value, _) = cell::cell(text, comma) {
                    share = share.or((0.0..=100.5).contains(&value).then_some(value));
                }
            }
            Column::Total(bare) => total = total.or(amount(*bare)),
            Column::Free(bare) => free = free.or(amount(*bare)),
            Column::Other => {}
        }
    }
    if bad {
        return Reading::Bad;
    }
    if lost {
        return Reading::Lost(card);
    }
    if let Some(used) = used {
        return if total.is_some_and(|t| t > 0 && used > t + t / 50) {
            Reading::Bad
        } else {
            Reading::Value(card, time, used, total, free, false)
        };
    }
    match (total, free, share) {
        (Some(total), Some(free), _) if free <= total => {
            Reading::Value(card, time, total - free, Some(total), None, false)
        }
        (Some(total), None, Some(share)) if total > 0 => {
            Reading::Value(card, time, (total as f64 * share / 100.0) as u64, Some(total), None, false)
        }
        (None, None, Some(share)) => {
            Reading::Value(card, time, (share * 1e4) as u64, Some(1_000_000), None, true)
        }
        _ => Reading::None,
    }
}

/// A process name with commas: fields from the left up to the pid, from the right from the amount on.
fn join_name(fields: &mut Vec<Cow<str>>, map: &Map) {
    let extra = fields.len() - map.names.len();
    let Some(at) = map.names.iter().position(|n| n.contains("name")) else { return };
    let joined = fields[at..=at + extra].join(",");
    fields.splice(at..=at + extra, [joined.into()]);
}

/// Whether rows with one field more than names have it in front: the columns' kinds must fit.
fn shifted(map: &Map, fields: &[Cow<str>], order: Order) -> bool {
    let fits = |fields: &[Cow<str>]| -> usize {
        let fit = |(column, text): (&Column, &Cow<str>)| match column {
            Column::Time => stamp::stamp(text, order).is_some(),
            Column::Index | Column::Gpu => text.parse::<u16>().is_ok(),
            Column::Name => matches!(cell::cell(text, false), Cell::Text),
            Column::Used(_) | Column::Total(_) | Column::Free(_) => {
                cell::memory(text, 1 << 20, false).is_some_and(|b| b > 0)
            }
            _ => false,
        };
        map.columns.iter().zip(fields).filter(|pair| fit(*pair)).count()
    };
    fits(&fields[1..]) > fits(fields)
}

/// Day first or month first, where the file leaves it open.
fn date_order(input: &Input) -> Order {
    let mark = |c: char| matches!(c, ',' | ';' | '\t');
    let cells = input.head_lines().map(|(_, line)| line.split(mark).next().unwrap_or_default());
    let open = cells.clone().take(50).any(|c| {
        matches!((stamp::stamp(c, Order::Day), stamp::stamp(c, Order::Month)),
        (Some(Stamp::Date(a)), Some(Stamp::Date(b))) if (a - b).abs() > 1.0)
    });
    if open { stamp::order(&cells) } else { Order::Month }
}
