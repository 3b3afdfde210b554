//! The ledger of the fullest rank.

use super::costs::Costs;
use super::kv_groups::Need;
use super::refusal::{refusal, refuses_at_worst};
use super::rows;
use crate::engines::pooled::{SERVING, phase};
use crate::engines::{Detail, Inputs};
use crate::memory::{DeviceBudget, KvSummary, Ledger, Phase, PhaseId, Range, Term, TermId, Verdict, sum};
use crate::units::{Bytes, Message, Problem};

/// The ledger of a job.
///
/// Errors: as [`Costs::new`].
pub(super) fn ledger(inputs: &Inputs<'_>, detail: Detail) -> Result<Ledger, Problem> {
    let (costs, weights) = Costs::new(inputs, detail)?;
    answer(inputs, &costs, weights, detail)
}

/// The ledger from costs already resolved.
pub(super) fn answer(
    inputs: &Inputs<'_>,
    costs: &Costs,
    weights: Term,
    detail: Detail,
) -> Result<Ledger, Problem> {
    let len = costs.settings.max_len;
    let available = costs.available(len);
    let close = Closing::new(costs, len);
    let mut terms = vec![Term { phases: SERVING.to_vec(), ..weights }];
    terms.extend(costs.beside.iter().cloned());
    terms.extend(rows::pool(inputs, costs, available));
    terms.extend(rows::profile(inputs, costs, close.cap));
    terms.extend(rows::logprobs(inputs, costs));
    terms.extend(rows::cuda_graphs(inputs, costs));
    terms.extend(rows::around(inputs, costs));
    if close.spare > 0 {
        terms.push(rows::unexplained(costs, close.spare));
    }
    sum(&terms)?;
    let phases: Vec<Phase> = SERVING.iter().map(|id| phase(*id, &terms)).collect();
    let peak_bytes = phases.iter().map(|p| p.peak_bytes).max().unwrap_or(0);
    let peak = peak_range(costs, peak_bytes, &terms, available > 0 && !costs.is_set());
    let refusal = refusal(costs, len);
    let load = Load::new(inputs, costs, available);
    let mut warnings = Vec::new();
    if detail == Detail::Whole {
        warnings = super::notes::warnings(inputs, costs, &close, &terms);
        // An engine that does not start serves no load and captures no graphs: its refusal is all there is to say.
        if refusal.is_none() {
            warnings.extend(load.warning(inputs, costs));
            if peak_bytes > costs.total {
                let over = Message::new("vllm.over_device").with("over", Bytes(peak_bytes - costs.total));
                warnings.push(over.with("total", Bytes(costs.total)));
            } else if peak_bytes > costs.requested {
                warnings.push(above_budget(costs, peak_bytes));
            }
        }
    }
    let impossible = costs.impossible(peak_bytes, peak.low);
    let verdict = if refusal.is_some() || impossible || !load.fits {
        Verdict::DoesNotFit
    } else if refuses_at_worst(costs, len) || peak.high > costs.total || !load.fits_at_worst {
        Verdict::Tight
    } else {
        Verdict::Fits
    };
    let device = DeviceBudget { total_bytes: costs.total, budget_bytes: costs.requested };
    let kv = Some(summary(costs, available));
    let ranks = super::ranks::ranks(inputs, costs, costs.blocks(available), &terms, peak_bytes)?;
    Ok(Ledger {
        terms,
        phases,
        device,
        kv,
        peak,
        peak_bytes,
        verdict,
        refusal,
        warnings,
        ranks,
        host: super::host::host(inputs, costs),
    })
}

/// Bytes to spare at the tightest of the places where vLLM stops: free memory at start, the pool for one longest
/// request and for the asked load, the device total.
///
/// Errors: as [`Costs::new`].
pub(super) fn margin(inputs: &Inputs<'_>) -> Result<i128, Problem> {
    let (costs, weights) = Costs::new(inputs, Detail::Figures)?;
    let (serve, len) = (inputs.serve, costs.settings.max_len);
    let block = i128::from(costs.layout.block_bytes);
    let tokens = serve.prompt_tokens.saturating_add(serve.new_tokens);
    let needed = costs.load_blocks(serve.sequences, tokens, len).max(costs.load_blocks(1, len, len)).max(1);
    let needed = needed.max(super::refusal::state_blocks(&costs));
    // With blocks given the pool is what they are, whatever the profile left.
    let pool = match costs.fixed_blocks {
        Some(blocks) => (i128::from(blocks) - i128::from(needed)) * block,
        None => costs.available(len) - i128::from(needed) * block,
    };
    let ledger = answer(inputs, &costs, weights, Detail::Figures)?;
    let mut margin = pool.min(ledger.headroom());
    if super::refusal::too_long_for_model(&costs, len).is_some() {
        margin = margin.min(-1);
    }
    if costs.settings.version.checks_free_memory() && costs.pool.is_none() {
        let taken = i128::from(costs.context.point) + i128::from(costs.others);
        margin = margin.min(i128::from(costs.total) - taken - i128::from(costs.requested));
    }
    Ok(margin)
}

/// What lies outside the budget in this version, where it lifts the peak above it.
fn above_budget(costs: &Costs, peak_bytes: u64) -> Message {
    let version = costs.settings.version;
    let outside = |inside: bool, bytes: u64| Bytes(if inside { 0 } else { bytes });
    Message::new("vllm.above_budget")
        .with("over", Bytes(peak_bytes.saturating_sub(costs.requested)))
        .with("context", outside(version.context_in_budget(), costs.context.point))
        .with("graphs", outside(version.graphs_in_budget(), costs.graphs.point))
        .with("others", outside(version.context_in_budget(), costs.others))
}

/// How the rows close against a printed pool.
pub(super) struct Closing {
    /// Budget that neither a row nor the pool explains.
    pub(super) spare: u64,
    /// What the pool leaves for the profile run, where the rules say more.
    cap: Option<u64>,
    /// Weights and pool alone exceed the budget by this.
    pub(super) over: u64,
}

impl Closing {
    fn new(costs: &Costs, len: u64) -> Closing {
        let mut close = Closing { spare: 0, cap: None, over: 0 };
        let Some(pool) = costs.pool.filter(|_| !costs.is_set()) else { return close };
        let peak = costs.profile.peak(costs.settings.batched(len)).point;
        let modelled = Costs { pool: None, ..costs.clone() }.available(len);
        let spare = modelled - i128::from(pool);
        let positive = |n: i128| u64::try_from(n).unwrap_or(0);
        if spare >= 0 {
            close.spare = positive(spare);
        } else {
            let left = i128::from(peak) + spare;
            close.cap = Some(positive(left));
            close.over = positive(-left);
        }
        close
    }
}

/// Range of the peak. With a pool, what one term inside the budget takes more the pool gets less: only what lies
/// outside the budget moves the peak.
fn peak_range(costs: &Costs, peak: u64, terms: &[Term], has_pool: bool) -> Range {
    let version = costs.settings.version;
    let moves = |t: &&Term| match t.id {
        TermId::ContextOverhead => !has_pool || !version.context_in_budget(),
        TermId::CudaGraphs => has_pool && !version.graphs_in_budget(),
        TermId::Unexplained | TermId::Logits => true,
        TermId::KvCache | TermId::RecurrentState => false,
        TermId::Sampling | TermId::Activations | TermId::Encoder => {
            !has_pool && t.phases.contains(&PhaseId::Warmup)
        }
        _ => !has_pool,
    };
    let low: u64 = terms.iter().filter(moves).map(|t| t.bytes.saturating_sub(t.low)).sum();
    let high: u64 = terms.iter().filter(moves).map(|t| t.high.saturating_sub(t.bytes)).sum();
    Range { low: peak.saturating_sub(low), high: peak.saturating_add(high) }
}

/// The asked sequences against the pool.
struct Load {
    blocks: u64,
    fits: bool,
    fits_at_worst: bool,
    tokens: u64,
    pool: u64,
}

impl Load {
    fn new(inputs: &Inputs<'_>, costs: &Costs, available: i128) -> Load {
        let (serve, len) = (inputs.serve, costs.settings.max_len);
        let tokens = serve.prompt_tokens.saturating_add(serve.new_tokens);
        let blocks = costs.load_blocks(serve.sequences, tokens, len);
        let pool = costs.blocks(available);
        let seats = serve.sequences <= costs.settings.max_seqs;
        Load {
            blocks,
            fits: blocks <= pool && tokens <= len && seats,
            fits_at_worst: blocks <= costs.blocks(costs.available_at_worst(len)),
            tokens,
            pool,
        }
    }

    fn warning(&self, inputs: &Inputs<'_>, costs: &Costs) -> Option<Message> {
        let (serve, len) = (inputs.serve, costs.settings.max_len);
        if self.tokens > len {
            let message = Message::new("vllm.request_too_long").with("tokens", self.tokens);
            return Some(message.with("max_model_len", len));
        }
        if serve.sequences > costs.settings.max_seqs {
            let message = Message::new("vllm.more_than_max_num_seqs").with("sequences", serve.sequences);
            return Some(message.with("max_num_seqs", costs.settings.max_seqs));
        }
        (self.blocks > self.pool).then(|| {
            let each = costs.load_blocks(1, self.tokens, len).max(1);
            Message::new("vllm.load_waits")
                .with("sequences", serve.sequences)
                .with("tokens", self.tokens)
                .with("blocks", self.blocks)
                .with("pool", self.pool)
                .with("at_once", self.pool / each)
        })
    }
}

/// The pool in the engine's own figures.
fn summary(costs: &Costs, available: i128) -> KvSummary {
    let (s, layout) = (&costs.settings, &costs.layout);
    let blocks = costs.blocks(available);
    let len = s.max_len;
    let groups = layout.groups.len() as u64;
    let smallest = layout.groups.iter().map(|g| g.block).min().unwrap_or(layout.block_tokens);
    let pooled = (blocks / groups.max(1)).saturating_mul(smallest).saturating_mul(layout.ranks);
    let per_request = layout.blocks(len, costs.in_flight(len)).max(1);
    let max_concurrency = if s.version.concurrency_by_blocks() || groups > 1 {
        blocks as f64 / per_request as f64
    } else {
        pooled as f64 / len as f64
    };
    let by_concurrency = (max_concurrency * len as f64) as u64;
    let growing = layout.groups.iter().filter(|g| g.need == Need::All);
    let per_token: f64 = growing.map(|g| layout.block_bytes as f64 / (g.block * layout.ranks) as f64).sum();
    let bytes_per_token =
        if per_token > 0.0 { per_token } else { layout.block_bytes as f64 / layout.block_tokens as f64 };
    KvSummary {
        bytes_per_token,
        block_tokens: layout.block_tokens,
        block_bytes: layout.block_bytes,
        blocks,
        tokens: if groups > 1 { by_concurrency } else { pooled },
        token_line: if s.version.line_is_concurrency() { by_concurrency } else { pooled },
        max_concurrency,
    }
}
