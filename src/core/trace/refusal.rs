//! What is said of files that are no memory logs, and of the driver's own messages inside of those that are.

use super::importers::Input;
use super::timeline::Warning;
use super::{Refusal, columns, csv_header, fields, gauges};
use crate::units::Message;

/// Starts of messages that the driver's tools and shells print in place of rows. Short stems: the wording
/// changes between drivers.
const DRIVER: &[&str] = &[
    "NVIDIA-SMI has failed",
    "Failed to initialize NVML",
    "No devices were found",
    "Unable to determine the device handle",
    "nvidia-smi: command not found",
    "nvidia-smi: not found",
    "is not recognized as an internal or external command",
    "is not a valid field to query",
    "Invalid combination of input arguments",
];

fn driver(line: &str) -> bool {
    line.len() < 500 && DRIVER.iter().any(|stem| line.contains(stem))
}

/// Warns about the driver's messages, at most a few.
pub fn driver_messages(input: &Input, warnings: &mut Vec<Warning>) {
    // Most files have none: one pass for the rarest common part.
    let lines = (1..).zip(input.text.lines()).filter(|(_, line)| driver(line));
    for (number, line) in lines.take(20) {
        let message = Message::new("trace.driver_said").with("text", line.trim());
        warnings.push(Warning { line: Some(number), message });
    }
}

/// Why a text of no known format is refused.
pub fn of(input: &Input) -> Refusal {
    let refuse = |message| Refusal { format: None, message };
    if let Some((_, line)) = input.head_lines().find(|(_, line)| driver(line)) {
        return refuse(Message::new("trace.only_driver").with("text", line.trim()));
    }
    if input.any_line(|l| l.starts_with("| npu-smi")) {
        return refuse(Message::new("trace.npu_smi"));
    }
    if gauges::only_bandwidth(input) {
        return refuse(Message::new("trace.only_bandwidth"));
    }
    // A table with names, but none of memory in use.
    let mut cells = Vec::new();
    for (_, line) in input.head_lines().take(50) {
        let Some(map) = csv_header::header(line) else { continue };
        fields::split(line, fields::separator(line), &mut cells);
        let known = map.names.iter().any(|n| columns::column(n) != columns::Column::Other);
        if known && cells.len() > 1 && !map.has_memory() {
            let names: Vec<&str> = map.names.iter().map(|n| n.trim()).take(8).collect();
            return refuse(Message::new("trace.no_memory_column").with("columns", names.join(", ")));
        }
    }
    refuse(Message::new("trace.unknown"))
}
