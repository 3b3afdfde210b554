//! Lines into fields.

/// The separators that logs use.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// The separator of a line: the one that splits it into most fields.
pub fn separator(line: &str) -> char {
    SEPARATORS.into_iter().max_by_key(|s| (line.matches(*s).count(), *s == ',')).unwrap_or(',')
}

/// The fields of a line, trimmed. Quoted fields are left to the `csv` crate.
pub fn split<'a>(line: &'a str, separator: char, out: &mut Vec<std::borrow::Cow<'a, str>>) {
    out.clear();
    if !line.contains('"') {
        out.extend(line.split(separator).map(|f| f.trim().into()));
        return;
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .delimiter(u8::try_from(separator).unwrap_or(b','))
        .from_reader(line.as_bytes());
    let Some(Ok(record)) = reader.records().next() else { return };
    // A whole line in quotes is a line that a spreadsheet took for one cell.
    if let (1, Some(inside)) = (record.len(), record.get(0))
        && inside.contains(separator)
        && !inside.contains('"')
    {
        out.extend(inside.split(separator).map(|f| f.trim().to_owned().into()));
        return;
    }
    out.extend(record.iter().map(|f| f.trim().to_owned().into()));
}

/// The lines of a text with their numbers; a line with an odd number of quotes goes on in the next one, as
/// long as that closes it soon.
pub fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let mut at = 0;
    let mut number = 0u32;
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let rest = &text[at..];
        let mut end = rest.find('\n').unwrap_or(rest.len());
        let first = number.saturating_add(1);
        number = first;
        if rest[..end].matches('"').count() % 2 == 1
            && let Some(more) = rest.get(end + 1..)
        {
            let next = more.find('\n').unwrap_or(more.len());
            if more[..next].matches('"').count() % 2 == 1 {
                end += 1 + next;
                number = number.saturating_add(1);
            }
        }
        let line = &rest[..end];
        at += end + 1;
        Some((first, line))
    })
}
