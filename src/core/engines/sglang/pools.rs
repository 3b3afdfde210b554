//! The pools: tokens, the window's tokens, state slots, and the requests that may run at once.

use super::costs::Costs;

/// Sizes of the pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pools {
    /// Tokens (`max_total_num_tokens`), in whole pages.
    pub(super) tokens: u64,
    /// Tokens of the window's pool.
    pub(super) window_tokens: u64,
    /// State slots.
    pub(super) slots: u64,
    /// Requests at once on one group of ranks.
    pub(super) requests: u64,
    /// The state slots allow fewer requests than were asked for or than the tokens would.
    pub(super) capped_by_states: bool,
}

impl Pools {
    /// The pools in so many bytes.
    pub(super) fn new(costs: &Costs, rest: i128) -> Pools {
        let (s, cells) = (&costs.settings, &costs.cells);
        let rest = u64::try_from(rest).unwrap_or(0);
        let slots = if cells.state > 0 { slots(costs, rest) } else { 0 };
        let padding = u64::from(cells.state > 0 && s.version.counts_padding_slot());
        let states = slots.saturating_add(padding).saturating_mul(cells.state);
        let speculative = speculative_states(costs, slots);
        let bytes = costs.printed.unwrap_or_else(|| rest.saturating_sub(states).saturating_sub(speculative));
        let paged = |tokens: u64| tokens / s.page * s.page;
        let ratio = if cells.full == 0 { 1.0 } else { s.window_ratio };
        let cell = (cells.full as f64 + ratio * cells.window as f64) * costs.draft_factor();
        let fitting = if cells.window == 0 && costs.draft_factor() <= 1.0 {
            bytes / cells.full.max(1)
        } else {
            (bytes as f64 / cell.max(1.0)) as u64
        };
        let tokens = paged(fitting.min(costs.max_total_tokens.unwrap_or(u64::MAX)));
        let window_tokens = if cells.window == 0 { 0 } else { paged((tokens as f64 * ratio) as u64) };
        let by_tokens = requests(costs, tokens);
        let by_states = if cells.state > 0 { slots / slots_per_request(costs) } else { u64::MAX };
        Pools {
            tokens,
            window_tokens,
            slots,
            requests: by_tokens.min(by_states),
            capped_by_states: by_states < by_tokens,
        }
    }

    /// Bytes of the token pools.
    pub(super) fn token_bytes(&self, costs: &Costs) -> u64 {
        let full = self.tokens.saturating_mul(costs.cells.full);
        full.saturating_add(self.window_tokens.saturating_mul(costs.cells.window))
    }

    /// Bytes of the state slots, the padding one included.
    pub(super) fn state_bytes(&self, costs: &Costs) -> u64 {
        if costs.cells.state == 0 {
            return 0;
        }
        let states = self.slots.saturating_add(1).saturating_mul(costs.cells.state);
        states.saturating_add(speculative_states(costs, self.slots))
    }
}

/// Slots of one running request.
pub(super) fn slots_per_request(costs: &Costs) -> u64 {
    let s = &costs.settings;
    s.version.slots_per_request(s.radix && s.version.shares_with_states())
}

/// State slots (`handle_max_mamba_cache`).
fn slots(costs: &Costs, rest: u64) -> u64 {
    let (s, state) = (&costs.settings, costs.cells.state);
    let given = s.requests.map(|n| (n / s.groups).max(1));
    if !s.version.shares_with_states() {
        return given.unwrap_or(512 / s.groups);
    }
    if let (false, Some(n)) = (s.radix, given) {
        return n;
    }
    let share = (rest as f64 * s.state_ratio / (1.0 + s.state_ratio)) as u64;
    let share = if s.version.counts_padding_slot() { share.saturating_sub(state) } else { share };
    if s.speculative == 0 {
        return share / state;
    }
    // One state more per speculative token for every running request.
    let tokens = s.speculative.saturating_add(1);
    let each = state as f64 * (1.0 + tokens as f64 / slots_per_request(costs) as f64);
    (share as f64 / each) as u64
}

/// States kept while drafted tokens are verified: one per token and running request.
fn speculative_states(costs: &Costs, slots: u64) -> u64 {
    let s = &costs.settings;
    if costs.cells.state == 0 || s.speculative == 0 {
        return 0;
    }
    let requests = slots / slots_per_request(costs);
    let requests = s.requests.map_or(requests, |n| requests.min(n / s.groups));
    let tokens = s.speculative.saturating_add(1);
    requests.saturating_mul(tokens).saturating_mul(costs.cells.state)
}

/// Requests at once by tokens (`resolve_max_num_reqs`).
fn requests(costs: &Costs, tokens: u64) -> u64 {
    let s = &costs.settings;
    let half = if s.version.halves_tokens() { tokens / 2 } else { u64::MAX };
    if let Some(n) = s.requests {
        return (n / s.groups).max(1).min(half);
    }
    let estimated = (tokens as f64 / s.context as f64 * 512.0) as u64;
    estimated.clamp(2048, s.version.most_requests()).min(half)
}

impl Costs {
    /// Bytes of a token with the draft's layers to bytes without.
    pub(super) fn draft_factor(&self) -> f64 {
        if self.settings.version.counts_draft() && self.cells.layers > 0 {
            1.0 + self.draft_layers as f64 / self.cells.layers as f64
        } else {
            1.0
        }
    }
}
