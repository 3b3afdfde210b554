//! The phases as bars on one scale: what is alive in each, in time order.

use super::Shown;
use super::bar::colour;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::{Phase, Term};
use oom_ledger_core::units::{Bytes, bytes_human};

/// The bars.
#[component]
pub fn Phases() -> impl IntoView {
    let shown = expect_context::<Shown>();
    move || {
        let good = shown.get()?;
        let e = &good.estimate;
        if e.phases.len() < 2 {
            return None;
        }
        let whole = e.phases.iter().map(|p| p.peak_bytes).max().unwrap_or(1).max(e.device.total_bytes).max(1);
        let total = share(e.device.total_bytes, whole);
        let rows = e.phases.iter().map(|p| bar(p, &e.terms, whole, e.peak_bytes, &total)).collect_view();
        Some(view! {
            <section class="phase-bars" data-testid="phase-bars">
                <h2>{t("site.phases_alive")}</h2>
                <ol>{rows}</ol>
            </section>
        })
    }
}

fn share(bytes: u64, whole: u64) -> String {
    format!("{:.3}%", bytes as f64 / whole as f64 * 100.0)
}

fn bar(phase: &Phase, terms: &[Term], whole: u64, peak: u64, total: &str) -> impl IntoView + use<> {
    let alive: Vec<&Term> = terms.iter().filter(|t| t.phases.contains(&phase.id) && t.bytes > 0).collect();
    // A term holds its largest extent; where that is more than this phase had, the bar is cut to the phase's own peak.
    let sum: u64 = alive.iter().map(|t| t.bytes).sum();
    let scale = if sum > phase.peak_bytes { phase.peak_bytes as f64 / sum as f64 } else { 1.0 };
    let name = |t: &Term| format!("{} {}", now(&format!("term.{}", t.id.id())), bytes_human(Bytes(t.bytes)));
    let label = format!(
        "{} {}: {}",
        now(&format!("phase.{}", phase.id.id())),
        bytes_human(Bytes(phase.peak_bytes)),
        alive.iter().map(|t| name(t)).collect::<Vec<_>>().join(", ")
    );
    let pieces = alive
        .iter()
        .map(|t| {
            let width = format!("{:.3}%", t.bytes as f64 * scale / whole as f64 * 100.0);
            view! { <span style:width=width style:background=colour(t.id) title=name(t)></span> }
        })
        .collect_view();
    let highest = phase.peak_bytes == peak;
    view! {
        <li class:highest=highest>
            <span class="phase-name">{now(&format!("phase.{}", phase.id.id()))}</span>
            <div class="bar thin" role="img" aria-label=label>
                {pieces}
                <i style:left=total.to_owned()></i>
            </div>
            <span class="phase-peak">{bytes_human(Bytes(phase.peak_bytes))}</span>
        </li>
    }
}
