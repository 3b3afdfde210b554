//! Goes through a text of any length and lets every rule read where its message starts.

use super::find::Finder;
use super::found::Found;
use super::lines::{Line, clean, mark_broken};
use super::readers::READERS;
use super::window::{Window, counts, squeezed};

/// Bytes of text taken at once.
const BLOCK: usize = 256 << 10;
/// Lines kept for messages that go on in the next block.
const CARRY: usize = 96;

/// Reads all of `text` into `found`.
pub(crate) fn scan(text: &str, found: &mut Found) {
    let rules: Vec<_> =
        READERS.iter().flat_map(|reader| reader.rules.iter().map(move |rule| (reader, rule))).collect();
    let finder = Finder::new(rules.iter().map(|(_, rule)| squeezed(rule.anchor)));
    let mut lines: Vec<Line> = Vec::new();
    let mut number = 0u32;
    let mut size = 0usize;
    let mut rest = text.split('\n').peekable();
    while let Some(raw) = rest.next() {
        number = number.saturating_add(1);
        size += raw.len() + 1;
        clean(raw, number, &mut lines);
        let last = rest.peek().is_none();
        if size < BLOCK && !last {
            continue;
        }
        mark_broken(&mut lines);
        let done = if last { lines.len() } else { lines.len().saturating_sub(CARRY) };
        for (index, first, offset) in hits(&lines, done, &finder) {
            if let Some((reader, rule)) = rules.get(index)
                && let Some(mut window) = window(&lines, first, rule.start(offset), rule.most())
            {
                found.reader = reader.id;
                rule.read(&mut window, found);
            }
        }
        lines.drain(..done);
        size = 0;
    }
}

/// Where messages start in the first `done` lines, in order: rule, line, byte of the line's text that counts.
fn hits(lines: &[Line], done: usize, finder: &Finder) -> Vec<(usize, usize, usize)> {
    let mut flat = Vec::with_capacity(lines.iter().map(|l| l.text.len()).sum());
    let mut starts = Vec::with_capacity(lines.len());
    for line in lines {
        starts.push(flat.len());
        flat.extend(line.text.bytes().filter(|b| counts(*b)));
    }
    let mut hits = Vec::new();
    finder.find(&flat, |at, index| {
        // The last line that starts at or before the hit.
        let first = starts.partition_point(|s| *s <= at).saturating_sub(1);
        if first < done {
            hits.push((index, first, at - starts.get(first).copied().unwrap_or(at)));
        }
    });
    hits
}

/// At most `most` bytes from byte `offset` of line `first` on; lines of other ranks that came between are left out.
fn window(lines: &[Line], first: usize, offset: usize, most: usize) -> Option<Window> {
    let head = lines.get(first)?;
    let mut window = Window::new(head.rank, head.time);
    let mut glued = false;
    for line in lines.iter().skip(first).take(CARRY) {
        if line.rank.is_some() && head.rank.is_some() && line.rank != head.rank {
            continue;
        }
        let skip = if window.len() == 0 { offset } else { 0 };
        window.push(&line.text, line.number, glued, skip, most);
        glued = line.broken;
        if window.len() >= most {
            break;
        }
    }
    Some(window)
}
