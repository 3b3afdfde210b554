//! CUDA graphs: the one term that no shape gives.

use super::profile::Span;
use super::settings::Settings;
use crate::engines::Inputs;
use crate::engines::pooled::product;
use crate::model::Quantization;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Where the rule was read.
pub(super) const SOURCE: &str = "vLLM start-up lines \"Graph capturing finished … took\" (n=17) and the estimates of 0.21 and later (n=6), divided by layers and graphs; differences of free memory may be negative";

/// Captured graphs of one kind: what is fitted, per layer and graph, on one rank, several ranks, and with weights
/// that are expanded while they are used.
const ONE_RANK: u64 = 300 * KIB;
const RANKS: u64 = 560 * KIB;
const EXPANDED: u64 = 800 * KIB;
/// 0.21 and later share the memory of graphs of all sizes.
const SHARED: u64 = 230 * KIB;

/// Batches that are captured, largest first in memory: 1, 2, 4, then steps of 8, from 256 on of 16 in newer versions.
///
/// V0 captured up to its sequences; V1 up to 512 (`_set_cudagraph_sizes`, `cudagraph_capture_sizes`), from 0.11.1
/// not beyond twice the sequences. gpt-oss had a list of its own, up to 1024, in 0.10.1 to 0.11.0.
pub(super) fn captured(inputs: &Inputs<'_>, s: &Settings) -> u64 {
    if s.eager {
        return 0;
    }
    let version = s.version;
    let twice = s.max_seqs.saturating_mul(2).max(1);
    let own = inputs.model.model_type == "gpt_oss" && version.own_list_of_gpt_oss();
    let largest = inputs.serve.max_cudagraph_capture_size.unwrap_or(if !version.v1 {
        s.max_seqs.max(1)
    } else if own {
        1024
    } else if version.captures_by_sequences() {
        twice.min(512)
    } else {
        512
    });
    let small = [1, 2, 4].iter().filter(|n| **n <= largest).count() as u64;
    let wide = own || (version.v1 && version.captures_by_sequences());
    let by_8 = if wide { largest.min(255) / 8 } else { largest / 8 };
    let by_16 = if wide && largest >= 256 { (largest - 256) / 16 + 1 } else { 0 };
    small.saturating_add(by_8).saturating_add(by_16)
}

/// Bytes of captured graphs and their private pool; nothing under `--enforce-eager`.
///
/// Layers times captured batches times what one graph of one layer was seen to take: 0.27 to 0.41 MiB on one rank
/// (0.8 to 0.11, n = 5 of 8; three of one table far below), 0.42 to 0.64 on several (n = 3), 0.65 to 1.46 with
/// bitsandbytes (n = 4), 0.2 to 0.3 from 0.21 (n = 3). A difference of free memory before and after may be
/// negative, which is clamped here. `calib` probe `graphs` re-measures it.
pub(super) fn graphs(inputs: &Inputs<'_>, s: &Settings) -> Span {
    if let Some(bytes) = inputs.measured.cuda_graph_bytes {
        return Span::exactly(bytes);
    }
    let graphs = captured(inputs, s);
    if graphs == 0 {
        return Span::default();
    }
    let expanded = matches!(
        crate::memory::weights::effective_quantization(inputs.model, inputs.weights).quantization,
        Some(Quantization::BnbNf4 | Quantization::BnbInt8)
    );
    let each = if expanded {
        EXPANDED
    } else if s.version.graphs_in_budget() {
        SHARED
    } else if inputs.parallel.tensor > 1 {
        RANKS
    } else {
        ONE_RANK
    };
    let layers = (inputs.model.layers.len() as u64).div_ceil(inputs.parallel.pipeline.max(1));
    let point = product(&[layers, graphs, each]);
    Span { point, low: 0, high: (point / 2).saturating_mul(3).saturating_add(128 * MIB) }
}
