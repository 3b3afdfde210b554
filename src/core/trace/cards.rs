//! Which card a row is about: by the best identity in the file, or by its place in each round of rows.

use super::rows::{Card, Row, Rows};
use super::timeline::{Sample, Series};
use crate::units::Message;
use std::collections::{BTreeMap, BTreeSet};

/// A card's name in the answer.
pub fn label(card: &Card) -> String {
    let best = [&card.index, &card.gpu, &card.bus, &card.uuid, &card.name];
    let card_of = best.into_iter().find(|s| !s.is_empty()).cloned().unwrap_or_else(|| "0".to_owned());
    join(card_of, &card.part)
}

fn join(card: String, part: &str) -> String {
    if part.is_empty() { card } else { format!("{card} {part}") }
}

/// Series in the order in which their cards come first.
pub fn series(rows: &mut Rows) -> Vec<Series> {
    forget_rare(rows);
    let named = identity(&rows.cards, &rows.list);
    let place = if named.is_some() { 1 } else { round_size(rows) };
    let mut out: Vec<Series> = Vec::new();
    let mut at: BTreeMap<(String, usize), usize> = BTreeMap::new();
    let mut totals: Vec<[u64; 2]> = Vec::new();
    let mut known: Vec<Option<usize>> = vec![None; rows.cards.len()];
    let (mut seat, mut round) = (0, u32::MAX);
    for row in &rows.list {
        let card = &rows.cards[row.card as usize];
        if rows.rounds && row.round != round {
            (seat, round) = (0, row.round);
        }
        let found = match known[row.card as usize] {
            Some(found) if place == 1 => found,
            _ => {
                let key = named.as_ref().map_or_else(
                    || join(String::new(), &card.part),
                    |labels| labels[row.card as usize].clone(),
                );
                let seat = if place == 1 { 0 } else { seat % place };
                let fresh = out.len();
                let found = *at.entry((key.clone(), seat)).or_insert(fresh);
                if found == fresh {
                    let gpu = match (named.is_some(), place) {
                        (true, _) => key,
                        (false, 1) => join("0".to_owned(), &card.part),
                        (false, _) => format!("row {}", seat + 1),
                    };
                    out.push(Series {
                        gpu,
                        name: (!card.name.is_empty()).then(|| card.name.clone()),
                        ..Series::default()
                    });
                    totals.push([0, 0]);
                }
                found
            }
        };
        known[row.card as usize] = Some(found);
        seat += 1;
        out[found].samples.push(Sample { time: row.time, used: row.used, line: row.line });
        if row.total > 0 {
            totals[found][0] = row.total;
        }
        if row.free != u64::MAX {
            // Unified memory: used + free moves; the most that was seen is what can be reached.
            totals[found][1] = totals[found][1].max(row.used.saturating_add(row.free));
        }
    }
    for (one, [total, sum]) in out.iter_mut().zip(totals) {
        one.total = (total > 0).then_some(total);
        one.reachable = (sum > 0).then_some(if total > 0 { sum.min(total) } else { sum });
    }
    out
}

/// Labels of the cards by the best identity that the file has; none where it has none.
fn identity(cards: &[Card], rows: &[Row]) -> Option<Vec<String>> {
    let distinct = |of: fn(&Card) -> &str| cards.iter().map(of).collect::<BTreeSet<_>>();
    let all = |of: fn(&Card) -> &str| !cards.is_empty() && cards.iter().all(|c| !of(c).is_empty());
    let pick = |of: &dyn Fn(&Card) -> String| Some(cards.iter().map(|c| join(of(c), &c.part)).collect());
    let index: fn(&Card) -> &str = |c| &c.index;
    let gpu: fn(&Card) -> &str = |c| &c.gpu;
    let name: fn(&Card) -> &str = |c| &c.name;
    for of in [|c: &Card| c.uuid.as_str(), |c: &Card| c.bus.as_str()] as [fn(&Card) -> &str; 2] {
        if all(of) {
            // The index is shorter, and as good where it names the same cards.
            let pairs: BTreeSet<_> = cards.iter().map(|c| (of(c), c.index.as_str())).collect();
            let same =
                all(index) && pairs.len() == distinct(of).len() && pairs.len() == distinct(index).len();
            return if same { pick(&|c| c.index.clone()) } else { pick(&|c| of(c).to_owned()) };
        }
    }
    if all(gpu) && (!all(index) || (distinct(index).len() == 1 && distinct(gpu).len() > 1)) {
        return pick(&|c| c.gpu.clone());
    }
    if all(index) {
        let pairs: BTreeSet<_> = cards.iter().map(|c| (&c.index, &c.name)).collect();
        // One index with several names: two machines wrote the file.
        if pairs.len() > distinct(index).len() {
            return pick(&|c| format!("{} {}", c.index, c.name));
        }
        return pick(&|c| c.index.clone());
    }
    if all(name) && distinct(name).len() > 1 && !rows.is_empty() {
        return pick(&|c| c.name.clone());
    }
    None
}

/// Rows of a card that hardly ever occurs, beside one with the same index that does: names cut or mixed where
/// two writers met.
fn forget_rare(rows: &mut Rows) {
    let mut counts = vec![0usize; rows.cards.len()];
    for row in &rows.list {
        counts[row.card as usize] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let rare = |card: usize| {
        counts[card] * 100 < most
            && counts[card] <= 2
            && rows.cards.iter().enumerate().any(|(other, c)| {
                counts[other] == most
                    && c.index == rows.cards[card].index
                    && c.part == rows.cards[card].part
                    && c.name != rows.cards[card].name
            })
    };
    let bad: Vec<bool> = (0..counts.len()).map(rare).collect();
    if !bad.contains(&true) {
        return;
    }
    let lines: Vec<u32> = rows.list.iter().filter(|r| bad[r.card as usize]).map(|r| r.line).collect();
    rows.list.retain(|row| !bad[row.card as usize]);
    for line in lines {
        rows.warn(line, Message::new("trace.row_card"));
    }
    // The words of the forgotten cards must not decide about identity.
    let mut to = vec![0u32; bad.len()];
    let mut kept = Vec::new();
    for (i, card) in std::mem::take(&mut rows.cards).into_iter().enumerate() {
        to[i] = u32::try_from(kept.len()).unwrap_or(0);
        if !bad[i] {
            kept.push(card);
        }
    }
    rows.cards = kept;
    for row in &mut rows.list {
        row.card = to[row.card as usize];
    }
}

/// How many cards take turns in rows that do not name them.
fn round_size(rows: &mut Rows) -> usize {
    let list = &rows.list;
    if rows.cards.len() > 1 || list.len() < 2 {
        return 1;
    }
    if rows.rounds {
        let mut sizes: Vec<usize> = list.chunk_by(|a, b| a.round == b.round).map(<[Row]>::len).collect();
        let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
        sizes.sort_unstable();
        let usual = sizes[sizes.len() / 2];
        if sizes.len() == 1 && first > 8 {
            return 1;
        }
        // Rounds of unequal size: a card came or went, and the rows after it stand for other cards.
        if sizes[0] != usual && !(sizes.len() > 1 && last == sizes[0] && sizes[1] == usual) && usual > 1 {
            rows.note(Message::new("trace.rounds_differ"));
        }
        return usual.max(first.min(sizes[sizes.len() - 1]));
    }
    if list.iter().any(|row| row.time.is_nan()) {
        return 1;
    }
    let steps: Vec<f64> = list.windows(2).map(|w| (w[1].time - w[0].time).max(0.0)).collect();
    let mut sorted = steps.clone();
    sorted.sort_by(f64::total_cmp);
    let large = sorted[sorted.len() * 95 / 100];
    let k = 1 + steps.iter().position(|step| *step > large * 0.5).unwrap_or(usize::MAX - 1);
    if large <= 0.0 || k == 1 || k > 32 || k > list.len() {
        return 1;
    }
    // Steps that begin a round must be the large ones, in nine rounds of ten.
    let begins = steps.iter().enumerate().filter(|(i, _)| (i + 1) % k == 0);
    let (n, good) =
        begins.fold((0, 0), |(n, good), (_, step)| (n + 1, good + usize::from(*step > large * 0.25)));
    let regular =
        n > 1 && good * 10 >= n * 9 && steps.iter().filter(|s| **s > large * 0.5).count() <= n + n / 10;
    // Or each place's own curve is far smoother than the rows in their order.
    let rough = |k: usize| -> u64 {
        (k..list.len()).map(|i| list[i].used.abs_diff(list[i - k].used)).fold(0, u64::saturating_add)
    };
    let (apart, together) = (rough(k) / k as u64, rough(1));
    let smoother = together > 0 && apart.saturating_mul(4) < together;
    let fine = list.iter().any(|row| row.time.fract() != 0.0);
    let whole = list.len().is_multiple_of(k);
    if (regular && (fine || smoother)) || (smoother && whole) {
        rows.note(Message::new("trace.by_place").with("cards", k as u64));
        k
    } else {
        1
    }
}
