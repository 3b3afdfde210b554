//! Layer 4: the Scenario document, its permalink and the Markdown report.

mod scenario;

pub use scenario::{DeviceRef, Job, ModelRef, Resolved, Scenario, run};
