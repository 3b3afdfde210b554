//! The tokens x sequences plane: how full the device is where the load fits, blank where it does not, and the
//! frontier between them. Both axes are logarithmic.

use super::look::{Frame, Look, NotDrawn, failed, rgb, whole_ticks};
use super::palette::Rgb;
use crate::plan::Plane;
use crate::units::count;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Steps of the colour scale. Few, so that a row is a few rectangles and a reader can name the step.
pub const STEPS: usize = 8;

/// Colour of step `i` of [`STEPS`]: one hue, from near the paper to deep, so that it reads without colour too.
pub fn step_colour(i: usize, paper: Rgb) -> Rgb {
    const DEEP: Rgb = (0, 92, 140);
    let share = 0.12 + 0.88 * (i.min(STEPS - 1) as f64 / (STEPS - 1) as f64);
    let mix = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * share).round() as u8;
    (mix(paper.0, DEEP.0), mix(paper.1, DEEP.1), mix(paper.2, DEEP.2))
}

/// Share of what fits that the cell takes, 0 to 1: of the device where the peak moves with the load, else (a
/// pool of fixed size) of the most sequences that fit at those tokens. None where the load does not fit.
pub fn fullness(plane: &Plane, column: usize, row: usize) -> Option<f64> {
    let cell = row * plane.tokens.len() + column;
    if !plane.fits.get(cell).copied().unwrap_or(false) {
        return None;
    }
    let moves = plane.peak.first() != plane.peak.last();
    Some(if moves {
        plane.peak[cell] as f64 / plane.device_total.max(1) as f64
    } else {
        plane.sequences[row] as f64 / plane.frontier[column].max(1) as f64
    })
}

/// Draws `plane` into `area` and tells where its cells lie.
///
/// Errors: what the backend says.
pub fn plane_map<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    plane: &Plane,
    look: &Look<'_>,
) -> Result<Frame, NotDrawn> {
    let theme = look.theme;
    area.fill(&rgb(theme.paper)).map_err(failed)?;
    let (columns, rows) = (plane.tokens.len(), plane.sequences.len());
    if columns < 2 || rows < 2 {
        return Ok(Frame::default());
    }
    let most = |all: &[u64]| all.last().map_or(1.0, |n| (*n as f64).log2()).max(1.0);
    let (wide, high) = (most(&plane.tokens), most(&plane.sequences));
    let mut chart = ChartBuilder::on(area)
        .margin_top(look.px(10.0))
        .margin_right(look.px(14.0))
        .x_label_area_size(look.px(40.0))
        .y_label_area_size(look.px(58.0))
        .build_cartesian_2d(0.0..wide, 0.0..high)
        .map_err(failed)?;
    let text = |size: f64, colour| (look.font, f64::from(look.px(size))).into_font().color(&rgb(colour));
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(ShapeStyle::from(&rgb(theme.ink)).stroke_width(look.px(1.0)))
        .label_style(text(11.0, theme.soft))
        .axis_desc_style(text(11.0, theme.soft))
        .x_desc(look.words.x)
        .y_desc(look.words.y)
        .x_labels(whole_ticks(wide, 9))
        .y_labels(whole_ticks(high, 7))
        .x_label_formatter(&|x| power(*x))
        .y_label_formatter(&|y| power(*y))
        .draw()
        .map_err(failed)?;

    let edge = |all: &[u64], i: usize| {
        // A cell reaches half way to its neighbours.
        let at = |i: usize| (all[i.min(all.len() - 1)] as f64).log2();
        if i == 0 {
            0.0
        } else if i >= all.len() {
            at(all.len() - 1)
        } else {
            f64::midpoint(at(i - 1), at(i))
        }
    };
    for row in 0..rows {
        let (low, up) = (edge(&plane.sequences, row), edge(&plane.sequences, row + 1));
        let step = |column: usize| {
            fullness(plane, column, row).map(|f| ((f * STEPS as f64) as usize).min(STEPS - 1))
        };
        let mut start = 0;
        for column in 1..=columns {
            if column < columns && step(column) == step(start) {
                continue;
            }
            if let Some(i) = step(start) {
                let corners = [(edge(&plane.tokens, start), low), (edge(&plane.tokens, column), up)];
                let fill = rgb(step_colour(i, theme.paper)).filled();
                chart.draw_series(std::iter::once(Rectangle::new(corners, fill))).map_err(failed)?;
            }
            start = column;
        }
    }

    let line: Vec<(f64, f64)> = plane
        .tokens
        .iter()
        .zip(&plane.frontier)
        .filter(|(_, n)| **n > 0)
        .map(|(t, n)| ((*t as f64).log2(), (*n as f64).log2().min(high)))
        .collect();
    let style = ShapeStyle::from(&rgb(theme.accent)).stroke_width(look.px(2.0));
    chart.draw_series(LineSeries::new(line.iter().copied(), style)).map_err(failed)?;
    let (xs, ys) = chart.plotting_area().get_pixel_range();
    let frame = Frame { left: xs.start, right: xs.end, top: ys.start, bottom: ys.end };

    let here = ((plane.here.0.max(1) as f64).log2(), (plane.here.1.max(1) as f64).log2());
    if here.0 <= wide && here.1 <= high {
        chart
            .draw_series([
                Circle::new(here, look.px(5.0), rgb(theme.paper).filled()),
                Circle::new(here, look.px(3.5), rgb(theme.ink).filled()),
            ])
            .map_err(failed)?;
        let (px, py) = chart.backend_coord(&here);
        let left = px > i32::midpoint(frame.left, frame.right);
        let shift = look.at(if left { -9.0 } else { 9.0 });
        look.label(area, look.words.here, theme.ink, (px + shift, py - look.at(6.0)), left)?;
    }
    let at = (frame.right - look.at(4.0), frame.top + look.at(4.0));
    look.label(area, look.words.crossing, theme.accent, at, true)?;
    area.present().map_err(failed)?;
    Ok(frame)
}

/// A tick of a logarithmic axis as the full number.
fn power(log2: f64) -> String {
    count(log2.exp2().round() as u64)
}
