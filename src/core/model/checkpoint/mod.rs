//! Headers of checkpoint files: which tensors, of which format and shape, in how many bytes.
//!
//! Every reader takes the first bytes of a file and either answers or says how many more it needs: a header of a
//! few MiB tells everything about a file of hundreds of GiB.

mod config;
mod families;
mod gguf;
mod import;
mod index;
mod kind;
mod metadata;
mod safetensors;
mod shards;
mod summary;

pub use config::gguf_config;
pub use import::Imported;
pub use metadata::Meta;
pub use shards::{Shard, together};
pub use summary::{Row, Summary, float};

use crate::units::{Bytes, Message, Problem};
use std::collections::BTreeMap;

/// Name under which problems with a file are reported.
pub const FIELD: &str = "weights.file";

/// Longest header read, in bytes: safetensors itself stops at 100 million, and the longest GGUF headers
/// (tokenizers of 260,000 words) are below 20 MiB.
const LONGEST_HEADER: u64 = 256 << 20;

/// Kind of a file that names tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `*.safetensors`.
    Safetensors,
    /// `model.safetensors.index.json`.
    Index,
    /// `*.gguf`.
    Gguf,
}

impl Format {
    /// The id used in the Scenario document.
    pub const fn id(self) -> &'static str {
        match self {
            Format::Safetensors => "safetensors",
            Format::Index => "index",
            Format::Gguf => "gguf",
        }
    }

    /// From the id used in the Scenario document.
    pub fn from_id(id: &str) -> Option<Format> {
        [Format::Safetensors, Format::Index, Format::Gguf].into_iter().find(|f| f.id() == id)
    }
}

/// One tensor as its file holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTensor {
    /// Name in the file.
    pub name: String,
    /// Storage format as the file names it: `BF16`, `F8_E4M3`, `Q4_K`, …
    pub dtype: String,
    /// Shape, slowest dimension first.
    pub shape: Vec<u64>,
    /// Bytes in the file.
    pub bytes: u64,
}

/// What a header says, or the headers of several files together.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Kind of file.
    pub format: Format,
    /// Every tensor; empty for an index without its shards.
    pub tensors: Vec<FileTensor>,
    /// Key and value pairs of the header; long lists by their length only.
    pub metadata: BTreeMap<String, Meta>,
    /// Bytes of all tensors as an index states them.
    pub declared_bytes: Option<u64>,
    /// Files that hold the tensors, as an index lists them.
    pub files: Vec<String>,
    /// Files that belong to it and were not given.
    pub missing: Vec<String>,
    /// What a person should know about the file.
    pub warnings: Vec<Message>,
}

impl Checkpoint {
    fn new(format: Format) -> Checkpoint {
        Checkpoint {
            format,
            tensors: Vec::new(),
            metadata: BTreeMap::new(),
            declared_bytes: None,
            files: Vec::new(),
            missing: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Bytes of all tensors known by name.
    ///
    /// Errors: more than 2^64.
    pub fn bytes(&self) -> Result<u64, Problem> {
        let sum = self.tensors.iter().try_fold(Bytes::ZERO, |sum, t| sum.add(Bytes(t.bytes)))?;
        Ok(sum.0)
    }
}

/// What the first bytes of a file say.
#[derive(Clone, Debug, PartialEq)]
pub enum Header {
    /// The header is longer: the first so many bytes are needed. Always more than were given, and never more
    /// than the file has.
    Need(u64),
    /// Everything the header says.
    Whole(Checkpoint),
}

/// Reads the header of the file `name`, which has `length` bytes and begins with `prefix`.
///
/// ```
/// use oom_ledger_core::model::checkpoint::{Header, read_header};
/// let json = br#"{"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}"#;
/// let mut file = (json.len() as u64).to_le_bytes().to_vec();
/// file.extend(json);
/// let length = file.len() as u64 + 12;
/// assert_eq!(read_header("w.safetensors", &file[..9], length), Ok(Header::Need(length - 12)));
/// let Ok(Header::Whole(whole)) = read_header("w.safetensors", &file, length) else { panic!() };
/// assert_eq!(whole.bytes(), Ok(12));
/// ```
///
/// Errors: no header of a kind that is read, or one that contradicts itself; each names the file, what was found
/// and what is accepted.
pub fn read_header(name: &str, prefix: &[u8], length: u64) -> Result<Header, Problem> {
    let prefix = &prefix[..prefix.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    let shown = shown(name);
    if (prefix.len() as u64) < length.min(8) {
        return Ok(Header::Need(length.min(8)));
    }
    let ended = match prefix {
        [b'G', b'G', b'U', b'F', ..] => gguf::read(&shown, prefix, length),
        _ if first_character(prefix) == Some(b'{') => index::read(&shown, prefix, length),
        _ => match another_kind(prefix, length) {
            Some(id) => return Err(bad(id, &shown)),
            None => safetensors::read(&shown, prefix, length),
        },
    };
    match ended {
        Ok(checkpoint) => Ok(Header::Whole(checkpoint)),
        Err(Stop::Need(bytes)) if bytes > length => Err(cut(&shown, bytes, length)),
        Err(Stop::Need(bytes)) if bytes > LONGEST_HEADER => {
            let message = file_message("checkpoint.header_too_long", &shown);
            Err(Problem::new(FIELD, message.with("given", Bytes(bytes)).with("most", Bytes(LONGEST_HEADER))))
        }
        Err(Stop::Need(bytes)) => Ok(Header::Need(bytes)),
        Err(Stop::Bad(problem)) => Err(problem),
    }
}

/// Why a reader ended without a whole header.
#[derive(Debug)]
enum Stop {
    /// The first so many bytes are needed.
    Need(u64),
    /// It cannot be used.
    Bad(Problem),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Bad(problem)
    }
}

/// The first byte that is not white space; an editor may have put a byte order mark before it.
fn first_character(prefix: &[u8]) -> Option<u8> {
    let text = prefix.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(prefix);
    text.iter().copied().find(|b| !b.is_ascii_whitespace())
}

/// The text that says what kind of file this is, where it is a kind people mistake for one of ours.
fn another_kind(prefix: &[u8], length: u64) -> Option<&'static str> {
    match prefix {
        _ if length == 0 => Some("checkpoint.empty"),
        [b'P', b'K', 3, 4, ..] | [0x80, 2..=5, ..] => Some("checkpoint.is_pickle"),
        [b'v', b'e', b'r', b's', b'i', b'o', b'n', b' ', ..] => Some("checkpoint.is_pointer"),
        // ggml, ggmf, ggjt and ggla of 2023, as little-endian numbers.
        [b'l' | b'f' | b't' | b'a', b'm' | b'j' | b'l', b'g', b'g', ..] => Some("checkpoint.is_old_ggml"),
        _ => None,
    }
}

/// A name as quoted in a sentence: what a hostile file may put there is cut and made visible.
fn shown(name: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    let mut out: String = name.chars().take(120).map(clean).collect();
    if name.chars().nth(120).is_some() {
        out.push('…');
    }
    out
}

fn file_message(id: &'static str, file: &str) -> Message {
    Message::new(id).with("file", file)
}

/// A sentence about the file as a whole.
fn bad(id: &'static str, file: &str) -> Problem {
    Problem::new(FIELD, file_message(id, file))
}

/// The header claims more bytes than the file has.
fn cut(file: &str, needed: u64, length: u64) -> Problem {
    let message = file_message("checkpoint.header_cut", file);
    Problem::new(FIELD, message.with("given", Bytes(length)).with("needed", Bytes(needed)))
}

/// Something about one tensor does not hold.
fn bad_tensor(
    file: &str,
    tensor: &str,
    what: &str,
    given: impl AsRef<str>,
    accepted: impl Into<String>,
) -> Problem {
    let message = file_message("checkpoint.tensor", file)
        .with("tensor", shown(tensor))
        .with("what", what)
        .with("given", shown(given.as_ref()))
        .with("accepted", accepted.into());
    Problem::new(FIELD, message)
}

/// The file ends before, or goes on after, the tensors that its header names.
fn length_note(file: &str, length: u64, expected: u64) -> Option<Message> {
    (length != expected).then(|| {
        let id = if length < expected { "checkpoint.data_cut" } else { "checkpoint.data_over" };
        file_message(id, file).with("given", Bytes(length)).with("expected", Bytes(expected))
    })
}

/// Elements of a shape; `None` beyond 2^63.
fn elements(shape: &[u64]) -> Option<u64> {
    let all = shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))?;
    (all >> 63 == 0).then_some(all)
}
