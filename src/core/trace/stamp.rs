//! Time stamps, as seconds. A wall time stays the file's own: no zone is applied.

/// How a stamp is to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stamp {
    /// Seconds since 1970, by the file's wall clock.
    Date(f64),
    /// Seconds since midnight.
    OfDay(f64),
    /// Seconds within an hour, which is all that Excel's `mm:ss.0` leaves.
    OfHour(f64),
    /// A bare number: elapsed seconds, or days of a spreadsheet.
    Elapsed(f64),
}

/// Order of the parts in `03-11-2026`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Month first.
    #[default]
    Month,
    /// Day first.
    Day,
}

/// Days since 1970 of a date of the Gregorian calendar.
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1970..=2200).contains(&year) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (y.div_euclid(400), y.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// Seconds of `HH:MM[:SS[.fff]]`, with AM and PM apart; the last field tells whether hours were there.
fn clock(text: &str) -> Option<(f64, bool)> {
    let text = text.trim_end_matches(['Z', 'z']);
    let parts: Vec<&str> = text.split(':').collect();
    let seconds = |s: &str| {
        if s.ends_with([',', '.']) {
            return None;
        }
        let s = s.replace(',', ".");
        let plain =
            s.bytes().all(|b| b.is_ascii_digit() || b == b'.') && s.starts_with(|c: char| c.is_ascii_digit());
        plain.then(|| s.parse::<f64>().ok())?.filter(|s| *s < 61.0)
    };
    let whole = |s: &str, most: i64| number(s).filter(|n| *n <= most).map(|n| n as f64);
    match parts.as_slice() {
        [h, m, s] => Some((whole(h, 24)? * 3600.0 + whole(m, 59)? * 60.0 + seconds(s)?, true)),
        [m, s] if s.contains(['.', ',']) => Some((whole(m, 59)? * 60.0 + seconds(s)?, false)),
        [h, m] => Some((whole(h, 24)? * 3600.0 + whole(m, 59)? * 60.0, true)),
        _ => None,
    }
}

/// The three numbers of a date, and whether the year comes first.
fn parts(text: &str) -> Option<([i64; 3], bool, char)> {
    let mark = text.chars().find(|c| matches!(c, '/' | '-' | '.'))?;
    let mut numbers = text.split(mark).map(number);
    let all = [numbers.next()??, numbers.next()??, numbers.next()??];
    (numbers.next().is_none()).then_some((all, all[0] > 31, mark))
}

fn date(text: &str, order: Order) -> Option<i64> {
    if text.len() == 8
        && let Some(n) = number(text)
    {
        return days(n / 10_000, n / 100 % 100, n % 100);
    }
    let ([a, b, c], year_first, mark) = parts(text)?;
    if year_first {
        return days(a, b, c);
    }
    let c = if c < 100 { c + 2000 } else { c };
    let day_first = if a > 12 { true } else { b <= 12 && (mark == '.' || order == Order::Day) };
    if day_first { days(c, b, a) } else { days(c, a, b) }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// `Wed Feb 26 01:50:18 PM EST 2025` anywhere in a line: what `date`, nvidia-smi's table and gpustat print.
pub fn long_date(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().take(24).collect();
    let month = |w: &str| {
        MONTHS.iter().position(|m| w.get(..3).is_some_and(|p| p.eq_ignore_ascii_case(m)) && w.len() <= 9)
    };
    for at in 0..words.len().saturating_sub(2) {
        // Both `Feb 26` and `26 Feb` occur.
        let found = month(words[at])
            .and_then(|m| Some((m, number(words[at + 1].trim_end_matches(','))?)))
            .or_else(|| Some((month(words[at + 1])?, number(words[at])?)));
        let Some((month, day)) = found else { continue };
        let rest = &words[at + 2..];
        let year =
            rest.iter().filter(|w| w.len() == 4).find_map(|w| number(w).filter(|y| (1990..2200).contains(y)));
        let time = rest.iter().enumerate().find_map(|(i, w)| Some((i, clock(w)?.0)));
        let (Some(year), Some((i, mut time))) = (year, time) else { continue };
        time = half_day(time, rest.get(i + 1).copied().unwrap_or_default());
        return Some(days(year, i64::try_from(month).ok()? + 1, day)? as f64 * 86_400.0 + time);
    }
    None
}

fn half_day(seconds: f64, mark: &str) -> f64 {
    let hour = (43_200.0..46_800.0).contains(&seconds);
    match mark.to_ascii_uppercase().as_str() {
        "PM" if seconds < 43_200.0 => seconds + 43_200.0,
        "AM" if hour => seconds - 43_200.0,
        _ => seconds,
    }
}

/// Cuts a zone (`+08:00`, `UTC`) off a time of day.
fn without_zone(text: &str) -> &str {
    let cut =
        text.char_indices().skip(5).find(|(_, c)| matches!(c, '+' | '-')).map_or(text.len(), |(i, _)| i);
    &text[..cut]
}

/// AM, PM, or a zone: what may follow a time.
fn is_zone(word: &str) -> bool {
    word.len() <= 6 && word.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '+' | '-'))
}

/// Reads one stamp.
pub fn stamp(text: &str, order: Order) -> Option<Stamp> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '[' | ']' | '\''));
    if !text.is_ascii() || text.len() > 48 || !text.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.matches('.').count() < 2 {
        let value: f64 = text.parse().ok()?;
        return Some(match value {
            v if v > 1e17 => Stamp::Date(v / 1e9),
            v if v > 1e14 => Stamp::Date(v / 1e6),
            v if v > 1e11 => Stamp::Date(v / 1e3),
            v if v > 3e8 => Stamp::Date(v),
            v => Stamp::Elapsed(v),
        });
    }
    let (head, rest) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    };
    if head.contains(':') {
        let (seconds, hours) = clock(head)?;
        if !rest.split_whitespace().all(is_zone) {
            return None;
        }
        return Some(if hours { Stamp::OfDay(half_day(seconds, rest)) } else { Stamp::OfHour(seconds) });
    }
    let Some(day) = date(head, order) else { return long_date(text).map(Stamp::Date) };
    let mut words = rest.split_whitespace();
    let seconds = match words.next() {
        None => 0.0,
        Some(time) => {
            let seconds = clock(without_zone(time))?.0;
            let half = words.clone().next().unwrap_or_default();
            if !words.all(is_zone) {
                return None;
            }
            half_day(seconds, half)
        }
    };
    Some(Stamp::Date(day as f64 * 86_400.0 + seconds))
}

/// A stamp at the start of a line, with what follows it: `2025-03-04 01:37:27 | …`, `[20:06:22] …`.
pub fn leading(line: &str, order: Order) -> Option<(Stamp, &str)> {
    let start = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '[' | '=' | '(' | '#'));
    let part = |c: char| c.is_ascii_digit() || matches!(c, '/' | '-' | ':' | '.' | ',' | 'T' | 'Z' | '+');
    let end = start.find(|c| !part(c)).unwrap_or(start.len());
    let first = start[..end].trim_end_matches([',', ':', '-']);
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !(first.contains(':') || parts(first).is_some()) {
        return None;
    }
    if !first.contains(':') && start[end..].starts_with(' ') {
        let tail = &start[end + 1..];
        let stop = tail.find(|c| !part(c)).unwrap_or(tail.len());
        let time = tail[..stop].trim_end_matches([',', ':', '-']);
        if time.contains(':')
            && let Some(found) = stamp(&format!("{first} {}", time.replace(',', ".")), order)
        {
            return Some((found, &tail[stop..]));
        }
    }
    Some((stamp(first, order)?, &start[end..]))
}

/// Which order of day and month leaves the smaller largest gap, where the stamps do not say.
pub fn order<'a>(cells: &(impl Iterator<Item = &'a str> + Clone)) -> Order {
    let widest = |order: Order| {
        let (mut last, mut widest) = (None, 0.0f64);
        for text in cells.clone() {
            if let Some(Stamp::Date(t)) = stamp(text, order) {
                widest = widest.max(last.map_or(0.0, |l: f64| (t - l).abs()));
                last = Some(t);
            }
        }
        widest
    };
    if widest(Order::Day) < widest(Order::Month) { Order::Day } else { Order::Month }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_logs_use() {
        let at = |text| stamp(text, Order::Month);
        let day = 19_724.0 * 86_400.0;
        let noon = day + 45_296.0;
        for text in [
            "2024/01/02 12:34:56",
            "2024-01-02T12:34:56+08:00",
            "2024-01-02T12:34:56Z",
            "01-02-2024 12:34:56",
            "02.01.2024 12:34:56",
            "Tue Jan  2 12:34:56 2024",
            "Tue Jan 2 12:34:56 PM EST 2024",
            "1704198896",
            "1704198896000",
            "1704198896000000",
            "20240102 12:34:56",
        ] {
            assert_eq!(at(text), Some(Stamp::Date(noon)), "{text}");
        }
        assert_eq!(at("13:25:50"), Some(Stamp::OfDay(48_350.0)));
        assert_eq!(at("34:56.5"), Some(Stamp::OfHour(2096.5)));
        assert_eq!(at("0.25"), Some(Stamp::Elapsed(0.25)));
        for none in ["", "P8", "NVIDIA A100", "12 MiB", "0 %", "2024/13/45 00:00:00"] {
            assert_eq!(at(none), None, "{none}");
        }
        assert_eq!(order(&["03-11-2026 23:59:16", "03-12-2026 00:00:16"].into_iter()), Order::Month);
        assert_eq!(order(&["11-03-2026 23:59:16", "12-03-2026 00:00:16"].into_iter()), Order::Day);
        let (found, rest) = leading("2025-03-04 01:37:27 | Power", Order::Month).unwrap();
        assert!(matches!(found, Stamp::Date(_)) && rest == " | Power");
    }
}
