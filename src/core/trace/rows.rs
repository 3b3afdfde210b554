//! Rows on their way to series: importers push what a line says; here rows are checked and sorted to cards.

use super::cards;
use super::stamp::Stamp;
use super::timeline::{NO_TIME, Quantity, Sample, Series, Timeline, Warning};
use crate::units::Message;
use std::collections::HashMap;

const DAY: f64 = 86_400.0;
const HOUR: f64 = 3_600.0;

/// Words by which a row names its card; empty where the file has no such column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Card {
    /// `uuid`.
    pub uuid: String,
    /// `pci.bus_id`.
    pub bus: String,
    /// `index`.
    pub index: String,
    /// A second small number, such as a script's own `gpu`.
    pub gpu: String,
    /// Product name.
    pub name: String,
    /// Process, slice, or which counter: what tells series of one card apart.
    pub part: String,
}

/// One reading before it belongs to a card.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Line of the file.
    pub line: u32,
    /// Seconds, NaN without.
    pub time: f64,
    /// Number of the round (header, date line, divider) that the row stands in.
    pub round: u32,
    /// Which card's words.
    pub card: u32,
    /// Bytes in use.
    pub used: u64,
    /// Device total, 0 without.
    pub total: u64,
    /// Free bytes, `u64::MAX` without.
    pub free: u64,
}

/// Collects rows.
#[derive(Debug, Default)]
pub struct Rows {
    /// Accepted rows.
    pub list: Vec<Row>,
    /// The cards' words, by number.
    pub cards: Vec<Card>,
    /// Warnings so far.
    pub warnings: Vec<Warning>,
    /// Cards without a value so far, with the line: the tool said that they are lost.
    pub lost: Vec<(Card, u32)>,
    /// What the samples count.
    pub quantity: Quantity,
    /// Round in progress.
    pub round: u32,
    /// Whether the tool itself prints rows in rounds, one row a card.
    pub rounds: bool,
    numbers: HashMap<Card, u32>,
    last_number: u32,
    day: f64,
    last_time: Option<f64>,
}

impl Rows {
    /// Warns about a line.
    pub fn warn(&mut self, line: u32, message: Message) {
        // A file of a million odd lines needs no million sentences.
        if self.warnings.len() < 1000 {
            self.warnings.push(Warning { line: Some(line), message });
        }
    }

    /// Warns about the file.
    pub fn note(&mut self, message: Message) {
        self.warnings.push(Warning { line: None, message });
    }

    /// The number of a card's words.
    pub fn card(&mut self, card: &Card) -> u32 {
        // Consecutive rows mostly name the same card or the next one.
        let next = self.last_number + 1;
        for guess in [self.last_number, if (next as usize) < self.cards.len() { next } else { 0 }] {
            if self.cards.get(guess as usize) == Some(card) {
                self.last_number = guess;
                return guess;
            }
        }
        let fresh = u32::try_from(self.cards.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(card.clone()).or_insert(fresh);
        if number == fresh {
            self.cards.push(card.clone());
        }
        self.last_number = number;
        number
    }

    /// Seconds of a stamp: a time of day gets a day more whenever it falls back by more than half a day.
    pub fn seconds(&mut self, stamp: Stamp) -> f64 {
        let (value, turn) = match stamp {
            Stamp::Date(value) | Stamp::Elapsed(value) => return value,
            Stamp::OfDay(value) => (value, DAY),
            Stamp::OfHour(value) => (value, HOUR),
        };
        let mut at = value + self.day;
        if self.last_time.is_some_and(|last| last - at > turn / 2.0) {
            self.day += turn;
            at += turn;
        }
        self.last_time = Some(at);
        at
    }

    /// Adds a reading.
    pub fn push(
        &mut self,
        line: u32,
        time: Option<f64>,
        card: &Card,
        used: u64,
        total: Option<u64>,
        free: Option<u64>,
    ) {
        let card = self.card(card);
        self.list.push(Row {
            line,
            time: time.unwrap_or(NO_TIME),
            round: self.round,
            card,
            used,
            total: total.unwrap_or(0),
            free: free.unwrap_or(u64::MAX),
        });
    }

    /// Sorts the rows to cards.
    pub fn finish(mut self, format: &'static str) -> Timeline {
        check_sums(&mut self);
        let mut series = cards::series(&mut self);
        for one in &mut series {
            spread(&mut one.samples);
        }
        for (card, line) in std::mem::take(&mut self.lost) {
            let key = cards::label(&card);
            match series.iter_mut().find(|s| s.gpu == key) {
                Some(found) => found.lost = found.lost.or(Some(line)),
                None => series.push(Series { gpu: key, lost: Some(line), ..Series::default() }),
            }
        }
        for one in &mut series {
            one.quantity = if one.quantity == Quantity::Used { self.quantity } else { one.quantity };
        }
        Timeline { format, series, warnings: self.warnings }
    }
}

/// Rejects rows whose used + free is not what the rows of their total come to: digits of two rows mixed.
/// Newer drivers hold a reserve, so the sum may lie below the total, but by the same amount in every row
/// (± 2 MiB: each figure is rounded); unified memory has no such sum, so a file in which it wanders is left alone.
fn check_sums(rows: &mut Rows) {
    const NEAR: u64 = 4 << 20;
    let mut sums: HashMap<(u32, u64), HashMap<u64, u32>> = HashMap::new();
    let sum = |row: &Row| (row.free != u64::MAX).then(|| row.used.saturating_add(row.free) / NEAR);
    // By the total alone, not by the card: a spliced row may name any card.
    for row in &rows.list {
        if let Some(sum) = sum(row) {
            *sums.entry((0, row.total)).or_default().entry(sum).or_default() += 1;
        }
    }
    let (mut usual, mut all) = (HashMap::new(), HashMap::new());
    for row in &rows.list {
        let key = (0, row.total);
        if let Some(counts) = sums.get(&key) {
            let most = counts.iter().max_by_key(|(sum, n)| (**n, **sum)).map(|(sum, n)| (*sum, *n));
            usual.entry(key).or_insert(most.unwrap_or_default());
            all.entry(key).or_insert_with(|| counts.values().sum::<u32>());
        }
        if usual.len() == sums.len() {
            break;
        }
    }
    let odd = |row: &Row| {
        let Some(sum) = sum(row) else { return false };
        let key = (0, row.total);
        let (common, n) = usual.get(&key).copied().unwrap_or_default();
        let of = all.get(&key).copied().unwrap_or_default();
        // A sum that four rows in five share is the card's; other cards with the same total may reserve a little
        // more or less, so only what is off by more than 1 % (and 16 MiB) is a splice.
        let off = sum.abs_diff(common) * NEAR;
        n * 5 >= of * 4 && of >= 8 && off > (16 << 20) && off > common * NEAR / 100
    };
    let bad: Vec<u32> = rows.list.iter().filter(|row| odd(row)).map(|row| row.line).collect();
    rows.list.retain(|row| !odd(row));
    for line in bad {
        rows.warn(line, Message::new("trace.row_sum"));
    }
}

/// Stamps of whole seconds or minutes repeat under faster sampling: such rows are spread evenly up to the next
/// stamp. Rows that repeat a stamp by chance are too few to matter.
fn spread(samples: &mut [Sample]) {
    let repeats = samples.windows(2).filter(|w| w[0].time == w[1].time).count();
    if repeats * 5 < samples.len() || samples.len() < 3 {
        return;
    }
    let mut from = 0;
    while from < samples.len() {
        let start = samples[from].time;
        let count = samples[from..].iter().take_while(|s| s.time == start).count().max(1);
        let step = match samples.get(from + count) {
            Some(next) if next.time > start => (next.time - start).min(60.0),
            _ => 1.0,
        };
        for (i, sample) in samples[from..from + count].iter_mut().enumerate() {
            sample.time = start + step * i as f64 / count as f64;
        }
        from += count;
    }
}
