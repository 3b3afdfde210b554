//! Memory against tokens or sequences: one area a term, the device total and the budget as lines, the largest
//! load that fits as a named point.

use super::look::{Frame, Look, NotDrawn, failed, rgb, whole_ticks};
use super::palette;
use crate::memory::TermId;
use crate::plan::{Sample, Series};
use crate::units::{Bytes, count};
use plotters::coord::Shift;
use plotters::prelude::*;

const GIB: f64 = Bytes::GIB as f64;

/// Most ticks of the vertical axis.
const TICKS: usize = 6;

/// Draws `series` into `area` and tells where its values lie.
///
/// Errors: what the backend says.
pub fn stacked<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    series: &Series,
    look: &Look<'_>,
) -> Result<Frame, NotDrawn> {
    let theme = look.theme;
    area.fill(&rgb(theme.paper)).map_err(failed)?;
    let (Some(first), Some(last)) = (series.samples.first(), series.samples.last()) else {
        return Ok(Frame::default());
    };
    let highest = series.samples.iter().map(|s| s.total).max().unwrap_or(0).max(series.device_total);
    let top = highest as f64 / GIB * 1.2;
    // As many decimals as tell the ticks of a small device apart; none where they are whole.
    let decimals = (TICKS as f64 / top).log10().ceil().clamp(0.0, 4.0) as usize;
    let mut chart = ChartBuilder::on(area)
        .margin_top(look.px(10.0))
        .margin_right(look.px(14.0))
        .x_label_area_size(look.px(40.0))
        .y_label_area_size(look.px(68.0))
        .build_cartesian_2d(first.x as f64..(last.x as f64).max(first.x as f64 + 1.0), 0.0..top)
        .map_err(failed)?;
    let text = |size: f64, colour| (look.font, f64::from(look.px(size))).into_font().color(&rgb(colour));
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(ShapeStyle::from(&rgb(theme.rule)).stroke_width(look.px(0.5)))
        .axis_style(ShapeStyle::from(&rgb(theme.ink)).stroke_width(look.px(1.0)))
        .label_style(text(11.0, theme.soft))
        .axis_desc_style(text(11.0, theme.soft))
        .x_desc(look.words.x)
        .y_desc(look.words.y)
        .x_labels(whole_ticks((last.x - first.x) as f64, 6))
        .y_labels(TICKS)
        .x_label_formatter(&|x| count(x.round().max(0.0) as u64))
        .y_label_formatter(&|y| format!("{y:.decimals$} GiB"))
        .draw()
        .map_err(failed)?;

    // From the top of the stack down, each area reaching to the axis: the next covers its lower part.
    for upto in (1..=series.terms.len()).rev() {
        let id = series.terms[upto - 1];
        let below = |s: &Sample| s.terms[..upto - 1].iter().sum::<u64>();
        let points = |part: &dyn Fn(&Sample) -> u64| -> Vec<(f64, f64)> {
            series.samples.iter().map(|s| (s.x as f64, (below(s) + part(s)) as f64 / GIB)).collect()
        };
        let fill = rgb(palette::term(id));
        let whole = points(&|s| s.terms[upto - 1]);
        if id == TermId::KvCache && series.samples.iter().any(|s| s.used < s.terms[upto - 1]) {
            // A pool taken beforehand: what this load occupies of it in full colour, the rest pale.
            let pale = rgb(palette::mix(palette::term(id), theme.paper, 0.68));
            chart.draw_series(AreaSeries::new(whole, 0.0, pale.filled())).map_err(failed)?;
            let used = points(&|s| s.used.min(s.terms[upto - 1]));
            chart.draw_series(AreaSeries::new(used, 0.0, fill.filled())).map_err(failed)?;
        } else {
            chart.draw_series(AreaSeries::new(whole, 0.0, fill.filled())).map_err(failed)?;
        }
    }
    // Hairlines of the paper between the areas keep neighbours apart without relying on hue.
    for upto in 1..=series.terms.len() {
        let points = series.samples.iter().map(|s| {
            let sum: u64 = s.terms[..upto].iter().sum();
            (s.x as f64, sum as f64 / GIB)
        });
        let style = ShapeStyle::from(&rgb(theme.paper)).stroke_width(look.px(0.75));
        chart.draw_series(LineSeries::new(points, style)).map_err(failed)?;
    }

    let ends = [first.x as f64, last.x as f64];
    let device = series.device_total as f64 / GIB;
    let solid = ShapeStyle::from(&rgb(theme.ink)).stroke_width(look.px(1.5));
    chart.draw_series(LineSeries::new(ends.map(|x| (x, device)), solid)).map_err(failed)?;
    if series.budget < series.device_total {
        let budget = series.budget as f64 / GIB;
        let dashed = ShapeStyle::from(&rgb(theme.accent)).stroke_width(look.px(1.5));
        let line = DashedLineSeries::new(ends.map(|x| (x, budget)), look.px(5.0), look.px(4.0), dashed);
        chart.draw_series(line).map_err(failed)?;
    }
    let (xs, ys) = chart.plotting_area().get_pixel_range();
    let frame = Frame { left: xs.start, right: xs.end, top: ys.start, bottom: ys.end };

    let line_at = |y: f64| chart.backend_coord(&(ends[0], y)).1;
    look.label(
        area,
        look.words.device,
        theme.ink,
        (frame.right - look.at(4.0), line_at(device) - look.at(15.0)),
        true,
    )?;
    if series.budget < series.device_total {
        let y = line_at(series.budget as f64 / GIB) + look.at(3.0);
        look.label(area, look.words.budget, theme.accent, (frame.left + look.at(6.0), y), false)?;
    }

    if let Some(x) = series.crossing {
        let style = ShapeStyle::from(&rgb(theme.accent)).stroke_width(look.px(1.5));
        let line =
            DashedLineSeries::new([(x as f64, 0.0), (x as f64, top)], look.px(2.0), look.px(3.0), style);
        chart.draw_series(line).map_err(failed)?;
        let total = series.samples.iter().find(|s| s.x == x).map_or(0, |s| s.total);
        let point = (x as f64, total as f64 / GIB);
        chart
            .draw_series(std::iter::once(Circle::new(point, look.px(4.0), rgb(theme.accent).filled())))
            .map_err(failed)?;
        let (px, _) = chart.backend_coord(&point);
        let right = px < i32::midpoint(frame.left, frame.right);
        let shift = look.at(if right { 6.0 } else { -6.0 });
        let words = format!("{} {}", look.words.crossing, count(x));
        look.label(area, &words, theme.accent, (px + shift, frame.top + look.at(2.0)), !right)?;
    }
    area.present().map_err(failed)?;
    Ok(frame)
}
