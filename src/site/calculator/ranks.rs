//! Every rank, where there is more than one, and what the process keeps in host memory.

use super::Shown;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::RankShare;
use oom_ledger_core::share::ReportRow;
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human};

/// The two tables; nothing where there is one device and no host memory is counted.
#[component]
pub fn Ranks() -> impl IntoView {
    let shown = expect_context::<Shown>();
    view! {
        {move || {
            let good = shown.get()?;
            let ranks = &good.report.ranks;
            (!ranks.is_empty()).then(|| {
                let most = ranks.iter().map(|r| r.peak_bytes).max().unwrap_or(1).max(1);
                let rows = ranks.iter().map(|r| rank(r, most)).collect_view();
                view! {
                    <section class="ranks" data-testid="ranks">
                        <h2>{t("report.ranks")}</h2>
                        <div class="scroll" tabindex="0" role="region" aria-label=t("report.ranks")>
                            <table>
                                <thead>
                                    <tr>
                                        <th scope="col">{t("report.rank")}</th>
                                        <th scope="col" class="num">{t("report.stage")}</th>
                                        <th scope="col" class="num">{t("term.weights")}</th>
                                        <th scope="col" class="num">{t("report.kv")}</th>
                                        <th scope="col" class="num">{t("report.peak")}</th>
                                        <th scope="col"><span class="visually-hidden">{t("report.share")}</span></th>
                                    </tr>
                                </thead>
                                <tbody>{rows}</tbody>
                            </table>
                        </div>
                    </section>
                }
            })
        }}
        {move || {
            let good = shown.get()?;
            let host = good.report.host.clone();
            (!host.is_empty()).then(|| view! {
                <section class="host" data-testid="host">
                    <h2>{t("report.host")}</h2>
                    <div class="scroll" tabindex="0" role="region" aria-label=t("report.host")>
                        <table>
                            <tbody>{host.iter().map(host_row).collect_view()}</tbody>
                        </table>
                    </div>
                </section>
            })
        }}
    }
}

fn rank(r: &RankShare, most: u64) -> impl IntoView + use<> {
    let name = match r.count {
        0 | 1 => r.first.to_string(),
        n => format!("{}–{}", r.first, r.first.saturating_add(n - 1)),
    };
    let figure = |bytes: u64| {
        view! { <td class="num" title=bytes_exact(Bytes(bytes))>{bytes_human(Bytes(bytes))}</td> }
    };
    let share = r.peak_bytes as f64 / most as f64 * 100.0;
    let fullest = r.fullest;
    view! {
        <tr class:fullest=fullest>
            <th scope="row">{name}</th>
            <td class="num">{r.stage}</td>
            {figure(r.weights_bytes)}
            {figure(r.kv_bytes)}
            {figure(r.peak_bytes)}
            <td class="share">
                <span class="fill" style:width=format!("{share:.1}%")></span>
                {fullest.then(|| view! { <span class="note">{t("report.fullest")}</span> })}
            </td>
        </tr>
    }
}

fn host_row(row: &ReportRow) -> impl IntoView + use<> {
    let name = format!("term.{}", row.id.id());
    view! {
        <tr>
            <th scope="row">{move || now(&name)}</th>
            <td class="num" title=bytes_exact(Bytes(row.bytes))>{bytes_human(Bytes(row.bytes))}</td>
            <td class="num">{row.range().unwrap_or_else(|| "±0".to_owned())}</td>
            <td>{row.working.to_string()}</td>
        </tr>
    }
}
