//! Lines as a program printed them: what terminals, loggers, launchers and container engines put before them is
//! taken off, and the rank and the time that it names are kept.

use super::prefix;
use std::borrow::Cow;

/// One line without its prefixes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// The rest.
    pub(crate) text: String,
    /// Number in the file, from 1.
    pub(crate) number: u32,
    /// Rank named by a prefix.
    pub(crate) rank: Option<u32>,
    /// Time as a number that sorts.
    pub(crate) time: Option<u64>,
    /// Whole length as it stood in the file, in characters: terminals break lines at one width.
    pub(crate) width: u32,
    /// Whether something was taken off its start: a line of its own, no rest of the one before.
    pub(crate) tagged: bool,
    /// Whether the next line goes on in mid-word.
    pub(crate) broken: bool,
}

/// The longest part of a line that is looked at: beyond it stand dumps, not messages.
const LONGEST: usize = 64 << 10;

/// The lines of one physical line of a file: more than one where a JSON record holds several.
pub(crate) fn clean(raw: &str, number: u32, lines: &mut Vec<Line>) {
    let raw = raw.trim_end_matches(['\r', '\n']);
    let raw = cut(raw, LONGEST);
    let plain = without_escapes(raw);
    let width = u32::try_from(plain.chars().count()).unwrap_or(u32::MAX);
    let seen = prefix::strip(&plain);
    if let Some(inner) = json_message(seen.rest) {
        for part in inner.split('\n') {
            let inside = prefix::strip(part);
            lines.push(Line {
                text: inside.rest.to_owned(),
                number,
                rank: inside.rank.or(seen.rank),
                time: inside.time.or(seen.time),
                width: 0,
                tagged: true,
                broken: false,
            });
        }
        return;
    }
    lines.push(Line {
        text: seen.rest.to_owned(),
        number,
        rank: seen.rank,
        time: seen.time,
        width,
        tagged: seen.rest.len() < plain.trim_start().len() || plain.starts_with([' ', '\t']),
        broken: false,
    });
}

fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// `text` without terminal escapes, progress bars drawn over (what stands before the last bare carriage return)
/// and NUL bytes.
fn without_escapes(text: &str) -> Cow<'_, str> {
    let odd = |b: u8| b == 0x1B || b == 0 || b == b'\r' || b == 0x08;
    if !text.bytes().any(odd) && !text.contains("\u{FFFD}[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1B}' | '\u{FFFD}' if chars.peek() == Some(&'[') => {
                chars.next();
                // CSI: parameters, then one final letter.
                while chars.peek().is_some_and(|c| c.is_ascii_digit() || matches!(c, ';' | '?' | ':')) {
                    chars.next();
                }
                chars.next_if(char::is_ascii_alphabetic);
            }
            '\u{1B}' if chars.peek() == Some(&']') => {
                // OSC: up to BEL or another escape.
                while chars.next_if(|c| *c != '\u{7}' && *c != '\u{1B}').is_some() {}
                chars.next();
            }
            '\u{1B}' | '\0' | '\u{8}' => {}
            '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Fields in which log collectors keep the line itself.
const FIELDS: &[&str] = &["log", "message", "msg", "textPayload", "MESSAGE", "body", "line", "content"];

/// The message inside a line that is a JSON record.
fn json_message(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with('{') || !text.ends_with('}') || text.len() < 8 {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    fn find(value: &serde_json::Value, depth: u8) -> Option<&str> {
        let map = value.as_object()?;
        FIELDS.iter().find_map(|f| map.get(*f).and_then(serde_json::Value::as_str)).or_else(|| {
            // One level of nesting: `{"fields": {"message": …}}`, `{"attributes": …}`.
            (depth > 0).then(|| map.values().find_map(|v| find(v, depth - 1))).flatten()
        })
    }
    find(&value, 2).map(str::to_owned)
}

/// Marks lines that a terminal broke at one width: at least two lines in a row of exactly the longest width about
/// them, wide enough to be a terminal's, the next going on without a prefix.
pub(crate) fn mark_broken(lines: &mut [Line]) {
    let widths: Vec<u32> = lines.iter().map(|l| l.width).collect();
    for i in 0..lines.len() {
        let Some(width) = widths.get(i).copied().filter(|w: &u32| (40..=400).contains(w)) else { continue };
        let near = widths.get(i.saturating_sub(4)..(i + 5).min(widths.len())).unwrap_or_default();
        let same = near.iter().filter(|w| **w == width).count();
        let longest = near.iter().all(|w| *w <= width);
        if same >= 2
            && longest
            && lines.get(i + 1).is_some_and(|next| !next.tagged)
            && let Some(line) = lines.get_mut(i)
        {
            line.broken = true;
        }
    }
}
