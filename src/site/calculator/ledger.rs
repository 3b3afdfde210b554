//! The ledger: term, bytes, range, origin; the working opens under its row.

use super::Shown;
use super::bar::colour;
use super::working::WorkingView;
use crate::prefs::Prefs;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::Symbol;
use oom_ledger_core::share::ReportRow;
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human};
use std::collections::BTreeSet;

/// The table.
#[component]
pub fn LedgerTable() -> impl IntoView {
    let shown = expect_context::<Shown>();
    let prefs = expect_context::<Prefs>();
    // Which rows are open outlives the answer, so that a figure can be watched while an input changes.
    let open = RwSignal::new(BTreeSet::<String>::new());
    view! {
        <section>
            <div class="scroll" tabindex="0" role="region" aria-label=t("site.ledger")>
                <table class="ledger" data-testid="ledger-table">
                    <caption>{t("site.ledger")}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{t("site.term")}</th>
                            <th scope="col" class="num">{t("site.bytes")}</th>
                            <th scope="col" class="num">{t("site.range")}</th>
                            <th scope="col" class="wide">{t("site.residency")}</th>
                            <th scope="col" class="wide">{t("site.origin")}</th>
                        </tr>
                    </thead>
                    <tbody>
                        {move || shown.get().map(|good| {
                            let shown: Vec<_> = good.estimate.terms.iter().filter(|t| t.high > 0).collect();
                            let symbols = |at: usize| shown.get(at).map(|t| t.working.symbols.clone()).unwrap_or_default();
                            let rows = &good.report.rows;
                            rows.iter().enumerate().map(|(at, r)| {
                                let name = r.name(prefs.lang.get(), rows);
                                let first = rows.iter().position(|other| other.id == r.id) == Some(at);
                                row(r.clone(), symbols(at), name, first, open)
                            }).collect_view()
                        })}
                        {move || shown.get().map(|good| {
                            let e = &good.estimate;
                            view! {
                                <tr class="total">
                                    <td>{t("site.peak")}</td>
                                    <td class="num" title=bytes_exact(Bytes(e.peak_bytes))>{bytes_human(Bytes(e.peak_bytes))}</td>
                                    <td class="num">{format!("{} … {}", bytes_human(Bytes(e.peak_low)), bytes_human(Bytes(e.peak_high)))}</td>
                                    <td class="wide"></td>
                                    <td class="wide"></td>
                                </tr>
                            }
                        })}
                    </tbody>
                </table>
            </div>
        </section>
    }
}

/// `first`: no row of this kind stands above it, so that it alone has the plain test id.
fn row(
    row: ReportRow,
    symbols: Vec<Symbol>,
    name: String,
    first: bool,
    open: RwSignal<BTreeSet<String>>,
) -> AnyView {
    // Rows of one kind differ in their phases.
    let key = if first {
        row.id.id().to_owned()
    } else {
        format!("{}-{}", row.id.id(), row.phases.iter().map(|p| p.id()).collect::<Vec<_>>().join("-"))
    };
    let id = row.id;
    let own = StoredValue::new(key.clone());
    let is_open = move || open.with(|o| own.with_value(|key| o.contains(key)));
    let turn = move || {
        open.update(|o| {
            own.with_value(|key| {
                if !o.remove(key) {
                    o.insert(key.clone());
                }
            });
        });
    };
    let origin = format!("provenance.{}", row.provenance.id());
    let residency = format!("residency.{}", row.residency.id());
    let exact = bytes_exact(Bytes(row.bytes));
    let human = bytes_human(Bytes(row.bytes));
    let span = row.range().unwrap_or_else(|| "±0".to_owned());
    view! {
        <tr class="term" data-testid=format!("ledger-row-{key}") on:click=move |_| turn()>
            <td>
                <button
                    type="button"
                    class="open"
                    aria-expanded=move || if is_open() { "true" } else { "false" }
                    aria-controls=format!("working-{key}")
                    on:click=move |event| {
                        event.stop_propagation();
                        turn();
                    }
                >
                    <span class="swatch" style:background=colour(id)></span>
                    {name}
                </button>
            </td>
            <td class="num" title=exact.clone()>{human}</td>
            <td class="num">{span}</td>
            <td class="wide">{move || now(&residency)}</td>
            <td class="wide">{move || now(&origin)}</td>
        </tr>
        {move || is_open().then(|| view! {
            <tr class="working" id=own.with_value(|key| format!("working-{key}")) data-testid=own.with_value(|key| format!("working-{key}"))>
                <td colspan="5">
                    <WorkingView row=row.clone() symbols=symbols.clone()/>
                </td>
            </tr>
        })}
    }
    .into_any()
}
