//! What the person should know beside the figures.

use super::costs::Costs;
use super::ledger::Closing;
use crate::engines::Inputs;
use crate::engines::pooled::product;
use crate::memory::kv_cache::heads_per_rank;
use crate::memory::{Residency, Term, TermId};
use crate::model::AttentionKind;
use crate::units::{Bytes, Message};

/// Messages about a job that was answered.
pub(super) fn warnings(inputs: &Inputs<'_>, costs: &Costs, close: &Closing, terms: &[Term]) -> Vec<Message> {
    let (s, layout, model) = (&costs.settings, &costs.layout, inputs.model);
    let mut out = Vec::new();
    out.extend(crate::memory::weights::effective_quantization(model, inputs.weights).note);
    if s.version.assumed {
        let message = match inputs.serve.engine_version.as_deref() {
            Some(given) => Message::new("vllm.version_assumed").with("given", given),
            None => Message::new("vllm.version_not_given"),
        };
        out.push(message.with("taken", "0.29"));
    }
    if s.fewest_seqs < s.max_seqs {
        let message = Message::new("vllm.batch_of_large_devices").with("max_num_seqs", s.max_seqs);
        out.push(message.with("other", s.fewest_seqs));
    }
    if !s.explicit_len {
        out.push(Message::new("vllm.length_of_model").with("max_model_len", s.max_len));
    }
    if layout.padding_layers > 0 {
        out.push(Message::new("vllm.padding_layers").with("layers", layout.padding_layers));
    }
    if let Some((page, state)) = layout.padded_state {
        let percent = (page - state) as f64 / state as f64 * 100.0;
        let message = Message::new("vllm.state_pages").with("tokens", layout.block_tokens);
        out.push(message.with("percent", (percent * 100.0).round() / 100.0));
    }
    if layout.window_ignored {
        out.push(Message::new("vllm.window_ignored"));
    }
    if inputs.parallel.expert > 1 {
        out.push(Message::new("vllm.expert_buffers"));
    }
    if inputs.device.gpu.is_some_and(|g| g.unified) {
        out.push(Message::new("vllm.unified_memory"));
    }
    if s.speculative > 0 && inputs.draft.is_none() {
        let id = if model.mtp_layers > 0 { "vllm.own_draft" } else { "vllm.draft_not_modelled" };
        out.push(Message::new(id));
    }
    if !s.version.graphs_in_budget() && costs.graphs.point > 0 {
        out.push(Message::new("vllm.graphs_outside").with("bytes", Bytes(costs.graphs.point)));
    }
    if close.spare > 0 {
        out.push(Message::new("vllm.unexplained").with("bytes", Bytes(close.spare)));
    }
    if close.over > 0 {
        out.push(Message::new("vllm.over_budget").with("bytes", Bytes(close.over)));
    }
    out.extend(replicated(inputs));
    out.extend(prompt_logprobs(inputs, costs));
    out.extend(asleep(inputs, terms));
    out.extend(suggestion(costs));
    if inputs.serve.kv_cache_memory_bytes.is_some() && costs.pool.is_none() {
        out.push(Message::new("vllm.pool_given"));
    }
    out
}

/// Keys and values of a head that several ranks hold, since there are more ranks than heads.
fn replicated(inputs: &Inputs<'_>) -> Option<Message> {
    let tensor = inputs.parallel.tensor;
    let heads = inputs.model.layers.iter().find_map(|l| match l.attention.kind {
        AttentionKind::Full { kv_heads, .. } | AttentionKind::Sliding { kv_heads, .. } => Some(kv_heads),
        _ => None,
    })?;
    let copies = heads_per_rank(heads, tensor).saturating_mul(tensor).checked_div(heads)?;
    (copies > 1).then(|| {
        Message::new("vllm.kv_replicated")
            .with("kv_heads", heads)
            .with("tensor", tensor)
            .with("copies", copies)
    })
}

/// Logits of every prompt token of a step, and their logarithms in fp32: no profile run has them.
fn prompt_logprobs(inputs: &Inputs<'_>, costs: &Costs) -> Option<Message> {
    if !inputs.serve.prompt_logprobs {
        return None;
    }
    let len = costs.settings.max_len;
    let tokens = costs.settings.batched(len).min(len);
    let bytes = product(&[tokens, costs.profile.vocabulary, inputs.weights.dtype.bytes() + 4]);
    Some(Message::new("vllm.prompt_logprobs").with("bytes", Bytes(bytes)).with("tokens", tokens))
}

/// What sleep mode leaves on the device: everything that was not allocated in its pools of weights and cache.
fn asleep(inputs: &Inputs<'_>, terms: &[Term]) -> Option<Message> {
    let level = inputs.serve.sleep_level.filter(|l| *l > 0)?;
    let freed = |t: &&Term| {
        matches!(t.id, TermId::Weights | TermId::Adapter | TermId::DraftModel | TermId::KvCache)
            || t.id == TermId::RecurrentState
    };
    let resident = |t: &&Term| t.residency != Residency::Transient;
    let left: u64 = terms.iter().filter(|t| resident(t) && !freed(t)).map(|t| t.bytes).sum();
    let id = if level == 1 { "vllm.asleep_1" } else { "vllm.asleep_2" };
    let weights: u64 = terms.iter().filter(|t| t.id == TermId::Weights).map(|t| t.bytes).sum();
    Some(Message::new(id).with("left", Bytes(left)).with("weights", Bytes(weights)))
}

/// The `--kv-cache-memory-bytes` that the log suggests: what is left of the budget once graphs are captured, less a
/// reserve of 150 MiB.
fn suggestion(costs: &Costs) -> Option<Message> {
    const RESERVE: i128 = 150 << 20;
    let len = costs.settings.max_len;
    if !costs.settings.version.suggests_pool() || costs.is_set() {
        return None;
    }
    let graphs = if costs.settings.version.graphs_in_budget() { 0 } else { costs.graphs.point };
    let bytes = u64::try_from(costs.available(len) - i128::from(graphs) - RESERVE).ok().filter(|b| *b > 0)?;
    Some(Message::new("vllm.kv_memory_suggestion").with("bytes", Bytes(bytes)))
}
