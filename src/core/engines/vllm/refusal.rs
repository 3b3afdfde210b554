//! Start-up refusals, with the engine's own figures.

use super::costs::Costs;
use super::kv_groups::Need;
use crate::units::{Bytes, Message};

/// The refusal that an engine started for requests of `len` tokens answers with, if any.
pub(super) fn refusal(costs: &Costs, len: u64) -> Option<Message> {
    too_long_for_model(costs, len)
        .or_else(|| free_memory(costs))
        .or_else(|| load(costs))
        .or_else(|| pool(costs, len, costs.checked(len, |s| s.point)))
}

/// Whether it would refuse with every cost at the high end of its range.
pub(super) fn refuses_at_worst(costs: &Costs, len: u64) -> bool {
    pool(costs, len, costs.checked(len, |s| s.high)).is_some()
}

/// Whether the engine starts: as [`refusal`], without building the message.
pub(super) fn starts(costs: &Costs, len: u64) -> bool {
    too_long_for_model(costs, len).is_none()
        && free_memory(costs).is_none()
        && load(costs).is_none()
        && verdict(costs, len, costs.checked(len, |s| s.point)) == Start::Yes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Yes,
    NoPool,
    TooLong,
    States,
}

fn verdict(costs: &Costs, len: u64, available: i128) -> Start {
    let blocks = costs.blocks(available);
    if available <= 0 || blocks == 0 {
        return Start::NoPool;
    }
    if costs.layout.blocks(len, costs.in_flight(len)) > blocks {
        return Start::TooLong;
    }
    if state_blocks(costs) > blocks {
        return Start::States;
    }
    Start::Yes
}

/// Blocks that must be there for graphs to be captured: one state block for each sequence; 0 where none is asked for.
pub(super) fn state_blocks(costs: &Costs) -> u64 {
    let s = &costs.settings;
    let states = costs.layout.groups.iter().any(|g| matches!(g.need, Need::States(_)));
    if states && s.version.checks_state_blocks() && !s.eager { s.max_seqs } else { 0 }
}

/// A length beyond the model's own. A printed pool proves that it was allowed.
pub(super) fn too_long_for_model(costs: &Costs, len: u64) -> Option<Message> {
    let of_model = costs.settings.of_model;
    (of_model > 0 && len > of_model && costs.pool.is_none()).then(|| {
        Message::new("vllm.refusal.longer_than_model").with("max_model_len", len).with("of_model", of_model)
    })
}

/// Less free memory than the utilisation asks for.
fn free_memory(costs: &Costs) -> Option<Message> {
    if !costs.settings.version.checks_free_memory() || costs.pool.is_some() {
        return None;
    }
    let taken = costs.context.point.saturating_add(costs.others);
    let free = costs.total.saturating_sub(taken);
    (free < costs.requested).then(|| {
        Message::new("vllm.refusal.free_memory")
            .with("free", Bytes(free))
            .with("total", Bytes(costs.total))
            .with("utilization", costs.settings.utilization)
            .with("requested", Bytes(costs.requested))
    })
}

/// Weights that the device cannot hold: the framework's own error while loading, before any budget is drawn up.
fn load(costs: &Costs) -> Option<Message> {
    let around = costs.context.point.saturating_add(costs.others);
    (costs.weights.point.saturating_add(around) > costs.total && costs.pool.is_none()).then(|| {
        Message::new("vllm.refusal.load")
            .with("weights", Bytes(costs.weights.point))
            .with("around", Bytes(around))
            .with("total", Bytes(costs.total))
    })
}

fn pool(costs: &Costs, len: u64, available: i128) -> Option<Message> {
    let blocks = costs.blocks(available);
    match verdict(costs, len, available) {
        Start::Yes => None,
        Start::NoPool => {
            let short = u64::try_from(-available).unwrap_or(0);
            Some(
                Message::new("vllm.refusal.no_blocks")
                    .with("short", Bytes(short))
                    .with("block", Bytes(costs.layout.block_bytes)),
            )
        }
        Start::TooLong if !costs.settings.version.v1 => Some(
            Message::new("vllm.refusal.too_long_v0")
                .with("max_model_len", len)
                .with("tokens", blocks.saturating_mul(costs.layout.block_tokens)),
        ),
        Start::TooLong => {
            let needed =
                costs.layout.blocks(len, costs.in_flight(len)).saturating_mul(costs.layout.block_bytes);
            let available = u64::try_from(available).unwrap_or(0);
            let id = if costs.settings.version.estimates_length() {
                "vllm.refusal.too_long"
            } else {
                "vllm.refusal.too_long_no_estimate"
            };
            Some(
                Message::new(id)
                    .with("max_model_len", len)
                    .with("needed", Bytes(needed))
                    .with("available", Bytes(available))
                    .with("estimated", longest(costs, len, blocks)),
            )
        }
        Start::States => Some(
            Message::new("vllm.refusal.state_blocks")
                .with("max_num_seqs", costs.settings.max_seqs)
                .with("blocks", blocks),
        ),
    }
}

/// The longest request that so many blocks hold, at most `len`; 0 where not even one token fits.
pub(super) fn longest(costs: &Costs, len: u64, blocks: u64) -> u64 {
    let in_flight = costs.in_flight(len);
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = high - (high - low) / 2;
        if costs.layout.blocks(middle, in_flight) <= blocks {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
