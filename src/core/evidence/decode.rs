//! From the bytes of a file to text: encodings that shells and tools write.

use std::borrow::Cow;

/// The text of `bytes`: UTF-8 with or without a mark, UTF-16 as PowerShell writes it; what is not valid becomes a
/// replacement character.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        [0xFF, 0xFE, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xFE, 0xFF, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        _ if looks_utf16(bytes, 1) => Cow::Owned(utf16(bytes, u16::from_le_bytes)),
        _ if looks_utf16(bytes, 0) => Cow::Owned(utf16(bytes, u16::from_be_bytes)),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// ASCII in UTF-16 has every other byte zero; a run of NUL bytes in UTF-8 has not.
fn looks_utf16(bytes: &[u8], zero_at: usize) -> bool {
    let head = bytes.get(..64).unwrap_or(bytes);
    let pairs = head.len() / 2;
    pairs >= 4
        && head
            .chunks_exact(2)
            .all(|p| p.get(zero_at) == Some(&0) && p.get(1 - zero_at).is_some_and(|b| *b != 0))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|p| unit([p[0], p[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn encodings_give_the_same_text() {
        let plain = "CUDA out of memory.";
        let little: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = plain.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = [&[0xFF, 0xFE][..], &little[..]].concat();
        for bytes in [plain.as_bytes(), &little[..], &big[..], &marked[..]] {
            assert_eq!(text(bytes), plain);
        }
        assert_eq!(text(b"\xEF\xBB\xBFabc"), "abc");
        assert_eq!(text(b"a\xFFb"), "a\u{FFFD}b");
    }
}
