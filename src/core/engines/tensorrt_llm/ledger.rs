//! The answer: rows, refusals, what a person should know.

use super::costs::{BUFFER_TENTHS, Costs};
use super::version::NEWEST_TEXT;
use crate::engines::pooled::{
    End, Plan, Pool, RUNNING, Row, SERVING, STARTED, Sampler, Span, assumed_version, communication, measured,
    other_processes, row,
};
use crate::engines::{Detail, Inputs, Stop};
use crate::memory::{KvSummary, PhaseId, Provenance, Residency, Term, TermId, Working};
use crate::model::AttentionKind;
use crate::units::{Bytes, Message, Problem};

const ENGINE_POOL: &str = "TensorRT-LLM BaseKVCacheManager::calculateMaxNumBlocks (kvCacheManager.cpp)";
const TORCH_POOL: &str = "TensorRT-LLM KvCacheCreator (tensorrt_llm/_torch/pyexecutor/_util.py)";
const BUFFERS: &str =
    "\"runtime buffers\" and \"decoder\" of three logs (TensorRT-LLM memory.md, trtllm-bench, #1188)";
const CONTEXT: &str = "\"execution context memory\" of three logs (memory.md, trtllm-bench, #3636)";
const FORWARD: &str = "widest layer, as vLLM's profile runs show it";
const GRAPHS: &str = "as for vLLM and SGLang; no log of TensorRT-LLM prints them";
const SAMPLER: &str = "TensorRT-LLM TorchSampler: logits in fp32, probabilities";

/// Everything that TensorRT-LLM says about a job.
///
/// Errors: as [`Costs::new`].
pub(super) fn plan(inputs: &Inputs<'_>, detail: Detail) -> Result<Plan, Problem> {
    let (costs, weights) = Costs::new(inputs, detail)?;
    let blocks = costs.blocks(End::Point);
    let tokens = blocks.saturating_mul(costs.block);
    let refusal = refusal(&costs);
    let mut rows = vec![Row { term: Term { phases: SERVING.to_vec(), ..weights }, moves: false }];
    rows.extend(self::rows(inputs, &costs));
    let after_pool = |end| {
        let pool = costs.blocks(end).saturating_mul(costs.block_bytes());
        costs.free(end) - i128::from(pool)
    };
    let left = u64::try_from(after_pool(End::Point).max(0)).unwrap_or(0);
    let samples = !costs.version.engines && inputs.measured.activation_peak_bytes.is_none();
    Ok(Plan {
        engine: "TensorRT-LLM",
        total: costs.total,
        budget: costs.total.saturating_sub(left),
        rows,
        sampler: samples.then_some(Sampler {
            vocabulary: inputs.model.vocab_size,
            per_logit: Span { point: 8, low: 4, high: 16 },
            source: SAMPLER,
        }),
        pool: Pool {
            tokens,
            worst_tokens: costs.blocks(End::Worst).min(blocks).saturating_mul(costs.block),
            block: costs.block,
            token_bytes: costs.token_bytes,
            window: None,
            state_bytes: 0,
            groups: 1,
            seats: costs.sequences,
            worst_seats: costs.sequences,
            few_seats: false,
            longest: costs.longest,
            seats_option: "max_batch_size",
            length_option: "max_seq_len",
        },
        kv: KvSummary {
            bytes_per_token: costs.token_bytes as f64,
            block_tokens: costs.block,
            block_bytes: costs.block_bytes(),
            blocks,
            tokens,
            token_line: costs.token_line(),
            max_concurrency: tokens as f64 / costs.longest as f64,
        },
        refuses_at_worst: costs.printed.is_none()
            && (costs.blocks(End::Worst) == 0 || after_pool(End::Worst) < 0),
        printed: costs.printed.is_some(),
        warnings: if detail == Detail::Whole { warnings(inputs, &costs, tokens) } else { Vec::new() },
        refusal,
        over_device: "tensorrt_llm.over_device",
    })
}

fn rows(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Row> {
    // What is taken before the pool, the pool gets less by its share.
    let still = |term| Row { term, moves: false };
    let mut out = vec![still(pool(costs))];
    out.push(still(forward(inputs, costs)));
    if costs.buffers.high > 0 {
        let working = Working::new("B · V · c", 0)
            .with("B", costs.sequences, "sequences")
            .with("V", inputs.model.vocab_size, "entries")
            .with("c", BUFFER_TENTHS as f64 / 10.0, "B/entry");
        let term = row(TermId::Workspace, costs.buffers, Residency::Resident, STARTED, working);
        out.push(still(Term { source: BUFFERS, ..term }));
    }
    if costs.graphs.high > 0 {
        let working = Working::new("observed", 0);
        let term = row(TermId::CudaGraphs, costs.graphs, Residency::Resident, STARTED, working);
        out.push(still(if inputs.measured.cuda_graph_bytes.is_some() {
            measured(term, "measured.cuda_graph_bytes")
        } else {
            Term { source: GRAPHS, ..term }
        }));
    }
    let printed = inputs.measured.non_torch_bytes.is_some();
    let working = Working::new(if printed { "as printed" } else { "context + kernels + libraries" }, 0);
    let context = row(TermId::ContextOverhead, costs.context, Residency::Resident, SERVING, working);
    out.push(still(if printed {
        measured(context, "measured.non_torch_bytes")
    } else {
        Term { source: "as for vLLM: the same driver and libraries", ..context }
    }));
    out.extend(communication(costs.communication, inputs.parallel.tensor).map(still));
    out.extend(other_processes(costs.others).map(still));
    out
}

/// The execution context, which an engine keeps, or the forward pass of the PyTorch backend.
fn forward(inputs: &Inputs<'_>, costs: &Costs) -> Term {
    let engines = costs.version.engines;
    let formula = if engines { "1.5 · T · widest layer · e" } else { "T · widest layer · e" };
    let working = Working::new(formula, 0).with("T", costs.step, "tokens");
    let (residency, phases): (_, &[PhaseId]) = if engines {
        (Residency::Resident, STARTED)
    } else {
        (Residency::Transient, &[PhaseId::Warmup, PhaseId::Prefill])
    };
    let term = row(TermId::Activations, costs.activations, residency, phases, working);
    match (inputs.measured.activation_peak_bytes, engines) {
        (Some(_), _) => measured(term, "measured.activation_peak_bytes"),
        (None, true) => Term { source: CONTEXT, ..term },
        (None, false) => Term { source: FORWARD, ..term },
    }
}

fn pool(costs: &Costs) -> Term {
    let of = |end| costs.blocks(end).saturating_mul(costs.block_bytes());
    let point = of(End::Point);
    let span = Span { point, low: of(End::Worst).min(point), high: of(End::Best).max(point) };
    let formula = match (costs.printed, costs.asked) {
        (Some(_), _) => "floor(pool as printed / block) · block",
        (None, Some(_)) if costs.share_holds => "ceil(min(max_tokens, f · free / token) / N) · block",
        (None, Some(_)) => "ceil(max_tokens / N) · block",
        (None, None) => "ceil(f · free / token / N) · block",
    };
    let mut working = Working::new(formula, 0);
    if let Some(printed) = costs.printed {
        working = working.with("pool as printed", printed, "B");
    } else {
        let free = u64::try_from(costs.free(End::Point).max(0)).unwrap_or(0);
        working = working.with("free", free, "B").with("f", costs.fraction, "");
        if let Some(asked) = costs.asked {
            working = working.with("max_tokens", asked, "tokens");
        }
    }
    working = working
        .with("token", costs.token_bytes, "B")
        .with("N", costs.block, "tokens")
        .with("block", costs.block_bytes(), "B")
        .with("blocks", costs.blocks(End::Point), "blocks");
    let term = row(TermId::KvCache, span, Residency::ReservedPool, RUNNING, working);
    match costs.printed {
        Some(_) => measured(term, "measured.kv_available_bytes"),
        None => Term {
            provenance: Provenance::Bounded,
            source: if costs.version.engines { ENGINE_POOL } else { TORCH_POOL },
            ..term
        },
    }
}

/// Why it would not start.
fn refusal(costs: &Costs) -> Option<(Message, Stop)> {
    let of = |n: i128| Bytes(u64::try_from(n.max(0)).unwrap_or(u64::MAX));
    if costs.printed.is_none() {
        let loaded = costs.after_load(End::Point);
        if loaded < 0 {
            let id = if costs.version.engines {
                "tensorrt_llm.refusal.load_engine"
            } else {
                "tensorrt_llm.refusal.load"
            };
            let message = Message::new(id)
                .with("weights", Bytes(costs.weights.point))
                .with("over", of(-loaded))
                .with("total", Bytes(costs.total));
            return Some((message, Stop::Device));
        }
        let free = costs.free(End::Point);
        if free < 0 {
            let id = if costs.version.engines {
                "tensorrt_llm.refusal.buffers"
            } else {
                "tensorrt_llm.refusal.profile"
            };
            let message = Message::new(id)
                .with("needed", of(loaded - free))
                .with("tokens", costs.step)
                .with("sequences", costs.sequences)
                .with("free", of(loaded))
                .with("total", Bytes(costs.total));
            return Some((message, Stop::Device));
        }
    }
    let blocks = costs.blocks(End::Point);
    if blocks == 0 {
        let message = Message::new("tensorrt_llm.refusal.no_blocks")
            .with("token", Bytes(costs.token_bytes))
            .with("free", of(costs.free(End::Point)));
        return Some((message, Stop::Pool));
    }
    let pool = i128::from(blocks.saturating_mul(costs.block_bytes()));
    if costs.printed.is_none() && pool > costs.free(End::Point) {
        let message = Message::new("tensorrt_llm.refusal.pool")
            .with("pool", of(pool))
            .with("free", of(costs.free(End::Point)))
            .with("total", Bytes(costs.total));
        return Some((message, Stop::Device));
    }
    None
}

fn warnings(inputs: &Inputs<'_>, costs: &Costs, tokens: u64) -> Vec<Message> {
    let model = inputs.model;
    let mut out = Vec::new();
    out.extend(crate::memory::weights::effective_quantization(model, inputs.weights).note);
    out.extend(assumed_version(inputs, costs.version.assumed, NEWEST_TEXT));
    if !costs.explicit_longest {
        let message = Message::new("pooled.length_of_model").with("engine", "TensorRT-LLM");
        out.push(message.with("longest", costs.longest));
    }
    if tokens > 0 && tokens < costs.longest {
        let message = Message::new("tensorrt_llm.truncated").with("longest", costs.longest);
        out.push(message.with("tokens", tokens));
    }
    if costs.version.engines && costs.buffers.point > costs.total / 20 {
        let message = Message::new("tensorrt_llm.large_batch").with("buffers", Bytes(costs.buffers.point));
        out.push(message.with("sequences", costs.sequences));
    }
    let windows = |kind| matches!(kind, AttentionKind::Sliding { .. } | AttentionKind::Chunked { .. });
    if model.layers.iter().any(|l| windows(l.attention.kind)) {
        out.push(Message::new("tensorrt_llm.windows_whole"));
    }
    if inputs.device.gpu.is_some_and(|g| g.unified) {
        out.push(Message::new("pooled.unified_memory"));
    }
    out
}
