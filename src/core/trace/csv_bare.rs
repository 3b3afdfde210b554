//! Rows without a header: columns are told by their values, and the guess is said.

use super::cell::{self, Cell, Unit};
use super::csv_header;
use super::fields::{lines, separator, split};
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp::{self, Order, Stamp};
use crate::units::Message;
use std::borrow::Cow;

const MIB: u64 = 1 << 20;
/// Rows looked at before columns are told.
const PROBE: usize = 4000;

/// One row: its stamp, and the fields after it.
struct Bare<'a> {
    time: Option<Stamp>,
    fields: Vec<Cow<'a, str>>,
}

fn bare(line: &str) -> Option<Bare<'_>> {
    let (time, rest) = match stamp::leading(line, Order::Month) {
        Some((time, rest)) => (Some(time), rest),
        None => (None, line),
    };
    let rest = rest.trim_start_matches([',', ';', '\t', ' ', ']']);
    let mark = separator(rest);
    let mut fields = Vec::new();
    split(rest, mark, &mut fields);
    let number = |f: &Cow<str>| matches!(cell::cell(f, false), Cell::Number(..) | Cell::Missing | Cell::Lost);
    let numbers = fields.iter().filter(|f| number(f)).count();
    // A row is mostly numbers; prose with commas is not.
    (numbers > 0
        && numbers * 2 >= fields.len()
        && fields.iter().all(|f| f.len() < 80 && !f.contains(": "))
        && (fields.len() > 1
            || time.is_some()
            || matches!(cell::cell(&fields[0], false), Cell::Number(_, Unit::Bytes(_)))))
    .then_some(Bare { time, fields })
}

/// Which field is what.
#[derive(Clone, Debug, Default, PartialEq)]
struct Guess {
    fields: usize,
    index: Option<usize>,
    name: Option<usize>,
    used: Option<usize>,
    total: Option<usize>,
    free: Option<usize>,
    /// Several fields could have been the memory in use.
    open: bool,
}

/// What a column's values have in common.
#[derive(Debug, Default)]
struct Kind {
    numbers: usize,
    memory: usize,
    plain: usize,
    text: usize,
    whole: bool,
    least: f64,
    most: f64,
    changes: usize,
}

fn guess(rows: &[Bare]) -> Option<Guess> {
    let mut counts = std::collections::BTreeMap::new();
    for row in rows {
        *counts.entry(row.fields.len()).or_insert(0usize) += 1;
    }
    let width = counts.into_iter().max_by_key(|(_, n)| *n)?.0;
    let rows: Vec<&Bare> = rows.iter().filter(|r| r.fields.len() == width).collect();
    let values = |at: usize| {
        rows.iter().filter_map(move |r| match cell::cell(&r.fields[at], false) {
            Cell::Number(value, unit) => Some((value, unit)),
            _ => None,
        })
    };
    let mut kinds = Vec::new();
    for at in 0..width {
        let mut kind = Kind { whole: true, least: f64::MAX, most: f64::MIN, ..Kind::default() };
        let mut last = None;
        for (value, unit) in values(at) {
            kind.numbers += 1;
            kind.memory += usize::from(matches!(unit, Unit::Bytes(_)));
            kind.plain += usize::from(unit == Unit::None);
            kind.whole &= value.fract() == 0.0;
            (kind.least, kind.most) = (kind.least.min(value), kind.most.max(value));
            kind.changes += usize::from(last.is_some_and(|l| l != value));
            last = Some(value);
        }
        kind.text = rows.iter().filter(|r| cell::cell(&r.fields[at], false) == Cell::Text).count();
        kinds.push(kind);
    }
    let mut out = Guess { fields: width, ..Guess::default() };
    out.name = kinds.iter().position(|k| k.text * 2 > rows.len()).filter(|at| rows[0].fields[*at].len() > 3);
    let with_unit: Vec<usize> = (0..width).filter(|i| kinds[*i].memory * 2 > rows.len()).collect();
    let few = |k: &Kind| k.numbers > 0 && k.plain == k.numbers && k.whole && k.least >= 0.0 && k.most < 16.0;
    // A card's index comes first, and is small; it turns over row by row, or there is one card.
    out.index = (0..width.min(2)).find(|i| {
        let k = &kinds[*i];
        let others = (0..width).filter(|j| j != i && kinds[*j].numbers > 0).count();
        few(k)
            && others >= 1
            && (k.least == k.most && *i == 0 || (k.least == 0.0 && k.changes * 3 > k.numbers && k.most > 0.0))
    });
    let plain: Vec<usize> = if with_unit.is_empty() {
        (0..width)
            .filter(|i| {
                Some(*i) != out.index && kinds[*i].numbers > 0 && kinds[*i].plain == kinds[*i].numbers
            })
            .collect()
    } else {
        with_unit
    };
    let with_unit = kinds[*plain.first()?].memory > 0;
    let of = |at: usize, row: &Bare| match cell::cell(&row.fields[at], false) {
        Cell::Number(value, _) => Some(value),
        _ => None,
    };
    // The sum of two columns that both move is the third, or does not move: used and free.
    let steady = |a: usize, b: usize| {
        let sums: Vec<f64> = rows.iter().filter_map(|r| Some(of(a, r)? + of(b, r)?)).collect();
        let first = sums.first().copied().unwrap_or(0.0);
        sums.len() >= 2
            && first >= 512.0
            && sums.iter().filter(|s| (**s - first).abs() <= 4.0).count() * 10 >= sums.len() * 9
    };
    let big = |at: usize| kinds[at].most >= 1024.0 && kinds[at].least >= 0.0;
    // A total does not move while it is the largest: few distinct values, one a card.
    let total = plain.iter().copied().filter(|i| big(*i)).find(|i| {
        let distinct: std::collections::BTreeSet<u64> = values(*i).map(|(v, _)| v.to_bits()).collect();
        kinds[*i].least >= 1024.0
            && distinct.len() <= 1.max(rows.len() / 4).min(4)
            && plain.iter().all(|j| {
                j == i || rows.iter().all(|r| of(*j, r).is_none_or(|v| of(*i, r).is_none_or(|t| v <= t)))
            })
    });
    let pair = (0..plain.len())
        .flat_map(|a| (a + 1..plain.len()).map(move |b| (a, b)))
        .map(|(a, b)| (plain[a], plain[b]))
        .find(|(a, b)| {
            Some(*a) != total
                && Some(*b) != total
                && steady(*a, *b)
                && (kinds[*a].changes > 0 || with_unit || total.is_some())
        });
    if let Some((a, b)) = pair {
        (out.used, out.free, out.total) = (Some(a), Some(b), total);
        out.open = true;
        return Some(out);
    }
    if plain.len() == 1 && with_unit {
        out.used = Some(plain[0]);
        return Some(out);
    }
    if let Some(total) = total.filter(|_| plain.len() > 1) {
        // The column beside the total; in a file with units there is no other.
        let place = plain.iter().position(|i| *i == total)?;
        let before = place.checked_sub(1).map(|p| plain[p]).filter(|i| i + 1 == total);
        let after = plain.get(place + 1).copied().filter(|i| *i == total + 1);
        out.used = match (before, after) {
            (Some(b), Some(a)) if kinds[a].most > 100.0 && kinds[b].most <= 100.0 => Some(a),
            (Some(b), _) => Some(b),
            (None, a) => a,
        };
        out.total = Some(total);
        out.open = true;
        return out.used.map(|_| out);
    }
    // No total: the one column beyond what per cents and degrees reach.
    let beyond: Vec<usize> =
        plain.iter().copied().filter(|i| with_unit || (kinds[*i].most > 150.0 && kinds[*i].whole)).collect();
    out.open = beyond.len() != 1;
    out.used = beyond.iter().copied().max_by(|a, b| kinds[*a].most.total_cmp(&kinds[*b].most));
    out.used.map(|_| out)
}

fn probe<'a>(input: &Input<'a>) -> (Vec<Bare<'a>>, usize) {
    let (mut rows, mut all) = (Vec::new(), 0);
    for (_, line) in input.head_lines().take(PROBE) {
        if line.trim().is_empty() || line.starts_with(['#', '=', '-', '+', '|']) {
            continue;
        }
        // A date or a time alone on its line belongs to the rows below.
        if stamp::long_date(line).is_some()
            || stamp::stamp(line, Order::Month).is_some_and(|s| !matches!(s, Stamp::Elapsed(_)))
        {
            continue;
        }
        all += 1;
        rows.extend(bare(line));
    }
    (rows, all)
}

/// Whether a third of the lines are rows in which memory can be told.
pub fn sniff(input: &Input) -> bool {
    let (rows, all) = probe(input);
    if rows.is_empty() || rows.len() * 10 < all * 3 {
        return false;
    }
    let timed = rows.iter().filter(|r| r.time.is_some()).count() * 2 > rows.len();
    let dated = input.head_lines().take(200).any(|(_, l)| {
        stamp::long_date(l).is_some()
            || stamp::stamp(l, Order::Month).is_some_and(|s| !matches!(s, Stamp::Elapsed(_)))
    });
    guess(&rows).is_some_and(|g| timed || dated || (g.total.is_some() || g.free.is_some()) || rows.len() >= 5)
        && !input.head_lines().take(50).any(|(_, l)| csv_header::header(l).is_some())
}

/// Reads the rows.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let (probe, _) = probe(input);
    let guess = guess(&probe).ok_or_else(|| Message::new("trace.unknown"))?;
    let mut rows = Rows::default();
    let of = |at: Option<usize>| at.map_or(0, |i| i as u64 + 1);
    rows.note(
        Message::new(if guess.open { "trace.guessed_open" } else { "trace.guessed" })
            .with("field", of(guess.used)),
    );
    let (mut date, mut last_dates, mut gap) = (None, 0u32, false);
    for (number, line) in lines(input.text) {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if text.starts_with(['-', '=', '+']) && !text.contains(|c: char| c.is_ascii_digit()) {
            gap = true;
            continue;
        }
        let alone = stamp::stamp(text, Order::Month).filter(|s| !matches!(s, Stamp::Elapsed(_)));
        if let Some(at) = stamp::long_date(text).or_else(|| alone.map(|s| rows.seconds(s))) {
            date = Some(at);
            last_dates += 1;
            rows.round += 1;
            continue;
        }
        if std::mem::take(&mut gap) && last_dates == 0 {
            rows.round += 1;
        }
        let Some(row) = bare(line) else {
            rows.warn(number, Message::new("trace.row_skipped"));
            continue;
        };
        let cut =
            input.open_end && line.as_bytes().as_ptr_range().end == input.text.as_bytes().as_ptr_range().end;
        if row.fields.len() != guess.fields {
            rows.warn(number, Message::new(if cut { "trace.cut_line" } else { "trace.row_skipped" }));
            continue;
        }
        let amount = |at: Option<usize>| at.and_then(|i| cell::memory(&row.fields[i], MIB, false));
        let word = |at: Option<usize>| at.map(|i| row.fields[i].to_string()).unwrap_or_default();
        let card = Card { index: word(guess.index), name: word(guess.name), ..Card::default() };
        let time = row.time.map(|s| rows.seconds(s)).or(date);
        match amount(guess.used) {
            Some(used) => {
                let (total, free) = (amount(guess.total), amount(guess.free));
                if total.is_some_and(|t| used > t + t / 50) {
                    rows.warn(number, Message::new("trace.row_skipped"));
                } else {
                    rows.push(number, time, &card, used, total, free);
                }
            }
            None if guess.used.is_some_and(|i| cell::cell(&row.fields[i], false) == Cell::Lost) => {
                rows.lost.push((card, number));
            }
            None => rows.warn(number, Message::new("trace.row_skipped")),
        }
    }
    // Rows under date lines come in rounds; a date line before the first row only dates the file.
    rows.rounds = rows.round > 0 && guess.index.is_none();
    if rows.rounds && last_dates == 0 && rows.list.iter().any(|r| !r.time.is_nan()) {
        rows.rounds = false;
    }
    Ok(rows)
}
