//! Layer 4: the inverse questions. Largest context, batch and concurrency that fit; series for plots.

mod estimate;

pub use estimate::{Estimate, Limit, Limits, estimate};
