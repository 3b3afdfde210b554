//! The ledger of the fullest device.

use super::account::{Account, cell_bytes};
use super::rows::rows;
use crate::engines::pooled::{SERVING, phase};
use crate::engines::{Detail, Inputs};
use crate::memory::{DeviceBudget, KvSummary, Ledger, Phase, Range, RankShare, Verdict, sum};
use crate::units::{Bytes, Message, Problem};

/// The ledger of a job.
///
/// Errors: as [`Account::new`].
pub(super) fn ledger(inputs: &Inputs<'_>, detail: Detail) -> Result<Ledger, Problem> {
    let fit = {
        let (build, _) = super::version::Build::read(inputs.serve.engine_version.as_deref());
        build.fits_itself()
    };
    answer(inputs, &Account::new(inputs, fit)?, detail)
}

/// The ledger from an account.
pub(super) fn answer(inputs: &Inputs<'_>, account: &Account, detail: Detail) -> Result<Ledger, Problem> {
    let top = account.fullest();
    let terms = rows(inputs, account, top, detail);
    sum(&terms)?;
    let phases: Vec<Phase> = SERVING.iter().map(|id| phase(*id, &terms)).collect();
    let peak_bytes = phases.iter().map(|p| p.peak_bytes).max().unwrap_or(0);
    let at_peak = |pick: &dyn Fn(&crate::memory::Term) -> u64| {
        let alive = phases.iter().max_by_key(|p| p.peak_bytes).map(|p| p.id);
        let alive = terms.iter().filter(|t| alive.is_none_or(|id| t.phases.contains(&id)));
        alive.map(pick).fold(0_u64, u64::saturating_add)
    };
    let peak = Range { low: at_peak(&|t| t.low).min(peak_bytes), high: at_peak(&|t| t.high).max(peak_bytes) };
    let refusal = refusal(account);
    let serve = inputs.serve;
    let tokens = serve.prompt_tokens.saturating_add(serve.new_tokens);
    let stop = load_stop(account, serve.sequences, tokens);
    let total = account.total;
    let verdict = if refusal.is_some() || peak_bytes > total || stop.is_some() {
        Verdict::DoesNotFit
    } else if peak.high > total {
        Verdict::Tight
    } else {
        Verdict::Fits
    };
    let warnings = if detail == Detail::Whole { warnings(inputs, account, peak_bytes) } else { Vec::new() };
    let host = account.layout.place.host;
    Ok(Ledger {
        kv: Some(summary(inputs, account)),
        device: DeviceBudget { total_bytes: total, budget_bytes: total },
        ranks: ranks(account, top),
        host: rows(inputs, account, host, detail),
        terms,
        phases,
        peak,
        peak_bytes,
        verdict,
        refusal,
        warnings,
    })
}

/// What stands in the way of a load, apart from memory.
pub(super) fn load_stop(account: &Account, sequences: u64, tokens: u64) -> Option<Message> {
    let s = &account.settings;
    if sequences > s.seqs {
        let message = Message::new("llama_cpp.more_than_slots").with("sequences", sequences);
        return Some(message.with("slots", s.seqs));
    }
    if tokens > s.slot {
        let message = Message::new("llama_cpp.longer_than_slot").with("tokens", tokens);
        return Some(message.with("slot", s.slot));
    }
    (sequences.saturating_mul(tokens) > s.context).then(|| {
        let message =
            Message::new("llama_cpp.more_than_cells").with("tokens", sequences.saturating_mul(tokens));
        message.with("cells", s.context)
    })
}

/// What the engine does not start with.
pub(super) fn refusal(account: &Account) -> Option<Message> {
    let s = &account.settings;
    (s.v.elements > 1 && !s.flash).then(|| Message::new("llama_cpp.refusal.quantized_v").with("type", s.v.id))
}

fn ranks(account: &Account, top: usize) -> Vec<RankShare> {
    if account.settings.devices < 2 {
        return Vec::new();
    }
    (0..account.settings.devices)
        .map(|d| RankShare {
            first: d as u64,
            count: 1,
            stage: d as u64,
            weights_bytes: account.weights[d].point,
            kv_bytes: account.kv[d].saturating_add(account.state[d]),
            peak_bytes: account.peak(d),
            fullest: d == top,
        })
        .collect()
}

fn summary(inputs: &Inputs<'_>, account: &Account) -> KvSummary {
    let (s, top) = (&account.settings, account.fullest());
    let here = |index: usize| s.kv_on_device && account.layout.home(index) == top;
    let grows = inputs.model.layers.iter().enumerate().filter(|(i, l)| {
        here(*i) && (!s.cells.windowed(&l.attention.kind) || s.cells.window == s.cells.full)
    });
    let bytes: u64 = grows
        .map(|(_, l)| {
            let (k, v) = cell_bytes(&l.attention.kind, s);
            k.saturating_add(v)
        })
        .fold(0, u64::saturating_add);
    KvSummary {
        bytes_per_token: bytes as f64,
        block_tokens: 1,
        block_bytes: bytes,
        blocks: s.context,
        tokens: s.context,
        token_line: s.context,
        max_concurrency: s.context as f64 / s.slot.max(1) as f64,
    }
}

fn warnings(inputs: &Inputs<'_>, account: &Account, peak_bytes: u64) -> Vec<Message> {
    let (s, serve, model) = (&account.settings, inputs.serve, inputs.model);
    let mut out = Vec::new();
    if serve.engine_version.is_none() {
        out.push(Message::new("llama_cpp.version_not_given"));
    } else if !s.build_known {
        let given = serve.engine_version.clone().unwrap_or_default();
        out.push(Message::new("llama_cpp.version_assumed").with("given", given));
    }
    let host = account.layout.place.host;
    out.push(
        Message::new("llama_cpp.host")
            .with("weights", Bytes(account.weights[host].point))
            .with("kv", Bytes(account.kv[host].saturating_add(account.state[host])))
            .with("compute", Bytes(account.compute[host])),
    );
    if let Some(from) = account.reduced_from {
        out.push(Message::new("llama_cpp.context_reduced").with("from", from).with("n_ctx", s.context));
    } else if !s.explicit_context {
        out.push(Message::new("llama_cpp.context_default").with("n_ctx", s.context));
    }
    if let Some(asked) = serve.max_model_len.filter(|n| *n != s.context) {
        out.push(Message::new("llama_cpp.context_padded").with("asked", asked).with("n_ctx", s.context));
    }
    let tokens = serve.prompt_tokens.saturating_add(serve.new_tokens);
    out.extend(load_stop(account, serve.sequences, tokens));
    if !s.explicit_layers && !s.build.offloads_and_flashes() {
        out.push(Message::new("llama_cpp.layers_assumed"));
    }
    if peak_bytes > account.total {
        let id = if s.build.fits_itself() && !s.explicit_layers {
            "llama_cpp.fit_moves_layers"
        } else {
            "llama_cpp.fails_to_allocate"
        };
        out.push(Message::new(id).with("over", Bytes(peak_bytes - account.total)));
    }
    if serve.swa_full && s.cells.window_layers == 0 {
        out.push(Message::new("llama_cpp.no_window"));
    }
    if s.by_rows && s.devices > 1 {
        out.push(Message::new("llama_cpp.rows_as_layers"));
    }
    if model.vision.is_some() {
        out.push(Message::new("llama_cpp.projector_not_counted"));
    }
    if inputs.draft.is_some() || serve.num_speculative_tokens > 0 {
        out.push(Message::new("llama_cpp.draft_not_modelled"));
    }
    let latent =
        model.layers.iter().any(|l| matches!(l.attention.kind, crate::model::AttentionKind::Mla { .. }));
    if s.build.ik {
        out.push(Message::new(if latent { "llama_cpp.fork_latent" } else { "llama_cpp.fork" }));
    }
    if s.mmap && account.weights[host].point > 0 {
        out.push(Message::new("llama_cpp.mmap"));
    }
    out
}
