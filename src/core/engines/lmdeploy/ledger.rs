//! The answer: rows, refusals, what a person should know.

use super::costs::Costs;
use super::version::NEWEST_TEXT;
use crate::engines::pooled::{
    End, Plan, Pool, RUNNING, Row, SERVING, STARTED, Span, assumed_version, communication, measured,
    other_processes, row,
};
use crate::engines::{Detail, Inputs, Stop};
use crate::memory::{KvSummary, PhaseId, Provenance, Residency, Term, TermId, Working};
use crate::units::{Bytes, Message, Problem};

const SHARE: &str = "TurboMind BlockManager::GetBlockCount, from 0.15 TurboMind::Impl::CreateEngine";
const BUFFERS: &str = "TurboMind LlamaBatch::AllocateBuffer";
const FORWARD: &str = "widest layer, as vLLM's profile runs show it; no TurboMind log prints its activations";

/// Everything that TurboMind says about a job.
///
/// Errors: as [`Costs::new`].
pub(super) fn plan(inputs: &Inputs<'_>, detail: Detail) -> Result<Plan, Problem> {
    let (costs, weights) = Costs::new(inputs, detail)?;
    let blocks = costs.blocks(End::Point);
    let refusal = refusal(&costs);
    let mut rows = vec![Row { term: Term { phases: SERVING.to_vec(), ..weights }, moves: false }];
    rows.extend(self::rows(inputs, &costs));
    let tokens = blocks.saturating_mul(costs.block);
    let left =
        u64::try_from(costs.free(End::Point).max(0)).unwrap_or(0).saturating_sub(costs.pool(End::Point));
    Ok(Plan {
        engine: "LMDeploy",
        total: costs.total,
        budget: costs.total.saturating_sub(left),
        rows,
        sampler: None,
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
            longest: costs.session,
            seats_option: "max_batch_size",
            length_option: "session_len",
        },
        kv: KvSummary {
            bytes_per_token: costs.token_bytes as f64,
            block_tokens: costs.block,
            block_bytes: costs.block_bytes(),
            blocks,
            tokens,
            token_line: tokens,
            max_concurrency: tokens as f64 / costs.session as f64,
        },
        refuses_at_worst: costs.printed.is_none()
            && (costs.blocks(End::Worst) == 0 || costs.free(End::Worst) < i128::from(costs.pool(End::Worst))),
        printed: costs.printed.is_some(),
        warnings: if detail == Detail::Whole { warnings(inputs, &costs, tokens) } else { Vec::new() },
        refusal,
        over_device: "lmdeploy.over_device",
    })
}

fn rows(inputs: &Inputs<'_>, costs: &Costs) -> Vec<Row> {
    let still = |term| Row { term, moves: false };
    let moving = |term| Row { term, moves: true };
    let mut out = vec![still(pool(costs))];
    let working = Working::new("2 · (T + B) · d · e + 2 · B · V · 4 + 6 · B · session · 4", 0)
        .with("T", costs.step, "tokens")
        .with("B", costs.sequences, "sequences")
        .with("d", inputs.model.hidden_size, "")
        .with("V", inputs.model.vocab_size, "entries")
        .with("session", costs.session, "tokens");
    let buffers = row(TermId::Workspace, Span::exactly(costs.buffers), Residency::Resident, STARTED, working);
    out.push(still(Term { provenance: Provenance::Bounded, source: BUFFERS, ..buffers }));
    let working = Working::new("T · widest layer · e", 0).with("T", costs.step, "tokens");
    let forward =
        row(TermId::Activations, costs.activations, Residency::Transient, &[PhaseId::Prefill], working);
    out.push(if inputs.measured.activation_peak_bytes.is_some() {
        still(measured(forward, "measured.activation_peak_bytes"))
    } else {
        moving(Term { source: FORWARD, ..forward })
    });
    // What context and libraries take more, the pool gets less by its share only.
    let around = Span {
        point: costs.context.point.saturating_add(costs.growth.point),
        low: costs.context.low.saturating_add(costs.growth.low),
        high: costs.context.high.saturating_add(costs.growth.high),
    };
    let printed = inputs.measured.non_torch_bytes.is_some();
    let working = Working::new(if printed { "as printed" } else { "context + kernels + libraries" }, 0).with(
        "context",
        costs.context.point,
        "B",
    );
    let context = row(TermId::ContextOverhead, around, Residency::Resident, SERVING, working);
    out.push(if printed {
        still(measured(context, "measured.non_torch_bytes"))
    } else {
        moving(Term { source: "as for vLLM: the same driver and libraries", ..context })
    });
    out.extend(communication(costs.communication, inputs.parallel.tensor).map(moving));
    out.extend(other_processes(costs.others).map(still));
    out
}

fn pool(costs: &Costs) -> Term {
    let of = |end| costs.blocks(end).saturating_mul(costs.block_bytes());
    let point = of(End::Point);
    let span = Span { point, low: of(End::Worst).min(point), high: of(End::Best).max(point) };
    let formula = match (costs.printed.is_some(), costs.version.share_of_free()) {
        (true, _) => "floor(pool as printed / block) · block",
        (false, true) => "floor(free · r / block) · block",
        (false, false) => "floor(total · r / block) · block",
    };
    let mut working = Working::new(formula, 0);
    working = match costs.printed {
        Some(pool) => working.with("pool as printed", pool, "B"),
        None if costs.version.share_of_free() => {
            let free = u64::try_from(costs.free(End::Point).max(0)).unwrap_or(0);
            working.with("free", free, "B").with("r", costs.share, "")
        }
        None => working.with("total", costs.total, "B").with("r", costs.share, ""),
    };
    working = working
        .with("block", costs.block_bytes(), "B")
        .with("tokens of a block", costs.block, "tokens")
        .with("blocks", costs.blocks(End::Point), "blocks");
    let term = row(TermId::KvCache, span, Residency::ReservedPool, RUNNING, working);
    match costs.printed {
        Some(_) => measured(term, "measured.kv_available_bytes"),
        None => Term { provenance: Provenance::Bounded, source: SHARE, ..term },
    }
}

/// Why it would not start.
fn refusal(costs: &Costs) -> Option<(Message, Stop)> {
    let free = costs.free(End::Point);
    if costs.printed.is_none() && free < 0 {
        let message = Message::new("lmdeploy.refusal.load")
            .with("weights", Bytes(costs.weights.point))
            .with("over", Bytes(u64::try_from(-free).unwrap_or(u64::MAX)))
            .with("total", Bytes(costs.total));
        return Some((message, Stop::Device));
    }
    if costs.blocks(End::Point) == 0 {
        let message = Message::new("lmdeploy.refusal.no_blocks").with("block", Bytes(costs.block_bytes()));
        return Some((message.with("pool", Bytes(costs.pool(End::Point))), Stop::Pool));
    }
    // A share of the total may be more than the weights leave.
    let pool = costs.blocks(End::Point).saturating_mul(costs.block_bytes());
    if costs.printed.is_none() && i128::from(pool) > free {
        let message = Message::new("lmdeploy.refusal.share_of_total")
            .with("pool", Bytes(pool))
            .with("share", costs.share)
            .with("total", Bytes(costs.total));
        let free = u64::try_from(free.max(0)).unwrap_or(0);
        return Some((message.with("free", Bytes(free)), Stop::Device));
    }
    None
}

fn warnings(inputs: &Inputs<'_>, costs: &Costs, tokens: u64) -> Vec<Message> {
    let model = inputs.model;
    let mut out = Vec::new();
    out.extend(crate::memory::weights::effective_quantization(model, inputs.weights).note);
    out.extend(assumed_version(inputs, costs.version.assumed, NEWEST_TEXT));
    if !costs.explicit_session {
        let message = Message::new("pooled.length_of_model").with("engine", "LMDeploy");
        out.push(message.with("longest", costs.session));
    }
    if tokens > 0 && tokens < costs.session {
        let id = if costs.version.truncates() { "lmdeploy.truncated" } else { "lmdeploy.session_above_pool" };
        out.push(Message::new(id).with("session_len", costs.session).with("tokens", tokens));
    }
    if costs.share_of_total_is_meant() {
        out.push(Message::new("lmdeploy.share_of_total").with("share", costs.share));
    }
    if inputs.device.gpu.is_some_and(|g| g.unified) {
        out.push(Message::new("pooled.unified_memory"));
    }
    out
}

impl Costs {
    fn share_of_total_is_meant(&self) -> bool {
        !self.version.share_of_free()
    }
}
