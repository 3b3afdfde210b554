//! Reading a chart without seeing it: nearest sample, one line for a reading, rows for the table, a sentence.

use super::look::Frame;
use crate::plan::{Axis, Plane, Series};
use crate::text::{Lang, text};
use crate::units::{Bytes, bytes_human, count};

/// Index of the sample nearest to device pixel `x`; none outside the frame.
pub fn sample_at(series: &Series, frame: &Frame, x: f64) -> Option<usize> {
    let (first, last) = (series.samples.first()?.x as f64, series.samples.last()?.x as f64);
    let value = first + frame.across(x)? * (last - first);
    let distance = |i: &usize| (series.samples[*i].x as f64 - value).abs();
    (0..series.samples.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Column and row of the cell under device pixel (`x`, `y`); none outside the frame.
pub fn cell_at(plane: &Plane, frame: &Frame, x: f64, y: f64) -> Option<(usize, usize)> {
    let nearest = |all: &[u64], share: f64| {
        let at = share * all.last().map_or(0.0, |n| (*n as f64).log2().max(1.0));
        let distance = |i: &usize| ((all[*i] as f64).log2() - at).abs();
        (0..all.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    };
    Some((nearest(&plane.tokens, frame.across(x)?)?, nearest(&plane.sequences, frame.up(y)?)?))
}

fn axis_word(lang: Lang, axis: Axis) -> &'static str {
    match axis {
        Axis::Tokens => text(lang, "plan.tokens"),
        Axis::Sequences => text(lang, "plan.sequences"),
    }
}

fn fits_word(lang: Lang, fits: bool) -> &'static str {
    text(lang, if fits { "plan.served" } else { "plan.not_served" })
}

/// One sample as a line: `8,192 tokens: 71.06 GiB (weights 14.96 GiB, …), fits`.
pub fn series_reading(lang: Lang, series: &Series, index: usize) -> Option<String> {
    let sample = series.samples.get(index)?;
    let parts: Vec<String> = series
        .terms
        .iter()
        .zip(&sample.terms)
        .filter(|(_, b)| **b > 0)
        .map(|(id, b)| {
            format!("{} {}", text(lang, &format!("term.{}", id.id())).to_owned(), bytes_human(Bytes(*b)))
        })
        .collect();
    Some(format!(
        "{} {}: {} ({}); {} {} — {}",
        count(sample.x),
        axis_word(lang, series.axis),
        bytes_human(Bytes(sample.total)),
        parts.join(", "),
        text(lang, "plan.kv_used"),
        bytes_human(Bytes(sample.used)),
        fits_word(lang, sample.fits),
    ))
}

/// One cell as a line: `8,192 tokens × 16 sequences: 71.06 GiB, fits`.
pub fn plane_reading(lang: Lang, plane: &Plane, column: usize, row: usize) -> Option<String> {
    let (tokens, sequences) = (plane.tokens.get(column)?, plane.sequences.get(row)?);
    let cell = row * plane.tokens.len() + column;
    Some(format!(
        "{} {} × {} {}: {} — {}; {} {}",
        count(*tokens),
        text(lang, "plan.tokens"),
        count(*sequences),
        text(lang, "plan.sequences"),
        bytes_human(Bytes(*plane.peak.get(cell)?)),
        fits_word(lang, *plane.fits.get(cell)?),
        text(lang, "plan.most_here"),
        count(*plane.frontier.get(column)?),
    ))
}

/// Rows of the table beside the chart: value, bytes of each term, KV in use, total, whether it fits. At most about
/// `most` rows, the crossing point and its neighbour among them.
pub fn series_rows(lang: Lang, series: &Series, most: usize) -> Vec<Vec<String>> {
    let stride = series.samples.len().div_ceil(most.max(1)).max(1);
    let named = |x: u64| series.crossing.is_some_and(|c| x == c || x == c + 1) || x == series.here;
    series
        .samples
        .iter()
        .enumerate()
        .filter(|(i, s)| i % stride == 0 || *i + 1 == series.samples.len() || named(s.x))
        .map(|(_, s)| {
            let mut row = vec![count(s.x)];
            row.extend(s.terms.iter().map(|b| bytes_human(Bytes(*b))));
            row.push(bytes_human(Bytes(s.used)));
            row.push(bytes_human(Bytes(s.total)));
            row.push(fits_word(lang, s.fits).to_owned());
            row
        })
        .collect()
}

/// What the chart says, in one sentence.
pub fn summary(lang: Lang, series: &Series) -> String {
    let axis = axis_word(lang, series.axis);
    let (Some(first), Some(last)) = (series.samples.first(), series.samples.last()) else {
        return text(lang, "plan.empty").to_owned();
    };
    // A pool does not grow with the load; what grows is how much of it is in use.
    let pooled = first.total == last.total;
    let key = match (series.crossing, pooled) {
        (Some(_), false) => "plan.summary_crossing",
        (Some(_), true) => "plan.summary_pool_crossing",
        (None, true) if last.fits => "plan.summary_pool_all",
        (None, _) if last.fits => "plan.summary_all",
        (None, _) => "plan.summary_none",
    };
    text(lang, key)
        .replace("{axis}", axis)
        .replace("{from}", &count(first.x))
        .replace("{to}", &count(last.x))
        .replace("{used_low}", &bytes_human(Bytes(first.used)))
        .replace("{used_high}", &bytes_human(Bytes(last.used)))
        .replace("{low}", &bytes_human(Bytes(first.total)))
        .replace("{high}", &bytes_human(Bytes(last.total)))
        .replace("{crossing}", &count(series.crossing.unwrap_or(0)))
}
