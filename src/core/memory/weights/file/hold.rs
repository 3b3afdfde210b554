//! What a rank holds of a file's tensors.

use super::super::rank::Line;
use super::super::split::{Cut, Shape, on_first_stage, product};
use super::{File, Held, Piece, names};
use crate::model::{Model, Sharding, TensorClass};
use crate::units::{Bytes, Overflow, Problem};

/// A scale or a switch of one tensor: every rank holds it.
const SCALAR: u64 = 8;
/// Bytes of a number per output row.
const PER_ROW: u64 = 4;

/// One line per group that a rank of `stage` holds a part of.
pub(in super::super) fn lines<'a>(
    model: &Model,
    file: &'a File<'_>,
    cut: Cut,
    runs: &[(u64, u64)],
    stage: usize,
) -> Result<Vec<Line<'a>>, Problem> {
    let mut out = Vec::with_capacity(file.held.len());
    for held in &file.held {
        out.extend(line(model, held, cut, runs, stage)?);
    }
    Ok(out)
}

/// Elements of the groups that `held` follows, on a rank and in all.
fn share(held: &Held<'_>, cut: Cut) -> Result<(u64, u64), Problem> {
    let (mut rank, mut all) = (Bytes::ZERO, Bytes::ZERO);
    for group in &held.like {
        let (batch, rows, cols) = group.matrix();
        rank = rank.add(Bytes(cut.shape(group)?.elements()?))?;
        all = all.add(Bytes(Shape { batch, rows, cols }.elements()?))?;
    }
    Ok(if held.like.is_empty() || all.0 == 0 { (1, 1) } else { (rank.0, all.0) })
}

/// Bytes of `piece` in one layer of a rank that holds `rank` of `all` elements of the matrix.
fn on_rank(held: &Held<'_>, piece: &Piece<'_>, (rank, all): (u64, u64)) -> Result<u64, Problem> {
    if !piece.main {
        let rows = held
            .like
            .iter()
            .map(|g| g.matrix())
            .fold(0u64, |sum, (batch, rows, _)| sum.saturating_add(batch.saturating_mul(rows)));
        let split = held.group.sharding;
        let order = piece.row.name.ends_with("g_idx");
        let whole = piece.row.bytes <= SCALAR
            || (order && split != Sharding::Row)
            // One number per output row is the same for every part of the input.
            || (!order
                && split == Sharding::Row
                && !names::is_grouped(&piece.row.name)
                && piece.bytes <= rows.saturating_mul(PER_ROW));
        if whole {
            return Ok(piece.bytes);
        }
    }
    let part = (u128::from(piece.bytes) * u128::from(rank)).div_ceil(u128::from(all.max(1)));
    Ok(u64::try_from(part).map_err(|_| Overflow)?)
}

fn line<'a>(
    model: &Model,
    held: &'a Held<'_>,
    cut: Cut,
    runs: &[(u64, u64)],
    stage: usize,
) -> Result<Option<Line<'a>>, Problem> {
    let group = held.group.as_ref();
    let share = share(held, cut)?;
    let (start, size) = runs.get(stage).copied().unwrap_or_default();
    let last = stage + 1 == runs.len();
    let end = if last { u64::MAX } else { start.saturating_add(size) };
    let mut line = Line::of_file(group, if held.like.len() == 1 { Some(cut.shape(group)?) } else { None });
    let outside = |piece: &Piece<'_>| piece.row.layers.is_empty() || group.class == TensorClass::Encoder;
    // A tied embedding is also the head: the last stage holds it again.
    let again = last && model.tied_embeddings && group.class == TensorClass::Embedding;
    let here = if on_first_stage(group.class) { stage == 0 || again } else { last };
    let depth = model.layers.len().max(model.encoder_layers.len()) as u64;
    // Names that were added to the size of one tensor: a mix gives one name several formats.
    let mut counted: Vec<&str> = Vec::new();
    for piece in &held.pieces {
        let bytes = on_rank(held, piece, share)?;
        let layers: u64 = if outside(piece) {
            let copies = if piece.row.layers.is_empty() { 1 } else { piece.row.depth() };
            if here { copies } else { 0 }
        } else {
            let runs = piece.row.layers.iter();
            let mine = runs.map(|(a, b)| (u64::from(*a).max(start), (u64::from(*b) + 1).min(end).min(depth)));
            mine.filter(|(from, to)| from < to).map(|(from, to)| to - from).sum()
        };
        if layers == 0 {
            continue;
        }
        let first = !counted.contains(&piece.row.name.as_str());
        counted.push(&piece.row.name);
        line.add_file(product(&[bytes, layers])?, piece.format, piece.main);
        if first && piece.main {
            line.main = line.main.saturating_add(bytes);
        } else if first && bytes > line.side {
            line.side = bytes;
        }
        if piece.main {
            line.count = line.count.max(layers);
        }
    }
    Ok(line.holds().then_some(line))
}
