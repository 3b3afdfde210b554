//! The formats: one row each in [`IMPORTERS`], tried in order.

use super::decode::Decoded;
use super::rows::Rows;
use super::{
    amd, csv_bare, csv_header, dcgm, dmon, gauges, gpustat, json, nvitop, query, table, tegrastats, xml,
};
use crate::units::Message;

/// A decoded file, as importers see it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The text, line feeds only.
    pub text: &'a str,
    /// Whether the last line lacks its line feed.
    pub open_end: bool,
}

impl<'a> Input<'a> {
    /// The text of a decoded file.
    pub fn new(decoded: &'a Decoded) -> Input<'a> {
        Input { text: &decoded.text, open_end: decoded.open_end }
    }

    /// The start, from which the format is told: 256 KiB, to a whole line.
    pub fn head(&self) -> &'a str {
        let mut end = self.text.len().min(256 << 10);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }

    /// The lines of the start, numbered.
    pub fn head_lines(&self) -> impl Iterator<Item = (u32, &'a str)> + Clone {
        (1..).zip(self.head().lines())
    }

    /// Whether a line of the start satisfies `test`.
    pub fn any_line(&self, test: impl Fn(&str) -> bool) -> bool {
        self.head_lines().any(|(_, line)| test(line))
    }

    /// Whether a line belongs to a table of nvidia-smi, which often stands before the rows.
    pub fn is_table_line(&self, line: &str) -> bool {
        line.starts_with(['|', '+', ' ', '=', '-'])
    }
}

/// One format.
pub struct Importer {
    /// Id in answers.
    pub id: &'static str,
    /// Whether a text is of this format. Reads the start only, and never the file's name.
    pub sniff: fn(&Input) -> bool,
    /// Reads it: rows, or why there are none.
    pub read: fn(&Input) -> Result<Rows, Message>,
}

/// Every format, in the order in which they are tried: what is marked unmistakably comes first.
pub const IMPORTERS: &[Importer] = &[
    Importer { id: "gpustat-json", sniff: json::sniff_gpustat, read: json::read_gpustat },
    Importer { id: "prometheus-json", sniff: json::sniff_prometheus, read: json::read_prometheus },
    Importer { id: "wandb-events", sniff: json::sniff_wandb, read: json::read_wandb },
    Importer { id: "nvtop-json", sniff: json::sniff_nvtop, read: json::read_nvtop },
    Importer { id: "rocm-smi-json", sniff: json::sniff_rocm, read: json::read_rocm },
    Importer { id: "nvidia-smi-xml", sniff: xml::sniff, read: xml::read },
    Importer { id: "nvidia-smi-q", sniff: query::sniff, read: query::read },
    Importer { id: "nvidia-smi-pmon", sniff: dmon::sniff_pmon, read: dmon::read_pmon },
    Importer { id: "nvidia-smi-dmon", sniff: dmon::sniff_dmon, read: dmon::read_dmon },
    Importer { id: "dcgmi-dmon", sniff: dcgm::sniff_dmon, read: dcgm::read_dmon },
    Importer { id: "gpustat", sniff: gpustat::sniff, read: gpustat::read },
    Importer { id: "dcgm-exporter", sniff: dcgm::sniff_exporter, read: dcgm::read_exporter },
    Importer { id: "nvitop-csv", sniff: nvitop::sniff, read: nvitop::read },
    Importer { id: "wandb-csv", sniff: nvitop::sniff_wandb, read: nvitop::read_wandb },
    Importer { id: "rocm-smi-csv", sniff: amd::sniff_rocm_csv, read: csv_header::read },
    Importer { id: "rocm-smi", sniff: amd::sniff_rocm, read: amd::read_rocm },
    Importer { id: "amd-smi", sniff: amd::sniff_monitor, read: amd::read_monitor },
    Importer { id: "tegrastats", sniff: tegrastats::sniff, read: tegrastats::read },
    Importer { id: "nvidia-smi-compute-apps", sniff: csv_header::sniff_processes, read: csv_header::read },
    Importer { id: "nvidia-smi-query-csv", sniff: csv_header::sniff_query, read: csv_header::read },
    Importer { id: "gpu-csv", sniff: csv_header::sniff_any, read: csv_header::read },
    Importer { id: "nvidia-smi-table", sniff: table::sniff, read: table::read },
    Importer { id: "gpu-rows", sniff: csv_bare::sniff, read: csv_bare::read },
    Importer { id: "torch-text", sniff: gauges::sniff_torch, read: gauges::read },
    Importer { id: "gpu-text", sniff: gauges::sniff, read: gauges::read },
];
