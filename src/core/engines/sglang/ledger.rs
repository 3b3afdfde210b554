//! The answer: rows, refusals, what a person should know.

use super::costs::Costs;
use super::pools::Pools;
use super::rows;
use super::version::NEWEST_TEXT;
use crate::engines::pooled::{End, Plan, Pool, Row, SERVING, Sampler, Span, Window, assumed_version};
use crate::engines::{Detail, Inputs, Stop};
use crate::memory::{KvSummary, Term};
use crate::units::{Bytes, Message, Problem};

/// The sampler turns logits into fp32 and probabilities beside them; PyTorch's own also sorts.
const SAMPLER: &str = "SGLang layers/sampler.py: logits in 16 and 32 bits, probabilities; the sort of the PyTorch backend above";

/// Everything that SGLang says about a job.
///
/// Errors: as [`Costs::new`].
pub(super) fn plan(inputs: &Inputs<'_>, detail: Detail) -> Result<Plan, Problem> {
    let (costs, weights) = Costs::new(inputs, detail)?;
    let (point, worst) = (costs.pools(End::Point), costs.pools(End::Worst));
    let refusal = refusal(&costs, &point);
    let refuses_at_worst = costs.printed.is_none() && refuses(&costs, &worst, costs.rest(End::Worst));
    let mut rows = vec![Row { term: Term { phases: SERVING.to_vec(), ..weights }, moves: false }];
    rows.extend(rows::pools(&costs));
    rows.extend(rows::draft(&costs, &point));
    rows.extend(rows::after(inputs, &costs, &point));
    rows.extend(rows::around(inputs, &costs));
    Ok(Plan {
        engine: "SGLang",
        total: costs.total,
        budget: costs.budget(End::Point),
        rows,
        sampler: inputs.measured.activation_peak_bytes.is_none().then(|| Sampler {
            vocabulary: inputs.model.vocab_size.checked_next_multiple_of(64).unwrap_or(u64::MAX),
            per_logit: Span { point: 10, low: 6, high: 38 },
            source: SAMPLER,
        }),
        pool: pool(&costs, &point, &worst),
        kv: summary(&costs, &point),
        refuses_at_worst,
        printed: costs.printed.is_some(),
        warnings: if detail == Detail::Whole { warnings(inputs, &costs, &point) } else { Vec::new() },
        refusal,
        over_device: "sglang.over_device",
    })
}

fn pool(costs: &Costs, point: &Pools, worst: &Pools) -> Pool {
    let (s, cells) = (&costs.settings, &costs.cells);
    let window = (cells.window > 0).then(|| Window {
        tokens: point.window_tokens,
        worst_tokens: worst.window_tokens.min(point.window_tokens),
        kept: cells.look_back.saturating_add(s.page),
        token_bytes: cells.window,
    });
    let groups = s.groups;
    Pool {
        tokens: point.tokens,
        worst_tokens: worst.tokens.min(point.tokens),
        block: s.page,
        token_bytes: if cells.full > 0 { cells.full } else { cells.window },
        window: if cells.full > 0 { window } else { None },
        state_bytes: cells.state,
        groups,
        seats: point.requests.saturating_mul(groups),
        worst_seats: worst.requests.min(point.requests).saturating_mul(groups),
        few_seats: point.capped_by_states,
        longest: s.context,
        seats_option: "max_running_requests",
        length_option: "context_length",
    }
}

/// The pool in the engine's own figures, on one rank.
fn summary(costs: &Costs, pools: &Pools) -> KvSummary {
    let (s, cells) = (&costs.settings, &costs.cells);
    let cell = if cells.full > 0 { cells.full } else { cells.window };
    KvSummary {
        bytes_per_token: cell as f64,
        block_tokens: s.page,
        block_bytes: cell.saturating_mul(s.page),
        blocks: pools.tokens / s.page,
        tokens: pools.tokens,
        token_line: pools.tokens,
        max_concurrency: pools.tokens as f64 / s.context as f64,
    }
}

fn refuses(costs: &Costs, pools: &Pools, rest: i128) -> bool {
    rest <= 0 || pools.tokens == 0 || (costs.cells.state > 0 && pools.requests == 0)
}

/// Why it would not start, in its own words where it has some.
fn refusal(costs: &Costs, pools: &Pools) -> Option<(Message, Stop)> {
    if costs.printed.is_some() {
        return (pools.tokens == 0).then(|| {
            (
                Message::new("sglang.refusal.no_tokens")
                    .with("f", costs.settings.fraction)
                    .with("least", costs.least_share()),
                Stop::Pool,
            )
        });
    }
    let s = &costs.settings;
    let free = costs.free(End::Point);
    if costs.weights.point > free {
        let message = Message::new("sglang.refusal.load")
            .with("weights", Bytes(costs.weights.point))
            .with("free", Bytes(free))
            .with("total", Bytes(costs.total));
        return Some((message, Stop::Device));
    }
    if !refuses(costs, pools, costs.rest(End::Point)) {
        return None;
    }
    if costs.rest(End::Point) > 0 && costs.cells.state > 0 && pools.requests == 0 {
        let message = Message::new("sglang.refusal.states")
            .with("slots", pools.slots)
            .with("each", super::pools::slots_per_request(costs))
            .with("state", Bytes(costs.cells.state));
        return Some((message, Stop::Pool));
    }
    let id = match (costs.least_share() >= 1.0, s.version.suggests_share()) {
        (true, _) => "sglang.refusal.no_share",
        (false, true) => "sglang.refusal.raise_above",
        (false, false) => "sglang.refusal.no_tokens",
    };
    let message = Message::new(id)
        .with("f", s.fraction)
        .with("least", costs.least_share())
        .with("loaded", Bytes(costs.loaded(End::Point)))
        .with("free", Bytes(free));
    Some((message, Stop::Pool))
}

fn warnings(inputs: &Inputs<'_>, costs: &Costs, pools: &Pools) -> Vec<Message> {
    let (s, cells, model) = (&costs.settings, &costs.cells, inputs.model);
    let mut out = Vec::new();
    out.extend(crate::memory::weights::effective_quantization(model, inputs.weights).note);
    out.extend(assumed_version(inputs, s.version.assumed, NEWEST_TEXT));
    if !s.explicit_fraction {
        let reserve = (costs.total as f64 * (1.0 - s.fraction)) as u64;
        let message =
            Message::new("sglang.fraction_chosen").with("f", (s.fraction * 1000.0).round() / 1000.0);
        out.push(message.with("reserve", Bytes(reserve)));
    }
    if !s.explicit_context {
        out.push(Message::new("pooled.length_of_model").with("engine", "SGLang").with("longest", s.context));
    } else if model.max_position_embeddings > 0 && s.context > model.max_position_embeddings {
        let message = Message::new("sglang.longer_than_model").with("context", s.context);
        out.push(message.with("of_model", model.max_position_embeddings));
    }
    if pools.tokens > 0 && pools.tokens < s.context {
        let message = Message::new("sglang.context_above_pool").with("context", s.context);
        out.push(message.with("tokens", pools.tokens));
    }
    if cells.window_ignored {
        out.push(Message::new("sglang.window_ignored"));
    }
    if cells.window > 0 && !s.radix && s.requests.is_some() && s.version.caps_windows() {
        out.push(Message::new("sglang.window_capped"));
    }
    if cells.state > 0 && pools.capped_by_states {
        let message = Message::new("sglang.requests_by_states").with("requests", pools.requests);
        out.push(message.with("slots", pools.slots).with("each", super::pools::slots_per_request(costs)));
    }
    if s.groups > 1 {
        out.push(Message::new("sglang.dp_attention").with("groups", s.groups));
    }
    if inputs.parallel.expert > 1 {
        out.push(Message::new("sglang.expert_buffers"));
    }
    if inputs.device.gpu.is_some_and(|g| g.unified) {
        out.push(Message::new("pooled.unified_memory"));
    }
    if s.speculative > 0 && inputs.draft.is_none() {
        let id = if model.mtp_layers > 0 { "sglang.draft_weights" } else { "sglang.draft_not_modelled" };
        out.push(Message::new(id));
    }
    out
}
