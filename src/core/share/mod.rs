//! Layer 4: the Scenario document, its permalink and the Markdown report.

mod fields;
mod lookup;
mod nearest;
mod permalink;
mod read;
mod resolve;
mod scenario;
mod short;

pub use fields::{Field, Kind, SCENARIO, field, paths};
pub use lookup::lookup;
pub use read::SCHEMA;
pub use scenario::{DeviceRef, Job, ModelRef, Resolved, Scenario, run};
