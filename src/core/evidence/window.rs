//! The text from a hit on, without blanks: a message matches however it was wrapped, indented or spaced.

use super::Figure;
use super::number::{self, Unit};

/// Blanks and back quotes do not count in a comparison: people's terminals and web pages change them.
pub(crate) fn counts(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && byte != b'`'
}

/// `text` without the bytes that do not count.
pub(crate) fn squeezed(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| counts(*b)).collect()
}

/// A stretch of text with the line of every byte.
#[derive(Debug, Default)]
pub(crate) struct Window {
    text: Vec<u8>,
    /// Whether a blank stood before the byte.
    gap: Vec<bool>,
    line: Vec<u32>,
    /// Rank that printed the first line.
    pub(crate) rank: Option<u32>,
    /// Time of the first line.
    pub(crate) time: Option<u64>,
}

impl Window {
    /// An empty window of a line of that rank and time.
    pub(crate) fn new(rank: Option<u32>, time: Option<u64>) -> Window {
        Window { rank, time, ..Window::default() }
    }

    /// Adds one line without its first `skip` bytes that count, up to `most` in all; `glued` says that the line
    /// before it was broken off in mid-word by a terminal.
    pub(crate) fn push(&mut self, text: &str, line: u32, glued: bool, mut skip: usize, most: usize) {
        let mut gap = !glued;
        for byte in text.bytes() {
            if self.text.len() >= most {
                break;
            }
            if counts(byte) && skip > 0 {
                skip -= 1;
            } else if counts(byte) {
                self.text.push(byte);
                self.gap.push(gap);
                self.line.push(line);
                gap = false;
            } else if byte != b'`' {
                gap = true;
            }
        }
    }

    /// Drops everything from `end` on.
    pub(crate) fn end_at(&mut self, end: usize) {
        self.text.truncate(end);
        self.gap.truncate(end);
        self.line.truncate(end);
    }

    /// Number of bytes that count.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The line of the byte at `at`.
    pub(crate) fn line(&self, at: usize) -> u32 {
        self.line.get(at).or(self.line.last()).copied().unwrap_or(0)
    }

    /// The end of the line that holds `at`.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        let line = self.line(at);
        self.line.partition_point(|l| *l <= line)
    }

    /// The first place of `marker` in `from..to`, as (start, end).
    pub(crate) fn find(&self, marker: &str, from: usize, to: usize) -> Option<(usize, usize)> {
        let wanted = squeezed(marker);
        let hay = self.text.get(from..to.min(self.text.len()))?;
        if wanted.is_empty() {
            return Some((from, from));
        }
        let at = hay.windows(wanted.len()).position(|w| w == wanted)? + from;
        Some((at, at + wanted.len()))
    }

    /// Whether `marker` stands in `from..to`.
    pub(crate) fn has(&self, marker: &str, from: usize, to: usize) -> bool {
        self.find(marker, from, to).is_some()
    }

    fn joined(&self, at: usize) -> bool {
        self.gap.get(at).is_some_and(|g| !g)
    }

    /// The figure that starts at `at`, and its end.
    pub(crate) fn figure(&self, at: usize, unit: Unit) -> Option<(Figure, usize)> {
        let rest = self.text.get(at..)?;
        match unit {
            Unit::Word => return self.word(at),
            Unit::Phrase => return self.phrase(at),
            Unit::Flag => {
                let lower: Vec<u8> = rest.iter().take(5).map(u8::to_ascii_lowercase).collect();
                return match &lower[..] {
                    l if l.starts_with(b"true") => Some((Figure::Flag(true), at + 4)),
                    l if l.starts_with(b"false") => Some((Figure::Flag(false), at + 5)),
                    _ => None,
                };
            }
            _ => {}
        }
        let length = number::number_end(rest, |i| self.joined(at + i));
        let digits = rest.get(..length)?;
        let end = at + length;
        match unit {
            Unit::Count => Some((Figure::Count(number::parse_whole(digits)?), end)),
            Unit::Real => Some((Figure::Real(number::parse(digits)?), end)),
            _ => {
                let tail = rest.get(length..).unwrap_or_default();
                // A unit ends where a blank or something that is no letter follows.
                let ends = |n: usize| {
                    tail.get(n).is_none_or(|b| !b.is_ascii_alphanumeric() || !self.joined(end + n))
                };
                let (factor, width) = number::unit_at(tail, unit, ends)
                    .or_else(|| number::bare(unit).map(|factor| (factor, 0)))?;
                let exact = number::parse_whole(digits).filter(|_| (factor - 1.0).abs() < f64::EPSILON);
                let bytes = match exact {
                    Some(whole) => i64::try_from(whole).unwrap_or(i64::MAX),
                    None => (number::parse(digits)? * factor).round() as i64,
                };
                Some((Figure::Bytes(bytes), end + width))
            }
        }
    }

    fn word(&self, at: usize) -> Option<(Figure, usize)> {
        let quote = self.text.get(at).copied().filter(|b| *b == b'\'' || *b == b'"');
        let start = at + usize::from(quote.is_some());
        let mut end = start;
        while let Some(byte) = self.text.get(end) {
            let stop = match quote {
                Some(q) => *byte == q,
                None => matches!(byte, b',' | b')' | b']' | b'}' | b';' | b'\'' | b'"'),
            };
            if stop || (quote.is_none() && end > start && !self.joined(end)) || end - start > 300 {
                break;
            }
            end += 1;
        }
        let word = String::from_utf8_lossy(self.text.get(start..end)?).into_owned();
        (!word.is_empty()).then_some((Figure::Text(word), end + usize::from(quote.is_some())))
    }

    /// Words up to the end of the line or a mark, one blank between them.
    fn phrase(&self, at: usize) -> Option<(Figure, usize)> {
        let line = self.line_end(at).min(at + 120);
        let mut words = Vec::new();
        let mut end = at;
        while let Some(byte) = self.text.get(end).filter(|_| end < line) {
            if matches!(byte, b',' | b';' | b'|' | b')' | b']' | b'"' | b'\'' | b'(') {
                break;
            }
            if end > at && !self.joined(end) {
                words.push(b' ');
            }
            words.push(*byte);
            end += 1;
        }
        let phrase = String::from_utf8_lossy(&words).trim().to_owned();
        (!phrase.is_empty()).then_some((Figure::Text(phrase), end))
    }

    /// The figure that ends right before `end`, and its start.
    pub(crate) fn figure_before(&self, end: usize, unit: Unit) -> Option<(Figure, usize)> {
        let is_figure = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b',' | b'-' | b'_');
        let mut start = end;
        while start > 0 && end - start < 40 && self.text.get(start - 1).is_some_and(is_figure) {
            start -= 1;
        }
        // From the farthest start inwards: the longest figure that ends exactly here.
        (start..end)
            .filter(|at| self.text.get(*at).is_some_and(|b| b.is_ascii_digit() || *b == b'-'))
            .filter(|at| *at == 0 || !self.joined(*at) || !self.digit(*at - 1))
            .find_map(|at| self.figure(at, unit).filter(|(_, e)| *e == end).map(|(f, _)| (f, at)))
    }

    fn digit(&self, at: usize) -> bool {
        self.text.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'.')
    }

    /// The text of `from..to`, without blanks.
    pub(crate) fn slice(&self, from: usize, to: usize) -> String {
        let to = to.min(self.text.len());
        String::from_utf8_lossy(self.text.get(from.min(to)..to).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Unit, Window};

    fn window(lines: &[&str]) -> Window {
        let mut w = Window::default();
        for (i, line) in lines.iter().enumerate() {
            w.push(line, i as u32 + 1, false, 0, 4096);
        }
        w
    }

    #[test]
    fn a_size_is_read_after_and_before_a_marker() {
        let w = window(&["GPU 0; 7.80 GiB total", "capacity; 512 bytes free"]);
        let (at, _) = w.find("total capacity", 0, w.len()).unwrap();
        assert_eq!(w.figure_before(at, Unit::Binary).unwrap().0, Figure::Bytes(8_375_186_227));
        let (at, _) = w.find("free", 0, w.len()).unwrap();
        assert_eq!(w.figure_before(at, Unit::Binary).unwrap().0, Figure::Bytes(512));
        assert_eq!(w.line(at), 2);
    }

    #[test]
    fn figures_of_two_lines_do_not_run_together() {
        let w = window(&["blocks: 7281", "2048 more"]);
        let (_, end) = w.find("blocks:", 0, w.len()).unwrap();
        assert_eq!(w.figure(end, Unit::Count).unwrap().0, Figure::Count(7281));
    }

    #[test]
    fn thousands_signs_and_words() {
        let w = window(&["size: 93,872 tokens, -1.44 GiB, model='a/b c', 1,2"]);
        let after = |marker: &str, unit| {
            let (_, end) = w.find(marker, 0, w.len()).unwrap();
            w.figure(end, unit).map(|(f, _)| f)
        };
        assert_eq!(after("size:", Unit::Count), Some(Figure::Count(93_872)));
        assert_eq!(after("tokens,", Unit::Binary), Some(Figure::Bytes(-1_546_188_227)));
        assert_eq!(after("model=", Unit::Word), Some(Figure::Text("a/bc".into())));
        assert_eq!(after("', ", Unit::Count), Some(Figure::Count(1)));
        assert_eq!(after("model=", Unit::Binary), None);
    }
}
