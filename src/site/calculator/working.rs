//! A working: the formula, the same with the person's numbers, every symbol, and the lines of a sum.

use crate::report;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::Term;
use oom_ledger_core::text;
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human};

/// The working of a term.
#[component]
pub fn WorkingView(term: Term) -> impl IntoView {
    let working = &term.working;
    let lines =
        report::formula_lines(working).into_iter().map(|line| view! { <p class="formula">{line}</p> });
    let symbols = working
        .symbols
        .iter()
        .map(|s| view! { <dt>{s.name}</dt><dd>{s.value.to_string()} " " {s.unit}</dd> })
        .collect_view();
    let phases: Vec<String> = term.phases.iter().map(|p| format!("phase.{}", p.id())).collect();
    let parts = working
        .parts
        .iter()
        .map(|part| {
            let label = part.label.to_string();
            view! {
                <tr>
                    <td>{move || if text::has(&label) { now(&label) } else { label.clone() }}</td>
                    <td>{part.detail.clone()}</td>
                    <td class="num" title=bytes_exact(Bytes(part.bytes))>{bytes_human(Bytes(part.bytes))}</td>
                </tr>
            }
        })
        .collect_view();
    let any_parts = !working.parts.is_empty();
    view! {
        {lines.collect_view()}
        <dl>{symbols}<dt>{t("site.alive")}</dt>
            <dd>{move || phases.iter().map(|p| now(p)).collect::<Vec<_>>().join(", ")}</dd></dl>
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
