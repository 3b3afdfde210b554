//! Limits, phases, figures and notes.

use super::Shown;
use crate::words::{now, say, t};
use leptos::prelude::*;
use oom_ledger_core::share::{LimitRow, PhaseRow};
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human, count};

/// Everything that follows the ledger in words and small tables.
#[component]
pub fn Summary() -> impl IntoView {
    let shown = expect_context::<Shown>();
    move || {
        let good = shown.get()?;
        let report = &good.report;
        let notes = report.warnings.iter().map(|m| view! { <li>{say(m)}</li> }).collect_view();
        let facts = report.facts.iter().map(|(key, value)| {
            view! { <tr><th scope="row">{now(key)}</th><td class="num">{value.clone()}</td></tr> }
        });
        let options = report
            .options
            .iter()
            .map(|(key, value)| {
                view! { <tr><td>{now(key)}</td><td class="num">{value.clone()}</td><td></td></tr> }
            })
            .collect_view();
        Some(view! {
            <section class="columns">
                <table>
                    <caption>{t("site.limits")}</caption>
                    <thead><tr>
                        <th scope="col">{t("site.limit")}</th>
                        <th scope="col" class="num">{t("site.largest")}</th>
                        <th scope="col">{t("site.stopped_by")}</th>
                    </tr></thead>
                    <tbody>{report.limits.iter().map(limit).collect_view()}{options}</tbody>
                </table>
                <table>
                    <caption>{t("site.phases")}</caption>
                    <thead><tr>
                        <th scope="col">{t("site.phase")}</th>
                        <th scope="col" class="num">{t("site.allocated")}</th>
                        <th scope="col" class="num">{t("site.on_device")}</th>
                    </tr></thead>
                    <tbody>{report.phases.iter().map(phase).collect_view()}</tbody>
                </table>
                <table class="facts">
                    <caption>{t("site.figures")}</caption>
                    <tbody>{facts.collect_view()}</tbody>
                </table>
            </section>
            {(!report.warnings.is_empty()).then(|| view! {
                <section><h2>{t("site.notes")}</h2><ul class="notes">{notes}</ul></section>
            })}
        })
    }
}

fn phase(row: &PhaseRow) -> AnyView {
    let bytes = |b: u64| view! { <td class="num" title=bytes_exact(Bytes(b))>{bytes_human(Bytes(b))}</td> };
    view! {
        <tr class:highest=row.highest>
            <td>{now(&format!("phase.{}", row.id.id()))}</td>
            {bytes(row.allocated_bytes)}
            {bytes(row.peak_bytes)}
        </tr>
    }
    .into_any()
}

fn limit(row: &LimitRow) -> AnyView {
    let stop = row.stopped_by.map_or_else(|| now("limit.model"), |id| now(&format!("term.{}", id.id())));
    view! {
        <tr>
            <td>{now(row.key)}</td>
            <td class="num">{if row.value == 0 { now("limit.none") } else { count(row.value) }}</td>
            <td>{stop}</td>
        </tr>
    }
    .into_any()
}
