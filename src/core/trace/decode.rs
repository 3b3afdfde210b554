//! From bytes to lines: encodings, NUL runs, line ends, colour codes.

/// What had to be done to the bytes, for the reader's eyes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The text, line feeds only.
    pub text: String,
    /// NUL bytes dropped.
    pub nuls: usize,
    /// Whether UTF-16 was read.
    pub utf16: bool,
    /// Whether bytes were no UTF-8 and were read as Windows-1252.
    pub legacy: bool,
    /// Escape sequences that move the cursor: the mark of a captured screen.
    pub escapes: usize,
    /// Whether the last line lacks its line feed.
    pub open_end: bool,
}

/// The upper half of Windows-1252 that differs from Latin-1 (0x80 to 0x9F).
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Whether the start looks like UTF-16 little endian of mostly ASCII text: the odd bytes are 0, the even are not.
fn utf16_le(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096) & !1];
    let pairs = head.len() / 2;
    let zeros = |first: usize| head.iter().skip(first).step_by(2).filter(|b| **b == 0).count();
    pairs >= 8 && zeros(1) * 5 > pairs * 4 && zeros(0) * 20 < pairs
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Reads any bytes as text; never fails.
pub fn decode(bytes: &[u8]) -> Decoded {
    let mut out = Decoded::default();
    let raw = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => eight_bit(rest, &mut out),
        [0xFF, 0xFE, rest @ ..] => {
            out.utf16 = true;
            utf16(rest, u16::from_le_bytes)
        }
        [0xFE, 0xFF, rest @ ..] => {
            out.utf16 = true;
            utf16(rest, u16::from_be_bytes)
        }
        _ if utf16_le(bytes) => {
            out.utf16 = true;
            utf16(bytes, u16::from_le_bytes)
        }
        _ => eight_bit(bytes, &mut out),
    };
    out.text = clean(raw, &mut out);
    out.open_end = !out.text.is_empty() && !out.text.ends_with('\n');
    out
}

fn eight_bit(bytes: &[u8], out: &mut Decoded) -> String {
    // Most files have none; a fold is quick enough for them.
    out.nuls = bytes.iter().fold(0, |n, b| n + usize::from(*b == 0));
    let kept =
        if out.nuls == 0 { bytes.to_vec() } else { bytes.iter().copied().filter(|b| *b != 0).collect() };
    String::from_utf8(kept).unwrap_or_else(|error| {
        out.legacy = true;
        let one = |b: &u8| match b {
            0x80..=0x9F => WINDOWS_1252[usize::from(*b - 0x80)],
            _ => char::from(*b),
        };
        error.as_bytes().iter().map(one).collect()
    })
}

/// Line ends become line feeds; colour codes go; other escape sequences are counted.
fn clean(raw: String, out: &mut Decoded) -> String {
    if !raw.bytes().any(|b| matches!(b, b'\r' | 0x1B | 0)) {
        return raw;
    }
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\0' => out.nuls += 1,
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    text.push('\n');
                }
            }
            '\u{1b}' if chars.peek() == Some(&'[') => {
                let last = chars.by_ref().skip(1).find(|c| !c.is_ascii_digit() && !matches!(c, ';' | '?'));
                if last != Some('m') {
                    out.escapes += 1;
                }
            }
            '\u{1b}' => {}
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_come_to_the_same_text() {
        let plain = "timestamp, memory.used [MiB]\n2024/01/02 12:34:56.789, 12 MiB\n";
        let le: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = plain.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let bom = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        for bytes in [
            plain.as_bytes().to_vec(),
            bom(&[0xEF, 0xBB, 0xBF], plain.as_bytes()),
            bom(&[0xFF, 0xFE], &le),
            bom(&[0xFE, 0xFF], &be),
            le.clone(),
            plain.replace('\n', "\r\n").into_bytes(),
            plain.replace('\n', "\r").into_bytes(),
            plain.replace("12", "\u{1b}[31m12\0\u{1b}[0m").into_bytes(),
        ] {
            assert_eq!(decode(&bytes).text, plain);
        }
        assert_eq!(decode(&[b'[', 0xB0, b'C', b']']).text, "[°C]");
        assert_eq!(decode(b"\x1b[2J\x1b[H").escapes, 2);
        assert!(decode(b"a").open_end && !decode(b"a\n").open_end && !decode(b"").open_end);
    }
}
