//! The stacked bar of the fullest moment, by term, with device total and budget marked.

use super::Shown;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::{Term, TermId, at_peak};
use oom_ledger_core::plot::palette;
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human};

/// The colour of a term for CSS.
pub fn colour(id: TermId) -> String {
    palette::hex(palette::term(id))
}

/// The bar.
#[component]
pub fn Bar() -> impl IntoView {
    let shown = expect_context::<Shown>();
    move || {
        let good = shown.get()?;
        let (total, budget) = (good.estimate.device.total_bytes, good.estimate.device.budget_bytes);
        let p = &good.scenario.parallel;
        let devices = p.tensor.saturating_mul(p.pipeline).saturating_mul(p.data);
        let terms: Vec<&Term> =
            at_peak(&good.estimate.terms, &good.estimate.phases).filter(|t| t.bytes > 0).collect();
        let sum: u64 = terms.iter().map(|t| t.bytes).sum();
        let whole = total.max(sum).max(1) as f64;
        let share = move |b: u64| format!("{:.3}%", b as f64 / whole * 100.0);
        let pieces = terms
            .iter()
            .map(|term| {
                let label =
                    format!("{} {}", now(&format!("term.{}", term.id.id())), bytes_human(Bytes(term.bytes)));
                view! {
                    <span
                        style:width=share(term.bytes)
                        style:background=colour(term.id)
                        title=format!("{label} ({})", bytes_exact(Bytes(term.bytes)))
                    ></span>
                }
            })
            .collect_view();
        let text = format!(
            "{}: {}",
            now("site.bar_label"),
            terms
                .iter()
                .map(|t| format!("{} {}", now(&format!("term.{}", t.id.id())), bytes_human(Bytes(t.bytes))))
                .collect::<Vec<_>>()
                .join(", ")
        );
        Some(view! {
            <section>
                <div class="bar" role="img" aria-label=text>
                    {pieces}
                    <i style:left=share(total)></i>
                    {(budget < total).then(|| view! { <i class="budget" style:left=share(budget)></i> })}
                </div>
                <div class="scale">
                    {(devices > 1).then(|| view! {
                        <span>{move || now("site.fullest_of").replace("{n}", &devices.to_string())}</span>
                    })}
                    <span>"■ " {t("site.peak")} " " {bytes_human(Bytes(good.estimate.peak_bytes))}</span>
                    {(budget < total).then(|| view! {
                        <span>"┊ " {t("site.budget")} " " {bytes_human(Bytes(budget))}</span>
                    })}
                    <span>"│ " {t("site.device_total")} " " {bytes_human(Bytes(total))}</span>
                </div>
            </section>
        })
    }
}
