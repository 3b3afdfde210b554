//! Rows of the ledger, one per cost.

use super::costs::{Costs, communication_of, world};
use super::graphs;
use super::profile::Span;
use crate::engines::Inputs;
use crate::engines::pooled::{RUNNING, SERVING, STARTED, measured, other_processes, product, row};
use crate::memory::context::{Observed, context_overhead, non_torch_growth};
use crate::memory::{PhaseId, Provenance, Residency, Term, TermId, Working};

const PROFILE_SOURCE: &str = "fitted on start-up logs: V0 0.6 to 0.8 (n=7), V1 0.11 on H100 (n=7), 0.12 to 0.21 (n=3); activation peaks within 4 %";

/// Context, growth outside the allocator, communication, neighbours.
pub(super) fn around(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Term> {
    let arch = inputs.device.gpu.map(|g| g.arch);
    let observed = |o: Observed, id, phases: &[PhaseId]| Term { phases: phases.to_vec(), ..o.term(id) };
    let mut out = Vec::new();
    let separate = costs.context.high > 0;
    if separate {
        out.push(observed(context_overhead(arch), TermId::ContextOverhead, SERVING));
    }
    if inputs.measured.non_torch_bytes.is_some() {
        // A printed figure that holds the context is there from the start, as the context is.
        let alive = if separate { STARTED } else { SERVING };
        let working = Working::new("non-torch growth, as printed", 0).with("ranks", world(inputs), "");
        let term = row(TermId::Workspace, costs.non_torch, Residency::Resident, alive, working);
        out.push(measured(term, "measured.non_torch_bytes"));
    } else {
        out.push(observed(non_torch_growth(arch, 1), TermId::Workspace, STARTED));
    }
    out.extend(communication_of(inputs).map(|o| observed(o, TermId::Communication, STARTED)));
    out.extend(other_processes(costs.others));
    out
}

/// What the profile run finds: forward pass, sampler, encoder. At most `cap` bytes each where a printed pool leaves
/// no more. The largest one is the row that the warm-up shows.
pub(super) fn profile(inputs: &Inputs<'_>, costs: &Costs, cap: Option<u64>) -> Vec<Term> {
    let tokens = costs.settings.batched(costs.settings.max_len);
    if let Some(bytes) = inputs.measured.activation_peak_bytes {
        let working = Working::new("activation peak of the profile run, as printed", bytes).with(
            "max_num_batched_tokens",
            tokens,
            "tokens",
        );
        let phases = &[PhaseId::Warmup, PhaseId::Prefill, PhaseId::Sampling];
        let term = row(TermId::Activations, Span::exactly(bytes), Residency::Transient, phases, working);
        return vec![measured(term, "measured.activation_peak_bytes")];
    }
    let p = &costs.profile;
    let element = inputs.weights.dtype.bytes();
    let mut rows = vec![
        (
            TermId::Activations,
            p.activations(tokens),
            PhaseId::Prefill,
            Working::new("T · widest layer · e + workspace", 0)
                .with("T", tokens, "tokens")
                .with("widest layer", p.per_token, "elements/token")
                .with("e", element, "B/element"),
        ),
        (
            TermId::Sampling,
            p.sampling(tokens),
            PhaseId::Sampling,
            Working::new("B · V · c + (T + 2 B) · d · e + workspace", 0)
                .with("B", p.sampled(tokens), "sequences")
                .with("V", p.vocabulary, "entries")
                .with("c", p.per_logit, "B/entry")
                .with("T", tokens, "tokens")
                .with("d", inputs.model.hidden_size, "")
                .with("e", element, "B/element"),
        ),
    ];
    if inputs.model.vision.is_some() && inputs.serve.images_per_prompt != Some(0) {
        let working = Working::new("image tokens · patches per token · (3 d + 2 d_ff) · e", 0).with(
            "image tokens",
            tokens,
            "tokens",
        );
        rows.push((TermId::Encoder, p.encoder(tokens), PhaseId::Prefill, working));
    }
    let largest = rows.iter().map(|(_, s, ..)| s.point).max().unwrap_or(0);
    let mut first = true;
    rows.into_iter()
        .map(|(id, span, phase, working)| {
            let mut phases = vec![phase];
            if span.point == largest && std::mem::take(&mut first) {
                phases.insert(0, PhaseId::Warmup);
            }
            let term = row(id, span, Residency::Transient, &phases, working);
            match cap.filter(|cap| *cap < term.bytes) {
                // The engine printed a pool that leaves less than the rule says.
                Some(cap) => {
                    let working =
                        Working { result: cap, ..term.working }.with("left by the printed pool", cap, "B");
                    Term {
                        bytes: cap,
                        low: cap.min(term.low),
                        high: cap,
                        provenance: Provenance::Bounded,
                        working,
                        ..term
                    }
                }
                None => term,
            }
        })
        .map(|t| Term {
            source: if t.provenance == Provenance::Measured { t.source } else { PROFILE_SOURCE },
            ..t
        })
        .collect()
}

/// Logits of every prompt token of a step and their logarithms in fp32, where they are asked for: beyond what the
/// forward pass of that step held before, since no profile run has them.
pub(super) fn logprobs(inputs: &Inputs<'_>, costs: &Costs) -> Option<Term> {
    if !inputs.serve.prompt_logprobs {
        return token_logprobs(inputs, costs);
    }
    let len = costs.settings.max_len;
    let tokens = costs.settings.batched(len).min(len);
    let (vocabulary, element) = (costs.profile.vocabulary, inputs.weights.dtype.bytes());
    let logits = product(&[tokens, vocabulary, element.saturating_add(4)]);
    let before = match inputs.measured.activation_peak_bytes {
        Some(bytes) => bytes,
        None => costs.profile.activations(costs.settings.batched(len)).point,
    };
    let span = Span { point: logits.saturating_sub(before), low: 0, high: logits };
    let working = Working::new("T · V · (e + 4) - activations of the step", 0)
        .with("T", tokens, "tokens")
        .with("V", vocabulary, "entries")
        .with("e", element, "B/element")
        .with("activations of the step", before, "B");
    let term = row(TermId::Logits, span, Residency::Transient, &[PhaseId::Prefill], working);
    let source = "_get_prompt_logprobs_dict in vllm/v1/worker/gpu_model_runner.py";
    Some(Term { provenance: Provenance::Bounded, source, ..term })
}

/// Logarithms in fp32 of the logits of as many sequences as one step may hold, kept beside them where log probabilities of new tokens are
/// asked for; the profile run asks for none.
fn token_logprobs(inputs: &Inputs<'_>, costs: &Costs) -> Option<Term> {
    if inputs.serve.max_logprobs.unwrap_or(0) == 0 || !costs.settings.version.v1 {
        return None;
    }
    let rows = costs.settings.max_seqs;
    let bytes = product(&[rows, costs.profile.vocabulary, 4]);
    let working = Working::new("B · V · 4", 0).with("B", rows, "sequences").with(
        "V",
        costs.profile.vocabulary,
        "entries",
    );
    let span = Span { point: bytes, low: 0, high: bytes };
    let term = row(TermId::Logits, span, Residency::Transient, &[PhaseId::Sampling], working);
    let source = "Sampler.forward in vllm/v1/sample/sampler.py (raw_logprobs)";
    Some(Term { provenance: Provenance::Bounded, source, ..term })
}

/// CUDA graphs, unless there are none.
pub(super) fn cuda_graphs(inputs: &Inputs<'_>, costs: &Costs) -> Option<Term> {
    if costs.graphs == Span::default() {
        return None;
    }
    let place = if costs.settings.version.graphs_in_budget() { "inside" } else { "outside" };
    let working = Working::new("observed", 0)
        .with("low", costs.graphs.low, "B")
        .with("high", costs.graphs.high, "B")
        .with("budget", place, "");
    let term = row(TermId::CudaGraphs, costs.graphs, Residency::Resident, RUNNING, working);
    Some(if inputs.measured.cuda_graph_bytes.is_some() {
        measured(term, "measured.cuda_graph_bytes")
    } else {
        Term { source: graphs::SOURCE, ..term }
    })
}

/// What decides the size of the pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// `num_gpu_blocks_override`.
    Blocks,
    /// A log.
    Printed(u64),
    /// `kv_cache_memory_bytes`.
    Given(u64),
    /// The profile run.
    Profile,
}

impl Origin {
    fn of(costs: &Costs) -> Origin {
        match (costs.fixed_blocks, costs.pool, costs.given) {
            (Some(_), ..) => Origin::Blocks,
            (None, Some(pool), _) => Origin::Printed(pool),
            (None, None, Some(pool)) => Origin::Given(pool),
            (None, None, None) => Origin::Profile,
        }
    }
}

/// The pool, split into what the states of the asked load take and the rest.
pub(super) fn pool(inputs: &Inputs<'_>, costs: &Costs, available: i128) -> Vec<Term> {
    let (len, layout) = (costs.settings.max_len, &costs.layout);
    let block = layout.block_bytes;
    let bytes = |available: i128| costs.blocks(available).saturating_mul(block);
    let blocks = costs.blocks(available);
    let serve = inputs.serve;
    let states = layout.state_blocks().saturating_mul(serve.sequences).min(blocks).saturating_mul(block);
    let tokens = serve.prompt_tokens.saturating_add(serve.new_tokens);
    let load = costs.load_blocks(serve.sequences, tokens, len);
    let span = Span {
        point: bytes(available) - states,
        low: bytes(costs.available_at_worst(len)).min(bytes(available)).saturating_sub(states),
        high: bytes(costs.available_at_best(len)).max(bytes(available)).saturating_sub(states),
    };
    let peak = costs.profile.peak(costs.settings.batched(len)).point;
    let origin = Origin::of(costs);
    let formula = match (origin, costs.settings.version.graphs_in_budget()) {
        (Origin::Blocks, _) => "num_gpu_blocks_override · block - states",
        (Origin::Printed(_), _) => "floor(pool as printed / block) · block - states",
        (Origin::Given(_), _) => "floor(kv_cache_memory_bytes / block) · block - states",
        (Origin::Profile, false) => {
            "floor((total · u - weights - activation peak - non-torch) / block) · block - states"
        }
        (Origin::Profile, true) => {
            "floor((total · u - weights - activation peak - non-torch - graphs) / block) · block - states"
        }
    };
    let mut working = Working::new(formula, 0);
    working = match origin {
        Origin::Blocks => working,
        Origin::Printed(pool) => working.with("pool as printed", pool, "B"),
        Origin::Given(pool) => working.with("kv_cache_memory_bytes", pool, "B"),
        Origin::Profile => working
            .with("total", costs.total, "B")
            .with("u", costs.settings.utilization, "")
            .with("weights", costs.weights.point, "B")
            .with("activation peak", peak, "B")
            .with("non-torch", costs.non_torch.point, "B"),
    };
    if origin == Origin::Profile && costs.settings.version.graphs_in_budget() {
        working = working.with("graphs", costs.graphs.point, "B");
    }
    working = working
        .with("block", block, "B")
        .with("tokens of a block", layout.block_tokens, "tokens")
        .with("groups", layout.groups.len() as u64, "")
        .with("blocks", blocks, "blocks")
        .with("states", states, "B")
        .with("B", serve.sequences, "sequences")
        .with("T", tokens, "tokens")
        .with("blocks of B · T", load, "blocks")
        .with("bytes of B · T", load.saturating_mul(block), "B");
    let (provenance, source) = match origin {
        Origin::Printed(_) => (Provenance::Measured, "measured.kv_available_bytes"),
        Origin::Blocks | Origin::Given(_) => (Provenance::Exact, ""),
        Origin::Profile => (Provenance::Bounded, ""),
    };
    let cache = row(TermId::KvCache, span, Residency::ReservedPool, RUNNING, working);
    let mut out = vec![Term { provenance, source, ..cache }];
    if states > 0 {
        let working = Working::new("B · state blocks · block", 0)
            .with("B", serve.sequences, "sequences")
            .with("state blocks", layout.state_blocks(), "blocks/sequence")
            .with("block", block, "B");
        let term =
            row(TermId::RecurrentState, Span::exactly(states), Residency::ReservedPool, RUNNING, working);
        out.push(Term { provenance: Provenance::Exact, ..term });
    }
    out
}

/// What a printed pool leaves of the budget that no row explains.
pub(super) fn unexplained(costs: &Costs, bytes: u64) -> Term {
    let span = Span { point: bytes, low: 0, high: bytes };
    let working = Working::new("total · u - pool as printed - rows inside the budget", 0)
        .with("total · u", costs.requested, "B")
        .with("pool as printed", costs.pool.unwrap_or(0), "B");
    let term = row(TermId::Unexplained, span, Residency::Resident, STARTED, working);
    Term { provenance: Provenance::Bounded, ..term }
}
