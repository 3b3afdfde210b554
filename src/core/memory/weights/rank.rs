//! Sums the tensors of every pipeline stage and picks the fullest rank.

use super::Layout;
use super::file;
use super::serving::{Extra, extras};
use super::split::{Cut, Shape, check_heads, on_first_stage, product, stages};
use super::stored::{Scheme, Stored, stored};
use crate::memory::{Parallel, Part};
use crate::model::{Model, TensorClass, TensorGroup};
use crate::units::{Bytes, Problem};

/// The fullest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) stage: u64,
    pub(super) bytes: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

/// All tensors of one group on a rank.
pub(super) struct Line<'a> {
    pub(super) group: &'a TensorGroup,
    pub(super) shape: Shape,
    pub(super) count: u64,
    bytes: u64,
    low: u64,
    high: u64,
    /// Largest single allocations of one tensor.
    pub(super) main: u64,
    pub(super) side: u64,
    pub(super) format: &'a str,
    /// The shape is not known: tensors of a file that the model does not have.
    shapeless: bool,
    /// Not every layer has the same format.
    mixed: bool,
}

/// What one rank holds, before it is summed.
#[derive(Default)]
pub(super) struct Holding<'a> {
    lines: Vec<Line<'a>>,
    extras: Vec<Extra>,
}

/// The rank of the stage that holds most.
///
/// Errors: degrees that cannot be used.
pub(super) fn fullest<'a>(
    model: &'a Model,
    scheme: &'a Scheme<'_>,
    parallel: Parallel,
) -> Result<(Rank, Holding<'a>), Problem> {
    check_heads(model, parallel.tensor)?;
    let mut best = (Rank::default(), Holding::default());
    for stage in 0..stages(model.layers.len() as u64, parallel.pipeline)?.len() {
        let holding = holding(model, scheme, parallel, stage)?;
        let rank = holding.sum(stage)?;
        if rank.bytes > best.0.bytes {
            best = (rank, holding);
        }
    }
    Ok(best)
}

/// Bytes of a rank of every stage.
///
/// Errors: degrees that cannot be used.
pub(super) fn by_stage(model: &Model, scheme: &Scheme<'_>, parallel: Parallel) -> Result<Vec<u64>, Problem> {
    check_heads(model, parallel.tensor)?;
    let count = stages(model.layers.len() as u64, parallel.pipeline)?.len();
    (0..count).map(|stage| Ok(holding(model, scheme, parallel, stage)?.sum(stage)?.bytes)).collect()
}

/// What a rank of `stage` holds.
fn holding<'a>(
    model: &'a Model,
    scheme: &'a Scheme<'_>,
    parallel: Parallel,
    stage: usize,
) -> Result<Holding<'a>, Problem> {
    let cut = Cut::new(parallel, scheme.layout)?;
    let runs = stages(model.layers.len() as u64, parallel.pipeline)?;
    let mut lines = match &scheme.file {
        Some(file) if file.total.is_none() => file::lines(model, file, cut, &runs, stage)?,
        _ => Vec::with_capacity(model.tensors.len()),
    };
    if scheme.file.as_ref().is_none_or(|file| file.total.is_some()) {
        for group in &model.tensors {
            lines.extend(line(model, group, scheme, cut, &runs, stage)?);
        }
    }
    if let Some(total) = scheme.file.as_ref().and_then(|file| file.total) {
        scale(model, scheme, total, parallel, &mut lines)?;
    }
    let extras = match scheme.layout {
        Layout::Transformers => Vec::new(),
        Layout::Serving | Layout::ServingMarlin => extras(model, scheme, &lines)?,
    };
    Ok(Holding { lines, extras })
}

/// Makes the lines of all ranks come to `total`, in the proportions that the model's shapes give them.
fn scale(
    model: &Model,
    scheme: &Scheme<'_>,
    total: u64,
    parallel: Parallel,
    lines: &mut [Line<'_>],
) -> Result<(), Problem> {
    let plain = Scheme { layout: Layout::Transformers, file: None, gguf: None, ..*scheme };
    let cut = Cut::new(Parallel::default(), Layout::Transformers)?;
    let runs = stages(model.layers.len() as u64, 1)?;
    let mut all = Bytes::ZERO;
    for group in &model.tensors {
        if let Some(line) = line(model, group, &plain, cut, &runs, 0)? {
            all = all.add(Bytes(line.bytes))?;
        }
    }
    if all.0 == total || all.0 == 0 {
        return Ok(());
    }
    let part = |bytes: u64| -> Result<u64, Problem> {
        let part = u128::from(bytes) * u128::from(total) / u128::from(all.0);
        Ok(u64::try_from(part).map_err(|_| crate::units::Overflow)?)
    };
    for line in lines.iter_mut() {
        line.bytes = part(line.bytes)?;
        (line.low, line.high) = (line.bytes, line.bytes);
        line.main = part(line.main)?;
        line.side = part(line.side)?;
    }
    // One device holds the total itself: what rounding left goes to the largest line.
    let sum: u64 = lines.iter().map(|line| line.bytes).sum();
    let one = parallel.tensor == 1 && parallel.pipeline == 1 && parallel.expert == 1;
    if let Some(line) = lines.iter_mut().max_by_key(|line| line.bytes).filter(|_| one && sum < total) {
        line.bytes += total - sum;
        (line.low, line.high) = (line.bytes, line.bytes);
    }
    Ok(())
}

impl Holding<'_> {
    /// One line of the working per tensor group, and one per surplus.
    pub(super) fn parts(self) -> Vec<Part> {
        self.lines.iter().map(Line::part).chain(self.extras.into_iter().map(Extra::part)).collect()
    }

    fn sum(&self, stage: usize) -> Result<Rank, Problem> {
        let add = |a: u64, b: u64| Bytes(a).add(Bytes(b)).map(|sum| sum.0);
        let mut rank = Rank { stage: stage as u64, ..Rank::default() };
        for line in &self.lines {
            rank.bytes = add(rank.bytes, line.bytes)?;
            rank.low = add(rank.low, line.low)?;
            rank.high = add(rank.high, line.high)?;
        }
        for extra in &self.extras {
            rank.bytes = add(rank.bytes, extra.bytes)?;
            rank.low = add(rank.low, if extra.uncertain { 0 } else { extra.bytes })?;
            rank.high = add(rank.high, extra.bytes)?;
        }
        Ok(rank)
    }
}

impl Line<'_> {
    fn part(&self) -> Part {
        let Shape { batch, rows, cols } = self.shape;
        let (count, format) = (self.count, self.format);
        let mixed = if self.mixed { " …" } else { "" };
        let detail = match (batch, cols) {
            _ if self.shapeless => format!("{count} × {format}{mixed}"),
            (1, 1) => format!("{count} × [{rows}] {format}{mixed}"),
            (1, _) => format!("{count} × [{rows}, {cols}] {format}{mixed}"),
            (_, 1) => format!("{count} × [{batch}, {rows}] {format}{mixed}"),
            _ => format!("{count} × [{batch}, {rows}, {cols}] {format}{mixed}"),
        };
        Part { label: self.group.name.clone().into(), detail, bytes: self.bytes }
    }
}

/// What a rank of `stage` holds of `group`; `None` where it holds nothing.
fn line<'a>(
    model: &Model,
    group: &'a TensorGroup,
    scheme: &Scheme<'_>,
    cut: Cut,
    runs: &[(u64, u64)],
    stage: usize,
) -> Result<Option<Line<'a>>, Problem> {
    let shape = cut.shape(group)?;
    let (start, size) = runs.get(stage).copied().unwrap_or_default();
    let last = stage + 1 == runs.len();
    let all: u64 = group.layers.iter().map(|(a, b)| u64::from(*b - *a) + 1).sum();
    let outside = all == 0 || group.class == TensorClass::Encoder;
    let mut line = Line {
        group,
        shape,
        count: 0,
        bytes: 0,
        low: 0,
        high: 0,
        main: 0,
        side: 0,
        format: "",
        shapeless: false,
        mixed: false,
    };
    if outside {
        // A tied embedding is also the head: the last stage holds it again.
        let again = last && model.tied_embeddings && group.class == TensorClass::Embedding;
        let here = if on_first_stage(group.class) { stage == 0 || again } else { last };
        if here {
            line.add(stored(group, shape, None, scheme)?, group.count)?;
        }
    } else {
        let per_layer = group.count / all;
        let end = if last { u64::MAX } else { start + size };
        let mine = group.layers.iter().map(|(a, b)| (u64::from(*a).max(start), (u64::from(*b) + 1).min(end)));
        for (from, to) in mine.filter(|(from, to)| from < to) {
            if scheme.gguf.is_none() {
                line.add(stored(group, shape, None, scheme)?, product(&[per_layer, to - from])?)?;
                continue;
            }
            for layer in from..to {
                line.add(stored(group, shape, Some(layer), scheme)?, per_layer)?;
            }
        }
    }
    Ok((line.count > 0).then_some(line))
}

impl<'a> Line<'a> {
    /// Nothing yet of what a file holds of `group`.
    pub(super) fn of_file(group: &'a TensorGroup, shape: Option<Shape>) -> Line<'a> {
        Line {
            group,
            shape: shape.unwrap_or(Shape { batch: 1, rows: 1, cols: 1 }),
            count: 0,
            bytes: 0,
            low: 0,
            high: 0,
            main: 0,
            side: 0,
            format: "",
            shapeless: shape.is_none(),
            mixed: false,
        }
    }

    /// Whether there is anything in it.
    pub(super) fn holds(&self) -> bool {
        self.bytes > 0
    }

    /// Adds what a file holds; `main` is the matrix itself, whose format is shown.
    pub(super) fn add_file(&mut self, bytes: u64, format: &'a str, main: bool) {
        self.bytes = self.bytes.saturating_add(bytes);
        (self.low, self.high) = (self.bytes, self.bytes);
        if main {
            self.mixed |= !self.format.is_empty() && self.format != format;
            self.format = format;
        }
    }
}

impl Line<'_> {
    fn add(&mut self, one: Stored, times: u64) -> Result<(), Problem> {
        self.bytes = Bytes(self.bytes).add(Bytes(product(&[one.bytes, times])?))?.0;
        self.low = Bytes(self.low).add(Bytes(product(&[one.low, times])?))?.0;
        self.high = Bytes(self.high).add(Bytes(product(&[one.high, times])?))?.0;
        self.main = self.main.max(one.main);
        self.side = self.side.max(one.side);
        self.mixed |= self.count > 0 && self.format != one.format;
        self.count += times;
        if !self.mixed {
            self.format = one.format;
        }
        Ok(())
    }
}
