//! Rows of the ledger.

use super::account::{Account, cell_bytes};
use super::settings::Settings;
use crate::engines::pooled::{SERVING, STARTED, Span, measured, other_processes, row};
use crate::engines::{Detail, Inputs};
use crate::memory::{Part, PhaseId, Provenance, Residency, Term, TermId, Working};
use crate::model::Model;

const CONTEXT_SOURCE: &str = "as any CUDA process (vLLM start-up lines, stas00/ml-engineering); 749 MiB left unaccounted by llama.cpp in ggml-org/llama.cpp#27953";
const LAYOUT_SOURCE: &str =
    "ggml-alloc.c and ggml-backend.cpp of llama.cpp, replayed on the graph of src/llama-graph.cpp";

fn exact(id: TermId, bytes: u64, residency: Residency, phases: &[PhaseId], working: Working) -> Term {
    Term { provenance: Provenance::Exact, ..row(id, Span::exactly(bytes), residency, phases, working) }
}

/// Rows of one backend: a device, or the host after them.
pub(super) fn rows(inputs: &Inputs<'_>, account: &Account, at: usize, detail: Detail) -> Vec<Term> {
    let s = &account.settings;
    let host = at == account.layout.place.host;
    let mut out = Vec::new();
    out.push(weights(inputs, account, at, detail));
    if account.kv[at] > 0 {
        let working = kv_working(inputs.model, s, account.kv[at]);
        let term = exact(TermId::KvCache, account.kv[at], Residency::ReservedPool, STARTED, working);
        let printed = !host && inputs.measured.kv_available_bytes.is_some();
        out.push(if printed { measured(term, "measured.kv_available_bytes") } else { term });
    }
    if account.state[at] > 0 {
        let working = Working::new("Σ layers · (conv channels · (kernel - 1) + state) · 4 · B", 0).with(
            "B",
            s.seqs,
            "sequences",
        );
        out.push(exact(TermId::RecurrentState, account.state[at], Residency::ReservedPool, STARTED, working));
    }
    let working = Working::new("largest extent of the results of a batch, as ggml lays them out", 0)
        .with("n_ubatch", s.ubatch, "tokens")
        .with("rows of logits", s.outputs.min(s.ubatch), "")
        .with("cells", s.cells.full.max(s.cells.window), "cells")
        .with("flash attention", if s.flash { "on" } else { "off" }, "")
        .with("V", inputs.model.vocab_size, "entries");
    let compute = exact(TermId::Activations, account.compute[at], Residency::Resident, STARTED, working);
    let printed = !host && inputs.measured.activation_peak_bytes.is_some();
    out.push(if printed {
        measured(compute, "measured.activation_peak_bytes")
    } else {
        Term { source: LAYOUT_SOURCE, ..compute }
    });
    if host {
        let logits = inputs.model.vocab_size.saturating_mul(4).saturating_mul(s.seqs);
        let working = Working::new("V · 4 · B", 0).with("V", inputs.model.vocab_size, "entries").with(
            "B",
            s.seqs,
            "sequences",
        );
        out.push(exact(TermId::Logits, logits, Residency::Resident, STARTED, working));
    } else {
        out.extend(around(inputs, account));
    }
    out
}

fn weights(inputs: &Inputs<'_>, account: &Account, at: usize, detail: Detail) -> Term {
    let span = account.weights[at];
    let layout = &account.layout;
    let mut working = Working::new("Σ count · bytes(shape, type) + padding", 0)
        .with("layers here", layout.place.homes.iter().filter(|h| **h == at).count() as u64, "layers")
        .with("output here", u64::from(layout.place.output_home == at), "");
    if detail == Detail::Whole {
        working.parts = parts(inputs.model, account, at);
    }
    let provenance = if span.low == span.high { Provenance::Exact } else { Provenance::Bounded };
    let term = Term { provenance, ..row(TermId::Weights, span, Residency::Resident, SERVING, working) };
    let printed = at != layout.place.host && inputs.measured.weights_bytes.is_some();
    if printed { measured(term, "measured.weights_bytes") } else { term }
}

/// One line for each group of tensors on a backend, and one for the padding; they sum to the row.
fn parts(model: &Model, account: &Account, at: usize) -> Vec<Part> {
    let layout = &account.layout;
    let mut sums = vec![(0_u64, 0_u64, ""); model.tensors.len()];
    let mut padding = 0_u64;
    for piece in &layout.pieces {
        let again = model.tied_embeddings
            && piece.part == super::parts::Part::Embedding
            && layout.place.output_home == at
            && at != layout.place.host;
        if layout.home_of(piece) != at && !again {
            continue;
        }
        let sum = &mut sums[piece.group];
        *sum = (sum.0.saturating_add(piece.bytes), sum.1 + 1, piece.format);
        if at != layout.place.host {
            padding = padding.saturating_add(piece.padding);
        }
    }
    let line = |(index, (bytes, count, format)): (usize, (u64, u64, &'static str))| Part {
        label: model.tensors[index].name.clone().into(),
        detail: format!("{count} × {format}"),
        bytes,
    };
    let mut out: Vec<Part> =
        sums.into_iter().enumerate().filter(|(_, (bytes, ..))| *bytes > 0).map(line).collect();
    if padding > 0 {
        out.push(Part { label: "padding".into(), detail: "512, 128 B".to_owned(), bytes: padding });
    }
    let sum: u64 = out.iter().map(|p| p.bytes).sum();
    // A measured figure has no lines.
    if sum == account.weights[at].point { out } else { Vec::new() }
}

fn kv_working(model: &Model, s: &Settings, bytes: u64) -> Working {
    let formula = if s.cells.window_layers > 0 {
        "Σ full layers · cells · (K + V) + Σ sliding layers · cells of the window · (K + V)"
    } else {
        "Σ layers · cells · (K + V)"
    };
    let layer = |windowed: bool| {
        let kinds = model.layers.iter().map(|l| l.attention.kind);
        kinds.map(|k| (s.cells.windowed(&k), cell_bytes(&k, s))).find(|(w, (k, _))| *w == windowed && *k > 0)
    };
    let (k, v) = layer(false).or_else(|| layer(true)).map_or((0, 0), |(_, pair)| pair);
    let mut working = Working::new(formula, bytes)
        .with("n_ctx", s.context, "cells")
        .with("K", k, "B/cell")
        .with("V", v, "B/cell")
        .with("full layers", s.cells.full_layers, "layers")
        .with("streams", s.streams, "");
    if s.cells.window_layers > 0 {
        working = working.with("sliding layers", s.cells.window_layers, "layers").with(
            "cells of the window",
            s.cells.window.saturating_mul(s.streams),
            "cells",
        );
    }
    working
}

/// What the process takes on a device outside ggml's buffers.
fn around(inputs: &Inputs<'_>, account: &Account) -> Vec<Term> {
    let mut out = Vec::new();
    let span = account.context;
    let working = Working::new("observed", 0).with("low", span.low, "B").with("high", span.high, "B");
    let term = row(TermId::ContextOverhead, span, Residency::Resident, SERVING, working);
    out.push(if inputs.measured.non_torch_bytes.is_some() {
        measured(term, "measured.non_torch_bytes")
    } else {
        Term { source: CONTEXT_SOURCE, ..term }
    });
    if account.workspace.high > 0 {
        let working = Working::new("n_ubatch · widest input · 36 / 32", 0)
            .with("n_ubatch", account.settings.ubatch, "tokens")
            .with("high", account.workspace.high, "B");
        let term = row(TermId::Workspace, account.workspace, Residency::Transient, &SERVING[1..4], working);
        out.push(Term { provenance: Provenance::Bounded, ..term });
    }
    out.extend(other_processes(account.others));
    out
}
