//! The nearest accepted name to one that is not accepted.

/// The nearest of `accepted` to `given`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(given: &str, accepted: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = normal(given);
    // A third of the letters may differ: `max_seq_len` is near `max_model_len`, `foo` is near nothing.
    let allowed = (given.len() / 3).max(1);
    accepted
        .into_iter()
        .map(|name| (distance(&given, &normal(name)), name))
        .filter(|(d, _)| *d <= allowed)
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// Up to `most` of `accepted` that resemble `given`: those that contain all its parts first, then by distance.
pub(crate) fn similar<'a>(
    given: &str,
    accepted: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let wanted = normal(given);
    let parts: Vec<String> = given
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|p| !p.is_empty())
        .take(12)
        .map(str::to_owned)
        .collect();
    let mut all: Vec<_> = accepted
        .into_iter()
        .map(|name| {
            let missing = parts.iter().filter(|p| !name.to_ascii_lowercase().contains(p.as_str())).count();
            (missing, distance(&wanted, &normal(name)), name)
        })
        .collect();
    all.sort_unstable();
    all.into_iter().take(most).map(|(_, _, name)| name).collect()
}

/// Lower case without separators: `maxModelLen` and `max-model-len` are `max_model_len` mistyped. Cut, since
/// what is longer than any name is near none.
fn normal(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).take(48).map(|c| c.to_ascii_lowercase()).collect()
}

/// Levenshtein distance of two ASCII strings.
fn distance(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.bytes().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, cb) in b.iter().enumerate() {
            let above = row[j + 1];
            let best = (diagonal + usize::from(ca != *cb)).min(above + 1).min(row[j] + 1);
            diagonal = above;
            row[j + 1] = best;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest, similar};

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let names = ["max_model_len", "max_num_seqs", "sequences"];
        assert_eq!(nearest("maxModelLen", names), Some("max_model_len"));
        assert_eq!(nearest("max_model_length", names), Some("max_model_len"));
        assert_eq!(nearest("sequence", names), Some("sequences"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn names_that_hold_the_typed_parts_come_first() {
        let names = ["a100-40gb", "h100-80gb", "h100-nvl", "rtx-4090"];
        assert_eq!(similar("H100", names, 2), ["h100-nvl", "h100-80gb"]);
        assert_eq!(similar("4090", names, 1), ["rtx-4090"]);
    }
}
