//! The header of a safetensors file: eight bytes of length, then JSON.
//!
//! Source: <https://huggingface.co/docs/safetensors/index#format>; checks as in `SafeTensors::read_metadata` and
//! `Metadata::validate` of <https://github.com/huggingface/safetensors>.

use super::metadata::{Meta, short};
use super::{Checkpoint, FIELD, FileTensor, Format, Stop};
use super::{bad, bad_tensor, cut, elements, file_message, length_note, shown};
use crate::units::{Bytes, Problem};
use serde_json::{Map, Value};

/// Longest header that the format itself allows (`MAX_HEADER_SIZE`).
const MAX_HEADER: u64 = 100_000_000;

/// Bits of an element of each dtype (`Dtype::bitsize`).
const BITS: &[(&str, u64)] = &[
    ("BOOL", 8),
    ("F4", 4),
    ("F6_E2M3", 6),
    ("F6_E3M2", 6),
    ("U8", 8),
    ("I8", 8),
    ("F8_E5M2", 8),
    ("F8_E4M3", 8),
    ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8),
    ("F8_E5M2FNUZ", 8),
    ("I16", 16),
    ("U16", 16),
    ("F16", 16),
    ("BF16", 16),
    ("I32", 32),
    ("U32", 32),
    ("F32", 32),
    ("F64", 64),
    ("I64", 64),
    ("U64", 64),
    ("C64", 64),
];

/// Reads the header.
pub(super) fn read(file: &str, prefix: &[u8], length: u64) -> Result<Checkpoint, Stop> {
    let Some((first, rest)) = prefix.split_first_chunk::<8>() else {
        return Err(Stop::Bad(bad("checkpoint.not_one", file)));
    };
    let header = u64::from_le_bytes(*first);
    if !(2..=MAX_HEADER).contains(&header) || rest.first().is_some_and(|b| *b != b'{') {
        return Err(Stop::Bad(bad("checkpoint.not_one", file)));
    }
    // At most 100 million: fits in any usize.
    let Some(json) = rest.get(..header as usize) else {
        // One byte more tells a header from any other eight bytes.
        return Err(Stop::Need(if rest.is_empty() && length > 8 + header { 9 } else { 8 + header }));
    };
    let value: Value = serde_json::from_slice(json).map_err(|error| {
        let message = file_message("checkpoint.header_broken", file).with("what", error.to_string());
        Problem::new(FIELD, message)
    })?;
    let Value::Object(map) = value else { return Err(Stop::Bad(bad("checkpoint.not_one", file))) };
    let mut checkpoint = Checkpoint::new(Format::Safetensors);
    let mut places = Vec::with_capacity(map.len());
    for (name, value) in map {
        if name == "__metadata__" {
            for (key, value) in value.as_object().into_iter().flatten() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                checkpoint.metadata.insert(short(key), Meta::Text(short(&text)));
            }
            continue;
        }
        let (tensor, begin) = tensor(file, name, &value)?;
        places.push((begin, begin + tensor.bytes, checkpoint.tensors.len()));
        checkpoint.tensors.push(tensor);
    }
    let end = check_places(file, places, &checkpoint.tensors)?;
    let expected = end.checked_add(8 + header).ok_or_else(|| cut(file, u64::MAX, length))?;
    checkpoint.warnings.extend(length_note(file, length, expected));
    Ok(checkpoint)
}

/// One entry of the header, and where its bytes begin.
fn tensor(file: &str, name: String, value: &Value) -> Result<(FileTensor, u64), Problem> {
    let wrong = |what: &str, given: String, accepted: &str| bad_tensor(file, &name, what, given, accepted);
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    let quoted = |key: &str| map.get(key).map_or_else(|| "null".to_owned(), |v| shown(&v.to_string()));
    let numbers =
        |key: &str| -> Option<Vec<u64>> { map.get(key)?.as_array()?.iter().map(Value::as_u64).collect() };
    let Some(dtype) = map.get("dtype").and_then(Value::as_str) else {
        return Err(wrong("dtype", quoted("dtype"), "\"BF16\", \"F16\", \"F32\", …"));
    };
    let shape = numbers("shape").ok_or_else(|| wrong("shape", quoted("shape"), "[0, 1, 2, …]"))?;
    let place = numbers("data_offsets").filter(|two| two.len() == 2 && two[0] <= two[1]);
    let place = place.ok_or_else(|| wrong("data_offsets", quoted("data_offsets"), "[begin, end]"))?;
    let (begin, bytes) = (place[0], place[1] - place[0]);
    // A dtype younger than this table counts as its place says.
    if let Some((_, bits)) = BITS.iter().find(|(id, _)| *id == dtype) {
        let held = elements(&shape).map(|n| u128::from(n) * u128::from(*bits));
        if held != Some(u128::from(bytes) * 8) {
            let given = format!("{} × {dtype} in {bytes} B", quoted("shape"));
            let accepted = held.map_or_else(|| "< 2^63".to_owned(), |bits| format!("{} B", bits.div_ceil(8)));
            return Err(wrong("shape", given, &accepted));
        }
    }
    let dtype = dtype.chars().take(16).collect();
    Ok((FileTensor { name, dtype, shape, bytes }, begin))
}

/// Tensors follow one another without overlap and without gap; the end of the last.
fn check_places(
    file: &str,
    mut places: Vec<(u64, u64, usize)>,
    tensors: &[FileTensor],
) -> Result<u64, Problem> {
    places.sort_unstable();
    let mut end = 0;
    for (begin, stop, at) in places {
        if begin != end {
            let name = tensors.get(at).map_or("", |t| t.name.as_str());
            let given = format!("[{begin}, {stop}]");
            return Err(bad_tensor(file, name, "data_offsets", given, format!("[{end}, …]")));
        }
        end = stop;
    }
    // A sum of parts that each fit: kept here so that nobody adds to it unchecked.
    Ok(Bytes(end).0)
}
