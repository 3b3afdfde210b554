//! What a chart needs besides its data: colours, sizes in device pixels, and where it drew.

use super::palette::{Rgb, Theme};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Looks of a chart. Every size is multiplied by `ratio`, so that a chart is sharp on any screen.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Colours.
    pub theme: Theme,
    /// Device pixels of one page pixel.
    pub ratio: f64,
    /// Font family.
    pub font: &'a str,
    /// Words on the chart.
    pub words: Words<'a>,
}

/// Words on a chart, in the person's language.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Under the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis.
    pub y: &'a str,
    /// By the line of the device total.
    pub device: &'a str,
    /// By the line of the budget.
    pub budget: &'a str,
    /// By the crossing point or the frontier.
    pub crossing: &'a str,
    /// By the job's own point.
    pub here: &'a str,
}

impl Look<'_> {
    /// `size` page pixels in device pixels, at least one.
    pub fn px(&self, size: f64) -> u32 {
        (size * self.ratio).round().max(1.0) as u32
    }

    /// Text on a patch of the paper, so that it can be read over any fill. `x` is the left end, or the right end
    /// where `leftwards`; `y` the upper edge.
    pub(super) fn label<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        words: &str,
        colour: Rgb,
        (x, y): (i32, i32),
        leftwards: bool,
    ) -> Result<(), NotDrawn> {
        let style = (self.font, f64::from(self.px(11.0))).into_font().color(&rgb(colour));
        let (width, height) = (self.at(11.0 * ems(words)), self.at(11.0));
        let x = if leftwards { x - width } else { x };
        let pad = self.at(2.0);
        let patch = Rectangle::new(
            [(x - pad, y - pad / 2), (x + width + pad, y + height + pad / 2)],
            rgb(self.theme.paper).mix(0.88).filled(),
        );
        area.draw(&patch).map_err(failed)?;
        area.draw_text(words, &style, (x, y)).map_err(failed)
    }

    /// As [`Look::px`], signed.
    pub fn at(&self, size: f64) -> i32 {
        (size * self.ratio).round() as i32
    }
}

/// The plotting area in device pixels: where values lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Left edge.
    pub left: i32,
    /// Right edge.
    pub right: i32,
    /// Upper edge.
    pub top: i32,
    /// Lower edge.
    pub bottom: i32,
}

impl Frame {
    /// How far right of the left edge `x` lies, 0 to 1; none outside.
    pub fn across(&self, x: f64) -> Option<f64> {
        let width = f64::from(self.right - self.left);
        let share = (x - f64::from(self.left)) / width;
        (width > 0.0 && (0.0..=1.0).contains(&share)).then_some(share)
    }

    /// How far above the lower edge `y` lies, 0 to 1; none outside.
    pub fn up(&self, y: f64) -> Option<f64> {
        let height = f64::from(self.bottom - self.top);
        let share = (f64::from(self.bottom) - y) / height;
        (height > 0.0 && (0.0..=1.0).contains(&share)).then_some(share)
    }
}

/// A chart that could not be drawn, in the backend's words; for the console, never for the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDrawn(pub String);

impl std::fmt::Display for NotDrawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the chart was not drawn: {}", self.0)
    }
}

impl std::error::Error for NotDrawn {}

/// Turns a backend's error into [`NotDrawn`].
pub(super) fn failed<E: std::fmt::Debug>(error: E) -> NotDrawn {
    NotDrawn(format!("{error:?}"))
}

/// About how wide `words` is, in ems: a wide letter (Chinese) is one, others a little over a half.
///
/// The canvas backend's own measure writes a style attribute into the page, which its policy forbids.
fn ems(words: &str) -> f64 {
    words.chars().map(|c| if u32::from(c) >= 0x2E80 { 1.0 } else { 0.54 }).sum()
}

/// How many ticks an axis of that `length` bears, at most `most`, so that all are whole numbers.
pub(super) fn whole_ticks(length: f64, most: usize) -> usize {
    (length.max(0.0) as usize).saturating_add(1).clamp(2, most)
}

/// A colour of the palette as plotters takes it.
pub(super) fn rgb((r, g, b): Rgb) -> RGBColor {
    RGBColor(r, g, b)
}
