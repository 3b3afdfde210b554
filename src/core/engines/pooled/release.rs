//! Release numbers in what logs and people write.

/// The first `major.minor[.patch]` in the text; `x` as patch is the last of its minor.
pub(in crate::engines) fn release(text: &str) -> Option<(u32, u32, u32)> {
    let start = |i: usize| {
        let rest = &text[i..];
        let mut numbers = rest.split('.');
        let major: u32 = numbers.next()?.parse().ok()?;
        let minor = leading(numbers.next()?)?;
        let patch = match numbers.next() {
            Some(p) if p.starts_with('x') => 99,
            Some(p) => leading(p).unwrap_or(0),
            None => 0,
        };
        // A year (2026-08) or a date is no release.
        (major < 10).then_some((major, minor, patch))
    };
    let boundary = |i: usize| i == 0 || !text.as_bytes()[i - 1].is_ascii_digit();
    text.char_indices().filter(|(i, c)| c.is_ascii_digit() && boundary(*i)).find_map(|(i, _)| start(i))
}

fn leading(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}
