//! Weights as a checkpoint's header lists them: bytes from the file, split over ranks as the model's tensors are.

mod hold;
mod names;

pub(super) use hold::lines;

use crate::memory::WeightsSpec;
use crate::model::checkpoint::{Format, Row, Summary, float};
use crate::model::{DType, Model, Quantization, Sharding, TensorClass, TensorGroup};
use crate::units::{Bytes, Message};
use std::borrow::Cow;

/// The tensors of a file, by the tensor of the model that each belongs to.
pub(super) struct File<'a> {
    pub(super) gguf: bool,
    pub(super) held: Vec<Held<'a>>,
    /// Bytes of all tensors, where an index states no more.
    pub(super) total: Option<u64>,
    /// What is in the file and never on a device.
    skipped: u64,
    /// What no name here stands for.
    strange: u64,
    /// Matrices of the model that the file does not hold.
    lacking: Vec<&'a str>,
}

/// Tensors of a file that share a split.
pub(super) struct Held<'a> {
    /// The model's group, or one made of what the name says.
    pub(super) group: Cow<'a, TensorGroup>,
    /// Groups whose split it follows: several where the file fuses what the model keeps apart; none where all
    /// ranks hold all.
    pub(super) like: Vec<&'a TensorGroup>,
    pub(super) pieces: Vec<Piece<'a>>,
}

/// One row of the file.
pub(super) struct Piece<'a> {
    pub(super) row: &'a Row,
    /// The matrix itself, not its scales, zero points or bias.
    pub(super) main: bool,
    /// Bytes in one layer, or in all outside of layers, as they are after loading.
    pub(super) bytes: u64,
    /// Format after loading.
    pub(super) format: &'a str,
}

/// Whether the bytes of the file decide: no scheme is asked for, or the one that the file has.
fn applies(model: &Model, spec: &WeightsSpec, file: &Summary) -> bool {
    match &spec.quantization {
        None => true,
        Some(Quantization::Gguf(kind)) => {
            file.format == Format::Gguf && file.kind.as_ref().is_none_or(|k| k.eq_ignore_ascii_case(kind))
        }
        asked => file.format != Format::Gguf && *asked == model.quantization,
    }
}

impl<'a> File<'a> {
    /// The file of `spec`, if there is one and its bytes decide.
    pub(super) fn new(model: &'a Model, spec: &'a WeightsSpec) -> Option<File<'a>> {
        let summary = spec.file.as_ref().filter(|file| applies(model, spec, file))?;
        let gguf = summary.format == Format::Gguf;
        let mut file = File {
            gguf,
            held: Vec::new(),
            total: summary.total_bytes,
            skipped: 0,
            strange: 0,
            lacking: Vec::new(),
        };
        if file.total.is_some() {
            return Some(file);
        }
        // Another dtype than the file's is asked for: what has the file's is converted while it is loaded.
        let cast = summary.float().filter(|own| !gguf && *own != spec.dtype);
        let groups: Vec<_> = model.tensors.iter().map(|g| (names::normal(&g.name), g)).collect();
        let depth = model.layers.len().max(model.encoder_layers.len()) as u64;
        let mut places: Vec<(usize, usize)> = Vec::new();
        for row in &summary.rows {
            let normal = names::normal(&row.name);
            let beyond = !row.layers.is_empty()
                && !names::is_encoder(&row.name)
                && row.layers.iter().all(|(first, _)| u64::from(*first) >= depth);
            let found = find(&groups, row, &normal, model);
            let unused = match &found {
                Found::Skip => true,
                _ => beyond,
            };
            if unused {
                file.skipped = file.skipped.saturating_add(row.bytes.saturating_mul(row.count()));
                continue;
            }
            let (bytes, format) = loaded(row, cast, spec.dtype);
            let times = if row.layers.is_empty() { row.count() } else { row.each };
            let piece = |main| Piece { row, main, bytes: bytes.saturating_mul(times), format };
            match found {
                Found::Groups(all, main) => {
                    let first = all[0];
                    let known = places.iter().find(|(index, _)| *index == first && all.len() == 1);
                    if let Some((_, at)) = known {
                        file.held[*at].pieces.push(piece(main));
                        continue;
                    }
                    if all.len() == 1 {
                        places.push((first, file.held.len()));
                    }
                    let like: Vec<_> = all.iter().map(|index| groups[*index].1).collect();
                    let mut group = Cow::Borrowed(groups[first].1);
                    if gguf || all.len() > 1 {
                        group.to_mut().name.clone_from(&row.name);
                    }
                    file.held.push(Held { group, like, pieces: vec![piece(main)] });
                }
                Found::Class(class) => {
                    if class == TensorClass::Other {
                        file.strange = file.strange.saturating_add(row.bytes.saturating_mul(row.count()));
                    }
                    let group = Cow::Owned(alone(row, class));
                    file.held.push(Held { group, like: Vec::new(), pieces: vec![piece(true)] });
                }
                Found::Skip => {}
            }
        }
        file.lacking = lacking(model, &file.held);
        Some(file)
    }

    /// What a person should know about how the file was read.
    fn notes(&self) -> Vec<Message> {
        let mut notes = Vec::new();
        if self.skipped > 0 {
            notes.push(Message::new("weights.file_skipped").with("bytes", Bytes(self.skipped)));
        }
        if self.strange > 0 {
            notes.push(Message::new("weights.file_strange").with("bytes", Bytes(self.strange)));
        }
        if !self.lacking.is_empty() {
            let shown = self.lacking.iter().take(4).copied().collect::<Vec<_>>().join(", ");
            let message = Message::new("weights.file_lacks").with("count", self.lacking.len() as u64);
            notes.push(message.with("names", shown));
        }
        notes
    }
}

/// What a person should know about a checkpoint that stands beside the model: tensors that are not loaded, that
/// are not known, or that are missing; or that the checkpoint does not decide.
///
/// Formula: none; a list.
/// Accuracy: exact.
/// Source: names as in `memory/weights/file/names.rs`.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::{WeightsSpec, weights::file_notes};
/// let model = oom_ledger_core::model::preset("llama-3.1-8b").unwrap().model().unwrap();
/// assert!(file_notes(&model, &WeightsSpec::default()).is_empty());
/// ```
pub fn file_notes(model: &Model, spec: &WeightsSpec) -> Vec<Message> {
    let Some(summary) = &spec.file else { return Vec::new() };
    match File::new(model, spec) {
        Some(file) if file.total.is_some() => vec![Message::new("weights.file_total_only")],
        Some(file) => file.notes(),
        None => {
            let scheme = spec.quantization.as_ref().map(Quantization::id).unwrap_or_default();
            let kind = summary.kind.clone().unwrap_or_else(|| summary.format.id().to_owned());
            vec![Message::new("weights.file_set_aside").with("scheme", scheme).with("kind", kind)]
        }
    }
}

/// Bytes and format of one tensor once it is loaded.
fn loaded(row: &Row, cast: Option<DType>, dtype: DType) -> (u64, &str) {
    match float(&row.dtype) {
        Some(own) if cast == Some(own) => (row.bytes / own.bytes() * dtype.bytes(), dtype.id()),
        Some(own) => (row.bytes, own.id()),
        None => (row.bytes, &row.dtype),
    }
}

/// What a row of a file stands for.
enum Found {
    /// Groups of the model; whether it is the matrix itself.
    Groups(Vec<usize>, bool),
    /// No group, but a class.
    Class(TensorClass),
    /// It is never loaded.
    Skip,
}

fn find(groups: &[(String, &TensorGroup)], row: &Row, normal: &str, model: &Model) -> Found {
    let encoder = names::is_encoder(normal);
    // Of several groups under one name (the matrices of a projector), the one of that size.
    let fits = |group: &TensorGroup| {
        float(&row.dtype).is_some_and(|dtype| group.elements().checked_mul(dtype.bytes()) == Some(row.bytes))
    };
    let first = |wanted: &dyn Fn(&str, &TensorGroup) -> bool| {
        let all = groups.iter().enumerate().filter(|(_, (own, group))| wanted(own, group));
        let mut best = None;
        for (at, (_, group)) in all {
            if fits(group) {
                return Some(at);
            }
            best = best.or(Some(at));
        }
        best
    };
    for (name, main) in names::meanings(normal) {
        let tail = names::tail(&name);
        let alike =
            |own: &str, _: &TensorGroup| names::tail(own) == tail && names::is_encoder(own) == encoder;
        if let Some(at) = first(&|own, _| own == name).or_else(|| first(&alike)) {
            return Found::Groups(vec![at], main);
        }
    }
    if names::is_table(normal) || names::is_mtp(normal) {
        return Found::Skip;
    }
    if encoder {
        let any = model.tensors.iter().any(|g| g.class == TensorClass::Encoder);
        return if any { Found::Class(TensorClass::Encoder) } else { Found::Skip };
    }
    for (name, main) in names::meanings(normal) {
        let Some((class, alias)) = names::class(&name) else { continue };
        if class == TensorClass::Norm {
            // Norms are whole on every rank, but that of a recurrence follows its split.
            let split = |(_, g): &(String, &TensorGroup)| {
                g.class == class && g.sharding == Sharding::Column && last(&g.name) == "norm"
            };
            let of_state = groups.iter().position(split).filter(|_| last(&name) == "ssm_norm");
            return of_state.map_or(Found::Class(class), |at| Found::Groups(vec![at], main));
        }
        if class == TensorClass::LmHead && model.tied_embeddings {
            return Found::Skip;
        }
        let main = main && name.strip_suffix(".bias").is_none();
        let of = |class: TensorClass| {
            let all = groups.iter().enumerate().filter(move |(_, (own, g))| {
                g.class == class && !names::is_encoder(own) && !own.ends_with("bias")
            });
            all.map(|(at, (own, _))| (at, own.as_str())).collect::<Vec<_>>()
        };
        let own = of(class);
        let named = own.iter().find(|(_, name)| {
            alias.split('|').any(|alias| !alias.is_empty() && last(name).starts_with(alias))
        });
        if let Some((at, _)) = named.or(own.first()) {
            return Found::Groups(vec![*at], main);
        }
        // A gated recurrence keeps its q, k and v fused beside the attention of other layers.
        let fused = class == TensorClass::AttentionQkv;
        let inner = of(TensorClass::RecurrentProjection);
        if let Some((at, _)) = inner.iter().find(|(_, name)| fused && last(name).starts_with("in_proj_qkv")) {
            return Found::Groups(vec![*at], main);
        }
        let parts: Vec<usize> =
            names::related(class).iter().filter_map(|c| of(*c).first().map(|(at, _)| *at)).collect();
        if !parts.is_empty() {
            return Found::Groups(parts, main);
        }
        return Found::Class(class);
    }
    Found::Class(TensorClass::Other)
}

/// The last part of a name before `.weight`.
fn last(name: &str) -> &str {
    let base = name.strip_suffix(".weight").unwrap_or(name);
    base.rsplit('.').next().unwrap_or(base)
}

/// A group for tensors that the model does not have: every rank holds them whole.
fn alone(row: &Row, class: TensorClass) -> TensorGroup {
    TensorGroup {
        name: row.name.clone(),
        shape: vec![1],
        count: row.count(),
        layers: row.layers.clone(),
        class,
        dtype: None,
        sharding: Sharding::Replicated,
        expert: false,
        transposed: false,
    }
}

/// Matrices of the model that nothing in the file stands for.
fn lacking<'a>(model: &'a Model, held: &[Held<'a>]) -> Vec<&'a str> {
    use TensorClass as C;
    let has = |group: &TensorGroup| held.iter().any(|h| h.like.iter().any(|like| std::ptr::eq(*like, group)));
    let matrix = |c: C| super::stored::is_linear(c) || matches!(c, C::Embedding | C::LmHead);
    let encoder = held.iter().any(|h| h.group.class == C::Encoder);
    let wanted =
        |g: &&TensorGroup| matrix(g.class) || (g.class == C::Encoder && !encoder && g.shape.len() > 1);
    model.tensors.iter().filter(wanted).filter(|g| !has(g)).map(|g| g.name.as_str()).collect()
}
