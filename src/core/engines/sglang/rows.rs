//! Rows of the ledger.

use super::costs::{Costs, growth};
use super::pools::Pools;
use crate::engines::Inputs;
use crate::engines::pooled::{
    End, RUNNING, Row, SERVING, STARTED, Span, encoder_elements, measured, other_processes, product, row,
    widest_layer,
};
use crate::memory::context::{Observed, communication, context_overhead, library_workspace};
use crate::memory::{PhaseId, Provenance, Residency, Term, TermId, Working};
use crate::units::Bytes;

const MIB: u64 = Bytes::MIB;

const SHARE: &str = "SGLang mem_fraction_static: profile_max_num_token, from 0.5.15 KVCacheConfigurator";
const GRAPHS: &str = "SGLang lines \"Capture cuda graph end … mem usage\" (n=8): 0.07 to 1.93 GiB, median 0.87; with DeepEP 20 GiB (sgl-project/sglang#24453); captured prefill 0.49 and 1.29 GiB";
const BACKEND: &str =
    "SGLang lines \"Memory pool end\" less \"Capture cuda graph begin\" (n=6): 0.05 to 0.64 GiB";
const FORWARD: &str = "widest layer, as vLLM's profile runs show it; no SGLang log prints its activations";

fn still(term: Term) -> Row {
    Row { term, moves: false }
}

fn moving(term: Term) -> Row {
    Row { term, moves: true }
}

/// Everything there before the weights, and what loading adds.
pub(super) fn around(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Row> {
    let arch = inputs.device.gpu.map(|g| g.arch);
    let observed = |o: Observed, id, phases: &[PhaseId]| Term { phases: phases.to_vec(), ..o.term(id) };
    let mut out = Vec::new();
    if costs.before_measured {
        let working = Working::new("taken before weights are loaded, as printed", 0);
        let term = row(TermId::ContextOverhead, costs.context, Residency::Resident, SERVING, working);
        out.push(still(measured(term, "measured.non_torch_bytes")));
    } else {
        out.push(moving(observed(context_overhead(arch), TermId::ContextOverhead, SERVING)));
        let world = inputs.parallel.tensor.saturating_mul(inputs.parallel.pipeline);
        if world > 1 {
            out.push(moving(observed(communication(world), TermId::Communication, SERVING)));
        }
    }
    out.extend(other_processes(costs.others).map(still));
    out
}

/// The token pools and the state slots.
pub(super) fn pools(costs: &Costs) -> Vec<Row> {
    let (s, cells) = (&costs.settings, &costs.cells);
    let (point, best, worst) = (costs.pools(End::Point), costs.pools(End::Best), costs.pools(End::Worst));
    let bytes = |p: &Pools| p.token_bytes(costs);
    let span = Span {
        point: bytes(&point),
        low: bytes(&worst).min(bytes(&point)),
        high: bytes(&best).max(bytes(&point)),
    };
    let formula = match (costs.printed.is_some(), cells.window > 0) {
        (true, _) => "floor(pool as printed / cell)",
        (false, false) => "floor((free · f - loaded - states) / cell / page) · page · cell",
        (false, true) => "full tokens · full cell + full tokens · ratio · window cell, of free · f - loaded",
    };
    let mut working = Working::new(formula, 0);
    if let Some(pool) = costs.printed {
        working = working.with("pool as printed", pool, "B");
    } else {
        working = working.with("free", costs.free(End::Point), "B").with("f", s.fraction, "").with(
            "loaded",
            costs.loaded(End::Point),
            "B",
        );
    }
    working = working.with("cell", cells.full, "B/token").with("page", s.page, "tokens");
    if cells.window > 0 {
        working = working
            .with("window cell", cells.window, "B/token")
            .with("ratio", s.window_ratio, "")
            .with("window tokens", point.window_tokens, "tokens");
    }
    if let Some(most) = costs.max_total_tokens {
        working = working.with("max_total_tokens", most, "tokens");
    }
    working = working.with("tokens", point.tokens, "tokens");
    let (provenance, source) = match costs.printed {
        Some(_) => (Provenance::Measured, "measured.kv_available_bytes"),
        None => (Provenance::Bounded, SHARE),
    };
    let term = row(TermId::KvCache, span, Residency::ReservedPool, RUNNING, working);
    let mut out = vec![still(Term { provenance, source, ..term })];
    if cells.state > 0 {
        let of = |p: &Pools| p.state_bytes(costs);
        let span =
            Span { point: of(&point), low: of(&worst).min(of(&point)), high: of(&best).max(of(&point)) };
        let working = Working::new("(slots + 1) · state", 0)
            .with("slots", point.slots, "slots")
            .with("state", cells.state, "B")
            .with("ratio", s.state_ratio, "");
        let term = row(TermId::RecurrentState, span, Residency::ReservedPool, RUNNING, working);
        out.push(still(Term { provenance: Provenance::Bounded, source: SHARE, ..term }));
    }
    out
}

/// What comes after the pools: table of token slots, attention buffers, graphs, the forward pass.
pub(super) fn after(inputs: &Inputs<'_>, costs: &Costs, pools: &Pools) -> Vec<Row> {
    let mut out = vec![workspace(inputs, costs, pools)];
    out.extend(graphs(inputs, costs));
    out.extend(forward(inputs, costs));
    out
}

/// The table of every request's token slots, library workspaces, the attention backend's buffers.
fn workspace(inputs: &Inputs<'_>, costs: &Costs, pools: &Pools) -> Row {
    const ROW_END: u64 = 4;
    let s = &costs.settings;
    let width = s.context.saturating_add(ROW_END).saturating_add(s.speculative);
    let rows = pools.requests.saturating_add(1);
    let table = product(&[rows, width, 4]);
    let backend = Span { point: 300 * MIB, low: 50 * MIB, high: 660 * MIB };
    let library: Span = library_workspace(inputs.device.gpu.map(|g| g.arch)).into();
    let loading: Span = if inputs.measured.weights_bytes.is_some() {
        Span::default()
    } else {
        growth(inputs.device.gpu.map(|g| g.arch)).into()
    };
    let add =
        |end: fn(&Span) -> u64| [backend, library, loading].iter().map(end).fold(table, u64::saturating_add);
    let span = Span { point: add(|s| s.point), low: add(|s| s.low), high: add(|s| s.high) };
    let working = Working::new("requests · (context + 4) · 4 B + attention buffers + libraries", 0)
        .with("requests", rows, "requests")
        .with("context", s.context, "tokens")
        .with("table", table, "B")
        .with("attention buffers", backend.point, "B");
    let term = row(TermId::Workspace, span, Residency::Resident, STARTED, working);
    moving(Term { source: BACKEND, ..term })
}

/// Captured graphs: no shape gives their size.
fn graphs(inputs: &Inputs<'_>, costs: &Costs) -> Option<Row> {
    let s = &costs.settings;
    if let Some(bytes) = inputs.measured.cuda_graph_bytes {
        let working = Working::new("as printed", 0);
        let term = row(TermId::CudaGraphs, Span::exactly(bytes), Residency::Resident, RUNNING, working);
        return Some(still(measured(term, "measured.cuda_graph_bytes")));
    }
    if s.graphs == 0 && s.buckets == 0 {
        return None;
    }
    let decode = if s.graphs > 0 {
        Span { point: 870 * MIB, low: 70 * MIB, high: 1980 * MIB }
    } else {
        Span::default()
    };
    let prefill = s.buckets.saturating_mul(8 * MIB);
    let high = if s.buckets > 0 { 1320 * MIB } else { 0 };
    let span = Span {
        point: decode.point.saturating_add(prefill),
        low: decode.low,
        high: decode.high.saturating_add(prefill.max(high)),
    };
    let working = Working::new("decode graphs as observed + prefill pieces · 8 MiB", 0)
        .with("largest batch", s.graphs, "sequences")
        .with("decode graphs", decode.point, "B")
        .with("prefill pieces", s.buckets, "");
    let term = row(TermId::CudaGraphs, span, Residency::Resident, RUNNING, working);
    Some(moving(Term { source: GRAPHS, ..term }))
}

/// The forward pass over a prefill chunk, and the vision tower over one image's worth of tokens.
fn forward(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Row> {
    if let Some(bytes) = inputs.measured.activation_peak_bytes {
        let working = Working::new("as measured", 0).with("chunk", costs.settings.chunk, "tokens");
        let phases = &[PhaseId::Prefill, PhaseId::Sampling];
        let term = row(TermId::Activations, Span::exactly(bytes), Residency::Transient, phases, working);
        return vec![still(measured(term, "measured.activation_peak_bytes"))];
    }
    let element = inputs.weights.dtype.bytes();
    let widest = widest_layer(inputs.model, costs.settings.attention_ranks.min(inputs.parallel.tensor));
    let tokens = costs.settings.chunk;
    let point = product(&[tokens, widest, element]);
    let span = Span { point, low: point / 4 * 3, high: point.saturating_add(point / 2) };
    let working = Working::new("T · widest layer · e", 0)
        .with("T", tokens, "tokens")
        .with("widest layer", widest, "elements/token")
        .with("e", element, "B/element");
    let term = row(TermId::Activations, span, Residency::Transient, &[PhaseId::Prefill], working);
    let mut out = vec![moving(Term { source: FORWARD, ..term })];
    let encoder = encoder_elements(inputs.model);
    if encoder > 0 {
        let tokens = inputs.model.vision.map_or(0, |v| v.tokens_per_image).max(1024).min(tokens);
        let point = product(&[tokens, encoder, element]);
        let span = Span { point, low: 0, high: point.saturating_mul(2) };
        let working = Working::new("image tokens · patches per token · (3 d + 2 d_ff) · e", 0)
            .with("image tokens", tokens, "tokens")
            .with("e", element, "B/element");
        let term = row(TermId::Encoder, span, Residency::Transient, &[PhaseId::Prefill], working);
        out.push(moving(Term { source: FORWARD, ..term }));
    }
    out
}

/// Weights and KV of a draft.
pub(super) fn draft(costs: &Costs, pools: &Pools) -> Option<Row> {
    let layers = costs.draft_layers;
    if layers == 0 && costs.draft == 0 {
        return None;
    }
    let cell = costs.cells.full / costs.cells.layers.max(1);
    let cache = product(&[pools.tokens, cell, layers]);
    let span = Span::exactly(costs.draft.saturating_add(cache));
    let inside = if costs.settings.version.counts_draft() { "inside" } else { "outside" };
    let working = Working::new("weights of the draft + tokens · bytes per layer · draft layers", 0)
        .with("weights of the draft", costs.draft, "B")
        .with("tokens", pools.tokens, "tokens")
        .with("draft layers", layers, "layers")
        .with("static share", inside, "");
    let term = row(TermId::DraftModel, span, Residency::Resident, RUNNING, working);
    Some(still(Term { provenance: Provenance::Bounded, ..term }))
}
