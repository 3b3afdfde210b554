//! The answer: rows, refusals, what a person should know.

use super::costs::{Costs, LOGIT};
use super::version::NEWEST_TEXT;
use crate::engines::pooled::{
    End, Plan, Pool, RUNNING, Row, SERVING, Sampler, Span, assumed_version, communication, measured,
    other_processes, row,
};
use crate::engines::{Detail, Inputs, Stop};
use crate::memory::{KvSummary, PhaseId, Provenance, Residency, Term, TermId, Working};
use crate::units::{Bytes, Message, Problem};

const WARMUP: &str = "TGI FlashCausalLM.warmup (server/text_generation_server/models/flash_causal_lm.py)";
const GRAPHS: &str = "huggingface/text-generation-inference#2450: 222 MB; high end as for vLLM";
const FORWARD: &str = "widest layer, as vLLM's profile runs show it";
const LOGITS: &str =
    "8.5 B of every prompt token's logit in two start-ups (A10G with Llama 2 7B and Llama 3.1 8B)";

/// Everything that TGI says about a job.
///
/// Errors: as [`Costs::new`].
pub(super) fn plan(inputs: &Inputs<'_>, detail: Detail) -> Result<Plan, Problem> {
    let (costs, weights) = Costs::new(inputs, detail)?;
    let blocks = costs.blocks(End::Point);
    let worst = costs.blocks(End::Worst).min(blocks);
    let tokens = blocks.saturating_mul(costs.block);
    let refusal = refusal(&costs, tokens);
    let mut rows = vec![Row { term: Term { phases: SERVING.to_vec(), ..weights }, moves: false }];
    rows.extend(self::rows(inputs, &costs));
    let longest = costs.longest(tokens).min(if costs.follows_pool() { tokens } else { u64::MAX });
    let wiggle = if costs.version.wiggle_of_total() { costs.version.wiggle() } else { 1.0 };
    Ok(Plan {
        engine: "TGI",
        total: costs.total,
        budget: (costs.total as f64 * costs.fraction * wiggle) as u64,
        rows,
        sampler: inputs.measured.activation_peak_bytes.is_none().then_some(Sampler {
            vocabulary: inputs.model.vocab_size,
            per_logit: Span { point: 8, low: 4, high: 38 },
            source: "TGI NextTokenChooser: logits, probabilities and their log; sorting for top-p above",
        }),
        pool: Pool {
            tokens,
            worst_tokens: worst.saturating_mul(costs.block),
            block: costs.block,
            token_bytes: costs.token_bytes,
            window: None,
            state_bytes: 0,
            groups: 1,
            seats: costs.requests,
            worst_seats: costs.requests,
            few_seats: false,
            longest,
            seats_option: "max_batch_size, max_concurrent_requests",
            length_option: "max_total_tokens",
        },
        kv: KvSummary {
            bytes_per_token: costs.token_bytes as f64,
            block_tokens: costs.block,
            block_bytes: costs.block_bytes(),
            blocks,
            tokens,
            token_line: tokens,
            max_concurrency: if longest == 0 { 0.0 } else { tokens as f64 / longest as f64 },
        },
        refuses_at_worst: costs.printed.is_none() && costs.after_warmup(End::Worst) < 0,
        printed: costs.printed.is_some(),
        warnings: if detail == Detail::Whole { warnings(inputs, &costs, longest) } else { Vec::new() },
        refusal,
        over_device: "tgi.over_device",
    })
}

fn rows(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Row> {
    let still = |term| Row { term, moves: false };
    let moving = |term| Row { term, moves: true };
    let mut out = vec![still(pool(costs))];
    let working = Working::new("T · widest layer · e", 0).with("T", costs.prefill, "tokens");
    let phases = &[PhaseId::Warmup, PhaseId::Prefill];
    let forward = row(TermId::Activations, costs.forward, Residency::Transient, phases, working);
    // What the warm-up takes more, the pool gets less.
    out.push(still(if inputs.measured.activation_peak_bytes.is_some() {
        measured(forward, "measured.activation_peak_bytes")
    } else {
        Term { source: FORWARD, ..forward }
    }));
    let more = |end: fn(&Span) -> u64| end(&costs.activations).saturating_sub(end(&costs.forward));
    let logits = Span { point: more(|s| s.point), low: more(|s| s.low), high: more(|s| s.high) };
    if logits.point > 0 {
        let logits =
            Span { low: logits.low.min(logits.point), high: logits.high.max(logits.point), ..logits };
        let working = Working::new("T · V · c + T · d · e - forward pass", 0)
            .with("T", costs.prefill, "tokens")
            .with("V", inputs.model.vocab_size, "entries")
            .with("c", LOGIT, "B/entry");
        let term = row(TermId::Logits, logits, Residency::Transient, &[PhaseId::Warmup], working);
        out.push(still(Term { source: LOGITS, ..term }));
    }
    if costs.graphs.high > 0 {
        let working = Working::new("observed", 0).with("sizes", "1, 2, 4, 8, 16, 32", "sequences");
        let term = row(TermId::CudaGraphs, costs.graphs, Residency::Resident, RUNNING, working);
        out.push(if inputs.measured.cuda_graph_bytes.is_some() {
            still(measured(term, "measured.cuda_graph_bytes"))
        } else {
            moving(Term { source: GRAPHS, ..term })
        });
    }
    let printed = inputs.measured.non_torch_bytes.is_some();
    let working = Working::new(if printed { "as printed" } else { "context + kernels + libraries" }, 0);
    let context = row(TermId::ContextOverhead, costs.context, Residency::Resident, SERVING, working);
    out.push(still(if printed {
        measured(context, "measured.non_torch_bytes")
    } else {
        Term { source: "as for vLLM: the same framework", ..context }
    }));
    out.extend(communication(costs.communication, inputs.parallel.tensor).map(still));
    out.extend(other_processes(costs.others).map(still));
    out
}

fn pool(costs: &Costs) -> Term {
    let of = |end| costs.blocks(end).saturating_mul(costs.block_bytes());
    let point = of(End::Point);
    let span = Span { point, low: of(End::Worst).min(point), high: of(End::Best).max(point) };
    let formula =
        match (costs.printed.is_some(), costs.version.infers_pool(), costs.version.wiggle_of_total()) {
            (true, ..) => "floor(pool as printed / block) · block",
            (_, false, _) => "(ceil(max_batch_total_tokens / block) + 10) · block",
            (_, _, true) => "(floor((left - (1 - f · w) · total) / block) + batch) · block",
            (_, _, false) => "(floor((left - (1 - f) · total) · w / block) + batch) · block",
        };
    let left = u64::try_from(costs.after_warmup(End::Point).max(0)).unwrap_or(0);
    let working = Working::new(formula, 0)
        .with("total", costs.total, "B")
        .with("left", left, "B")
        .with("f", costs.fraction, "")
        .with("w", costs.version.wiggle(), "")
        .with("block", costs.block_bytes(), "B")
        .with("tokens of a block", costs.block, "tokens")
        .with("batch", costs.batch_blocks(), "blocks")
        .with("blocks", costs.blocks(End::Point), "blocks");
    let term = row(TermId::KvCache, span, Residency::ReservedPool, RUNNING, working);
    match costs.printed {
        Some(_) => measured(term, "measured.kv_available_bytes"),
        None => Term { provenance: Provenance::Bounded, source: WARMUP, ..term },
    }
}

/// Why it would not start.
fn refusal(costs: &Costs, tokens: u64) -> Option<(Message, Stop)> {
    let free = costs.free(End::Point);
    let of = |n: i128| Bytes(u64::try_from(n.max(0)).unwrap_or(u64::MAX));
    if costs.printed.is_none() && free < 0 {
        let message = Message::new("tgi.refusal.load").with("weights", Bytes(costs.weights.point));
        return Some((message.with("over", of(-free)).with("total", Bytes(costs.total)), Stop::Device));
    }
    if costs.printed.is_none() && costs.after_warmup(End::Point) < 0 {
        let message = Message::new("tgi.refusal.prefill")
            .with("tokens", costs.prefill)
            .with("needed", of(free - costs.after_warmup(End::Point)))
            .with("free", of(free));
        return Some((message, Stop::Pool));
    }
    let longest = if costs.follows_pool() { 0 } else { costs.longest(tokens) };
    if longest > tokens || tokens == 0 {
        let message =
            Message::new("tgi.refusal.total_tokens").with("longest", longest).with("tokens", tokens);
        return Some((message, Stop::Pool));
    }
    None
}

fn warnings(inputs: &Inputs<'_>, costs: &Costs, longest: u64) -> Vec<Message> {
    let mut out = Vec::new();
    out.extend(crate::memory::weights::effective_quantization(inputs.model, inputs.weights).note);
    out.extend(assumed_version(inputs, costs.version.assumed, NEWEST_TEXT));
    if !costs.explicit_longest {
        out.push(Message::new("tgi.length_chosen").with("longest", longest));
    }
    if inputs.serve.max_num_batched_tokens.is_none() {
        out.push(Message::new("tgi.prefill_chosen").with("tokens", costs.prefill));
    }
    if costs.asked.is_some() && costs.version.infers_pool() {
        out.push(Message::new("tgi.total_ignored"));
    }
    if inputs.device.gpu.is_some_and(|g| g.unified) {
        out.push(Message::new("pooled.unified_memory"));
    }
    out
}

impl Costs {
    /// The longest request is no longer than the pool by itself.
    fn follows_pool(&self) -> bool {
        self.version.wiggle_of_total() && !self.explicit_longest
    }
}
