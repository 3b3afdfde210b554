//! Layer 4: chart models, and drawing generic over plotters' `DrawingBackend`: the page draws on a canvas, the
//! tests on SVG, with the same code.

mod look;
pub mod palette;
mod plane;
mod read;
mod stacked;

pub use look::{Frame, Look, NotDrawn, Words};
pub use plane::{STEPS, fullness, plane_map, step_colour};
pub use read::{cell_at, plane_reading, sample_at, series_reading, series_rows, summary};
pub use stacked::stacked;
