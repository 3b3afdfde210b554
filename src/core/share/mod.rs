//! Layer 4: the Scenario document, its permalink and the Markdown report.

mod advice;
mod fields;
mod from_log;
mod imports;
mod lookup;
mod markdown;
mod nearest;
mod permalink;
mod plain;
mod read;
mod reading;
mod report;
mod resolve;
mod result;
mod scenario;
mod short;
mod working;

pub use advice::{AdviceRow, advice_json, advice_lines, advice_rows};
pub use fields::{Field, Kind, SCENARIO, field, paths};
pub use from_log::{Filled, from_log};
pub use imports::{
    IMPORTS, Import, Imported, Key, Taken, import, imported_json, imported_lines, kinds, merge,
};
pub use lookup::lookup;
pub use markdown::markdown;
pub use plain::{Layout, plain};
pub use read::SCHEMA;
pub use reading::{reading_json, reading_lines, refusal_json};
pub use report::{LimitRow, PhaseRow, Report, ReportRow};
pub use result::{error_json, result_json};
pub use scenario::{DeviceRef, Job, ModelRef, Resolved, Scenario, run};
pub use working::WorkingLine;
