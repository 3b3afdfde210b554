//! Layer 4: the inverse questions. Largest context, batch and concurrency that fit; series for plots.

mod closing;
mod estimate;
pub mod levers;
mod limits;
mod options;
mod projection;
mod training_series;

pub use estimate::{Estimate, Limits, estimate, estimate_training};
pub use levers::{Suggestion, Suggestions, suggest, suggest_training};
pub use limits::{largest, largest_throughout, limits, training_limits};
pub use options::{FrontierRow, OptionLimits, ShareLimit, frontier, option_limits};
pub use projection::{Axis, Plane, Sample, Series, geometric, plane, series};
pub use training_series::training_series;
