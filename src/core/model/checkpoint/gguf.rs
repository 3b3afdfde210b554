//! The header of a GGUF file: key and value pairs, then the place of every tensor.
//!
//! Source: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>; checks as in `gguf_init_from_file_impl` of
//! <https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/gguf.cpp>. Versions 1 (32-bit counts), 2 and 3.

use super::metadata::{Meta, short};
use super::{Checkpoint, FIELD, FileTensor, Format, LONGEST_HEADER, Stop};
use super::{bad, bad_tensor, cut, elements, file_message, length_note};
use crate::model::ggml;
use crate::units::Problem;

/// Longest list that is kept value by value: one entry per layer, with room.
const KEPT_LIST: u64 = 8192;
/// Dimensions of a tensor (`GGML_MAX_DIMS`).
const MAX_DIMS: u32 = 4;
/// How deep lists may stand in lists.
const MAX_DEPTH: u32 = 4;

/// Reads the header.
pub(super) fn read(file: &str, prefix: &[u8], length: u64) -> Result<Checkpoint, Stop> {
    let mut cursor = Cursor { file, bytes: prefix, at: 4, length, wide: true };
    let version = cursor.u32()?;
    if (1..=3).contains(&version.swap_bytes()) {
        return Err(Stop::Bad(bad("checkpoint.big_endian", file)));
    }
    if !(1..=3).contains(&version) {
        let message = file_message("checkpoint.gguf_version", file).with("given", u64::from(version));
        return Err(Stop::Bad(Problem::new(FIELD, message)));
    }
    cursor.wide = version > 1;
    let tensors = cursor.count()?;
    let pairs = cursor.count()?;
    let mut checkpoint = Checkpoint::new(Format::Gguf);
    // Every pair and every tensor takes bytes of the header, which bounds both loops.
    for _ in 0..pairs {
        let key = cursor.name()?;
        let kind = cursor.u32()?;
        let value = cursor.value(kind, &key)?;
        checkpoint.metadata.insert(short(&key), value);
    }
    let alignment = match checkpoint.metadata.get("general.alignment") {
        None => 32,
        Some(value) => value.whole().filter(|n| n.is_power_of_two() && *n <= 1 << 30).ok_or_else(|| {
            bad_tensor(file, "general.alignment", "alignment", format!("{value:?}"), "8, 16, 32, 64, …")
        })?,
    };
    let mut places = Vec::new();
    for _ in 0..tensors {
        let (tensor, offset) = cursor.tensor()?;
        places.push((offset, checkpoint.tensors.len()));
        checkpoint.tensors.push(tensor);
    }
    let too_long = || cut(file, u64::MAX, length);
    let start = (cursor.at as u64).checked_next_multiple_of(alignment).ok_or_else(too_long)?;
    let end = check_places(file, places, &mut checkpoint, alignment, length.saturating_sub(start))?;
    let expected = start.checked_add(end).ok_or_else(too_long)?;
    // The last tensor is padded, or not; without tensors the file may end with its header.
    if end > 0 && length.checked_next_multiple_of(alignment) != expected.checked_next_multiple_of(alignment) {
        checkpoint.warnings.extend(length_note(file, length, expected));
    }
    Ok(checkpoint)
}

/// Tensors do not overlap; the end of the last. One whose type is younger than the table of types ends where the
/// next begins, or with the `data` bytes that the file has for tensors.
fn check_places(
    file: &str,
    mut places: Vec<(u64, usize)>,
    checkpoint: &mut Checkpoint,
    alignment: u64,
    data: u64,
) -> Result<u64, Problem> {
    places.sort_unstable();
    let mut end = 0;
    for (i, (offset, at)) in places.iter().enumerate() {
        let next = places.get(i + 1).map_or(data, |(next, _)| *next);
        let Some(tensor) = checkpoint.tensors.get_mut(*at) else { continue };
        if *offset < end || !offset.is_multiple_of(alignment) {
            let accepted = format!("≥ {end}, n × {alignment}");
            return Err(bad_tensor(file, &tensor.name, "offset", offset.to_string(), accepted));
        }
        if tensor.bytes == UNKNOWN {
            tensor.bytes = next.saturating_sub(*offset);
            let message = file_message("checkpoint.type_unknown", file);
            let dtype = tensor.dtype.clone();
            if !checkpoint.warnings.iter().any(|w| w.id == message.id) {
                checkpoint.warnings.push(message.with("given", dtype));
            }
        }
        end = offset.checked_add(tensor.bytes).ok_or_else(|| cut(file, u64::MAX, data))?;
    }
    Ok(end)
}

/// Bytes of a tensor whose type is not known: filled in from its place.
const UNKNOWN: u64 = u64::MAX;

/// Reads forward through what there is of the header.
struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Bytes of the whole file.
    length: u64,
    /// Counts have 64 bits (since version 2).
    wide: bool,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: u64) -> Result<&'a [u8], Stop> {
        let end = (self.at as u64).checked_add(n).ok_or(Stop::Need(u64::MAX))?;
        let taken = usize::try_from(end).ok().and_then(|end| self.bytes.get(self.at..end));
        let Some(taken) = taken else {
            // More than is needed at once: a tokenizer's words come one by one.
            let ahead =
                (self.bytes.len() as u64).saturating_mul(4).max(1 << 16).min(self.length).min(LONGEST_HEADER);
            return Err(Stop::Need(end.max(ahead)));
        };
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64)?);
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count or a length.
    fn count(&mut self) -> Result<u64, Stop> {
        if self.wide { self.u64() } else { Ok(self.u32()?.into()) }
    }

    /// A name: of a key or a tensor.
    fn name(&mut self) -> Result<String, Stop> {
        let length = self.count()?;
        if length > 1 << 16 {
            return Err(Stop::Bad(bad_tensor(self.file, "", "name", format!("{length} B"), "≤ 65536 B")));
        }
        let bytes = self.take(length)?;
        let name = std::str::from_utf8(bytes).map_err(|_| {
            let given = String::from_utf8_lossy(bytes).into_owned();
            bad_tensor(self.file, &given, "name", &given, "UTF-8")
        })?;
        Ok(name.to_owned())
    }

    /// A value of type `kind`; lists are kept where they are short and whole.
    fn value(&mut self, kind: u32, key: &str) -> Result<Meta, Stop> {
        if kind == 8 {
            let length = self.count()?;
            let text = String::from_utf8_lossy(self.take(length)?);
            return Ok(Meta::Text(short(&text)));
        }
        if kind != 9 {
            return self.scalar(kind, key);
        }
        let (kind, length) = (self.u32()?, self.count()?);
        let whole = matches!(kind, 0..=5 | 7 | 10 | 11);
        if !whole || length > KEPT_LIST {
            self.skip(kind, length, key, 0)?;
            return Ok(Meta::Length(length));
        }
        let mut all = Vec::new();
        for _ in 0..length {
            all.push(match self.scalar(kind, key)? {
                Meta::Whole(n) => Some(n),
                Meta::Flag(b) => Some(b.into()),
                _ => None,
            });
        }
        let numbers: Option<Vec<u64>> = all.into_iter().collect();
        Ok(numbers.map_or(Meta::Length(length), Meta::Numbers))
    }

    /// Passes over a list.
    fn skip(&mut self, kind: u32, length: u64, key: &str, depth: u32) -> Result<(), Stop> {
        match kind {
            8 => {
                for _ in 0..length {
                    let bytes = self.count()?;
                    self.take(bytes)?;
                }
            }
            9 if depth < MAX_DEPTH => {
                for _ in 0..length {
                    let (kind, length) = (self.u32()?, self.count()?);
                    self.skip(kind, length, key, depth + 1)?;
                }
            }
            _ => {
                let size = size(kind).ok_or_else(|| self.kind(kind, key))?;
                self.take(length.checked_mul(size).ok_or(Stop::Need(u64::MAX))?)?;
            }
        }
        Ok(())
    }

    fn scalar(&mut self, kind: u32, key: &str) -> Result<Meta, Stop> {
        let signed = |n: i64| u64::try_from(n).map_or(Meta::Real(n as f64), Meta::Whole);
        Ok(match kind {
            0 => Meta::Whole(u8::from_le_bytes(self.array()?).into()),
            1 => signed(i8::from_le_bytes(self.array()?).into()),
            2 => Meta::Whole(u16::from_le_bytes(self.array()?).into()),
            3 => signed(i16::from_le_bytes(self.array()?).into()),
            4 => Meta::Whole(self.u32()?.into()),
            5 => signed(i32::from_le_bytes(self.array()?).into()),
            6 => Meta::Real(f32::from_le_bytes(self.array()?).into()),
            7 => Meta::Flag(self.array::<1>()? != [0]),
            10 => Meta::Whole(self.u64()?),
            11 => signed(i64::from_le_bytes(self.array()?)),
            12 => Meta::Real(f64::from_le_bytes(self.array()?)),
            _ => return Err(Stop::Bad(self.kind(kind, key))),
        })
    }

    fn kind(&self, kind: u32, key: &str) -> Problem {
        bad_tensor(self.file, key, "type", kind.to_string(), "0 … 12")
    }

    /// One entry of the list of tensors, and where its bytes begin.
    fn tensor(&mut self) -> Result<(FileTensor, u64), Stop> {
        let name = self.name()?;
        let wrong = |what, given, accepted: String| bad_tensor(self.file, &name, what, given, accepted);
        let dims = self.u32()?;
        if dims > MAX_DIMS {
            return Err(Stop::Bad(bad_tensor(self.file, &name, "dimensions", dims.to_string(), "0 … 4")));
        }
        let mut shape = Vec::with_capacity(MAX_DIMS as usize);
        for _ in 0..dims {
            shape.push(self.count()?);
        }
        let (number, offset) = (self.u32()?, self.u64()?);
        let row = shape.first().copied().unwrap_or(1);
        let Some(all) = elements(&shape) else {
            return Err(Stop::Bad(wrong("shape", format!("{shape:?}"), "< 2^63".to_owned())));
        };
        shape.reverse();
        let Some(kind) = ggml::by_number(number) else {
            let dtype = format!("type-{number}");
            return Ok((FileTensor { name, dtype, shape, bytes: UNKNOWN }, offset));
        };
        if !row.is_multiple_of(kind.weights) {
            let accepted = format!("n × {} ({})", kind.weights, kind.name);
            return Err(Stop::Bad(wrong("shape", format!("{shape:?}"), accepted)));
        }
        let bytes = (all / kind.weights).checked_mul(kind.bytes).filter(|b| *b != UNKNOWN);
        let bytes = bytes.ok_or_else(|| wrong("shape", format!("{shape:?}"), "< 2^64 B".to_owned()))?;
        Ok((FileTensor { name, dtype: kind.name.to_owned(), shape, bytes }, offset))
    }
}

/// Bytes of a scalar of type `kind`.
fn size(kind: u32) -> Option<u64> {
    Some(match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => return None,
    })
}
