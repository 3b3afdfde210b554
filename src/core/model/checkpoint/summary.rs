//! A checkpoint in a few lines: equal tensors of equal layers are one row, so that a Scenario can carry it.

use super::{Checkpoint, FIELD, FileTensor, Format, kind};
use crate::model::DType;
use crate::model::fields::MAX_LAYERS;
use crate::units::{Bytes, Problem};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Most rows of a summary. Public checkpoints need 5 to 60, the most irregular ones a few hundred.
const MOST_ROWS: usize = 2048;
/// Most tensors of one name and layer (experts) accepted.
const MOST_EACH: u64 = 1 << 20;

/// Tensors of one name pattern, one format and one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name in the file, with `*` for the index of the layer, and of the expert.
    pub name: String,
    /// Storage format as the file names it.
    pub dtype: String,
    /// Bytes of one tensor.
    pub bytes: u64,
    /// Layers that hold it, as inclusive runs; empty for tensors outside of layers.
    pub layers: Vec<(u32, u32)>,
    /// Tensors in one layer (experts), or in all where there are no layers.
    pub each: u64,
}

/// What a Scenario knows of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Kind of file.
    pub format: Format,
    /// Mix of a GGUF file as its header names it, e.g. `Q4_K_M`.
    pub kind: Option<String>,
    /// Every tensor.
    pub rows: Vec<Row>,
    /// Bytes of all tensors as an index states them, where their names are not known.
    pub total_bytes: Option<u64>,
}

impl Summary {
    /// The summary of a checkpoint.
    ///
    /// Errors: neither tensors nor a total.
    pub fn new(checkpoint: &Checkpoint) -> Result<Summary, Problem> {
        let rows = rows(&checkpoint.tensors);
        let total_bytes = checkpoint.declared_bytes.filter(|_| rows.is_empty());
        if rows.is_empty() && total_bytes.is_none() {
            let message = crate::units::Message::new("checkpoint.no_tensors");
            return Err(Problem::new(FIELD, message));
        }
        let summary = Summary { format: checkpoint.format, kind: kind::of(checkpoint), rows, total_bytes };
        summary.bytes().map(|_| summary)
    }

    /// Bytes of all tensors.
    ///
    /// Errors: more than 2^64.
    pub fn bytes(&self) -> Result<u64, Problem> {
        let row = |row: &Row| Ok::<_, Problem>(Bytes::product(&[row.bytes, row.count()])?);
        let sum = self
            .rows
            .iter()
            .try_fold(Bytes(self.total_bytes.unwrap_or(0)), |sum, r| Ok::<_, Problem>(sum.add(row(r)?)?))?;
        Ok(sum.0)
    }

    /// Bytes by storage format, largest first.
    pub fn formats(&self) -> Vec<(&str, u64)> {
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &self.rows {
            let sum = all.entry(&row.dtype).or_default();
            *sum = sum.saturating_add(row.bytes.saturating_mul(row.count()));
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        all
    }

    /// The float format that most bytes of unquantised tensors have.
    pub fn float(&self) -> Option<DType> {
        self.formats().into_iter().find_map(|(name, _)| float(name))
    }

    /// Reads what [`Serialize`] writes.
    ///
    /// Errors: names the part, what was given and what is accepted.
    pub fn from_json(value: &Value) -> Result<Summary, Problem> {
        let wrong = |part: &str, given: String, accepted: &str| {
            let given: String = given.chars().take(80).collect();
            Problem::not_accepted(&format!("{FIELD}{part}"), given, accepted)
        };
        let Some(map) = value.as_object() else {
            return Err(wrong("", value.to_string(), ACCEPTED));
        };
        if let Some(other) =
            map.keys().find(|k| !["format", "kind", "tensors", "total_bytes"].contains(&k.as_str()))
        {
            return Err(wrong("", other.clone(), ACCEPTED));
        }
        let text = |name: &str| map.get(name).and_then(Value::as_str);
        let given = |name: &str| map.get(name).map(Value::to_string).unwrap_or_default();
        let format = text("format").and_then(Format::from_id);
        let format = format.ok_or_else(|| wrong(".format", given("format"), "safetensors, index, gguf"))?;
        let mut rows = Vec::new();
        if let Some(listed) = map.get("tensors") {
            let listed = listed.as_array().filter(|all| all.len() <= MOST_ROWS + 1);
            for row in listed.ok_or_else(|| wrong(".tensors", given("tensors"), ROW))? {
                let parsed = row.as_str().and_then(parse);
                rows.push(parsed.ok_or_else(|| wrong(".tensors", row.to_string(), ROW))?);
            }
        }
        let total_bytes = match map.get("total_bytes") {
            None | Some(Value::Null) => None,
            Some(n) => Some(n.as_u64().ok_or_else(|| wrong(".total_bytes", n.to_string(), "0 … 2^64"))?),
        };
        if rows.is_empty() == total_bytes.is_none() {
            return Err(wrong("", "{…}".to_owned(), ACCEPTED));
        }
        let kind = text("kind").map(|k| k.chars().take(16).collect());
        let summary = Summary { format, kind, rows, total_bytes };
        summary.bytes().map(|_| summary)
    }
}

const ACCEPTED: &str =
    "{\"format\": …, \"kind\": …, \"tensors\": [\"…\"]}, {\"format\": \"index\", \"total_bytes\": …}";
const ROW: &str = "\"model.layers.*.mlp.up_proj.weight BF16 117440512 0-31\", \"… x8\"";

impl Row {
    /// Tensors of the row.
    pub fn count(&self) -> u64 {
        if self.layers.is_empty() { self.each } else { self.each.saturating_mul(self.depth()) }
    }

    /// Layers of the row.
    pub fn depth(&self) -> u64 {
        self.layers.iter().map(|(a, b)| u64::from(*b - *a) + 1).sum()
    }
}

/// The dtype that a file's name of a plain float stands for.
pub fn float(name: &str) -> Option<DType> {
    match name {
        "F32" => Some(DType::Fp32),
        "F16" => Some(DType::Fp16),
        "BF16" => Some(DType::Bf16),
        _ => None,
    }
}

/// `name dtype bytes`, then the layers and the tensors of each, where there are any.
impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.name, self.dtype, self.bytes)?;
        for (i, (a, b)) in self.layers.iter().enumerate() {
            f.write_str(if i == 0 { " " } else { "," })?;
            if a == b { write!(f, "{a}")? } else { write!(f, "{a}-{b}")? }
        }
        if self.each == 1 { Ok(()) } else { write!(f, " x{}", self.each) }
    }
}

fn parse(text: &str) -> Option<Row> {
    let mut words = text.split(' ');
    let (name, dtype) = (words.next()?.to_owned(), words.next()?.to_owned());
    let bytes = words.next()?.parse().ok()?;
    let mut row = Row { name, dtype, bytes, layers: Vec::new(), each: 1 };
    let mut word = words.next();
    if let Some(list) = word.filter(|w| !w.starts_with('x')) {
        for run in list.split(',') {
            let (a, b) = run.split_once('-').unwrap_or((run, run));
            let (a, b): (u32, u32) = (a.parse().ok()?, b.parse().ok()?);
            let after = row.layers.last().is_none_or(|(_, end)| *end < a);
            if b < a || u64::from(b) >= MAX_LAYERS || !after {
                return None;
            }
            row.layers.push((a, b));
        }
        word = words.next();
    }
    if let Some(each) = word {
        row.each = each.strip_prefix('x')?.parse().ok().filter(|n| (1..=MOST_EACH).contains(n))?;
    }
    (words.next().is_none() && !row.name.is_empty() && !row.dtype.is_empty()).then_some(row)
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut value = json!({ "format": self.format.id() });
        if let Some(kind) = &self.kind {
            value["kind"] = kind.as_str().into();
        }
        if let Some(total) = self.total_bytes {
            value["total_bytes"] = total.into();
        }
        if !self.rows.is_empty() {
            value["tensors"] = self.rows.iter().map(ToString::to_string).collect();
        }
        value.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Summary {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Summary, D::Error> {
        let value = Value::deserialize(d)?;
        Summary::from_json(&value).map_err(|problem| serde::de::Error::custom(format!("{problem:?}")))
    }
}

/// What numbers its parts without being a stack of layers: the matrices of a projector.
const SEQUENCES: &[&str] = &["mlp", "mm", "merger", "linear", "proj", "projector", "net", "ffn", "conv"];

/// A name with `*` for the index of the layer and that of the expert; the layer.
///
/// The layer is the first index: of the decoder's or of an encoder's stack.
fn pattern(name: &str) -> (String, Option<u32>) {
    let mut layer = None;
    let mut out = String::with_capacity(name.len());
    let mut before = "";
    for (i, part) in name.split('.').enumerate() {
        if i > 0 {
            out.push('.');
        }
        let index = part.parse::<u32>().ok().filter(|n| u64::from(*n) < MAX_LAYERS);
        match index {
            Some(index) if layer.is_none() && i > 0 && !SEQUENCES.contains(&before) => {
                layer = Some(index);
                out.push('*');
            }
            // Old GGUF files number the experts of `ffn_gate` themselves.
            Some(_) if before.contains("expert") || before.starts_with("ffn_") => out.push('*'),
            _ => out.extend(part.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c })),
        }
        before = part;
    }
    if out.is_empty() {
        out.push('_');
    }
    (out, layer)
}

/// Rows of equal tensors, in the order of the file.
fn rows(tensors: &[FileTensor]) -> Vec<Row> {
    /// Layers by index with their number of tensors; `None` for tensors outside of layers.
    type Places = BTreeMap<Option<u32>, u64>;
    let mut order: Vec<((String, &str, u64), Places)> = Vec::new();
    let mut at: HashMap<(String, &str, u64), usize> = HashMap::new();
    for tensor in tensors {
        let (name, layer) = pattern(&tensor.name);
        let key = (name, tensor.dtype.as_str(), tensor.bytes);
        let index = *at.entry(key.clone()).or_insert_with(|| {
            order.push((key, Places::new()));
            order.len() - 1
        });
        if let Some((_, places)) = order.get_mut(index) {
            *places.entry(layer).or_default() += 1;
        }
    }
    let mut rows = Vec::new();
    for ((name, dtype, bytes), places) in order {
        let dtype = dtype.replace(|c: char| c.is_whitespace() || c.is_control(), "-");
        let mut of_each: Vec<(u64, Vec<(u32, u32)>)> = Vec::new();
        for (layer, each) in places {
            let Some(layer) = layer else {
                rows.push(Row { name: name.clone(), dtype: dtype.clone(), bytes, layers: Vec::new(), each });
                continue;
            };
            let index = of_each.iter().position(|(n, _)| *n == each).unwrap_or_else(|| {
                of_each.push((each, Vec::new()));
                of_each.len() - 1
            });
            let runs = &mut of_each[index].1;
            match runs.last_mut() {
                Some(run) if run.1 + 1 == layer => run.1 = layer,
                _ => runs.push((layer, layer)),
            }
        }
        for (each, layers) in of_each {
            rows.push(Row { name: name.clone(), dtype: dtype.clone(), bytes, layers, each });
        }
    }
    if rows.len() > MOST_ROWS {
        let rest = rows.split_off(MOST_ROWS);
        let bytes = rest.iter().fold(0u64, |sum, r| sum.saturating_add(r.bytes.saturating_mul(r.count())));
        rows.push(Row { name: "…".into(), dtype: "…".into(), bytes, layers: Vec::new(), each: 1 });
    }
    rows
}
