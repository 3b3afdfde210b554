//! A working: the formula, the same with the person's numbers, every symbol, and the lines of a sum.

use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::Symbol;
use oom_ledger_core::share::ReportRow;
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human};

/// The working of a row.
#[component]
pub fn WorkingView(
    /// The row.
    row: ReportRow,
    /// The symbols of its formula.
    symbols: Vec<Symbol>,
) -> impl IntoView {
    let working = row.working;
    let symbols = symbols
        .into_iter()
        .map(|s| view! { <dt>{s.name}</dt><dd>{s.value.to_string()} " " {s.unit}</dd> })
        .collect_view();
    let phases: Vec<String> = row.phases.iter().map(|p| format!("phase.{}", p.id())).collect();
    let any_parts = !row.parts.is_empty();
    let parts = row
        .parts
        .into_iter()
        .map(|part| {
            view! {
                <tr>
                    <td>{move || now(&part.label)}</td>
                    <td>{part.detail}</td>
                    <td class="num" title=bytes_exact(Bytes(part.bytes))>{bytes_human(Bytes(part.bytes))}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <p class="formula">{working.formula}</p>
        {working.substituted.map(|line| view! { <p class="formula">"= " {line}</p> })}
        <p class="formula">"= " <strong>{working.result}</strong></p>
        <dl>
            {symbols}
            <dt>{t("site.alive")}</dt>
            <dd>{move || phases.iter().map(|p| now(p)).collect::<Vec<_>>().join(", ")}</dd>
            {(!row.source.is_empty()).then(|| view! { <dt>{t("site.source")}</dt><dd>{row.source}</dd> })}
        </dl>
        {any_parts.then(|| view! {
            <div class="parts" tabindex="0" role="region" aria-label=t("site.parts")>
                <table>
                    <thead><tr>
                        <th scope="col">{t("site.part")}</th>
                        <th scope="col">{t("site.detail")}</th>
                        <th scope="col" class="num">{t("site.bytes")}</th>
                    </tr></thead>
                    <tbody>{parts}</tbody>
                </table>
            </div>
        })}
    }
}
