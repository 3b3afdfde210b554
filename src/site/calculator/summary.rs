//! Phases, limits, KV figures and notes.

use super::Shown;
use crate::words::{now, say, t};
use leptos::prelude::*;
use oom_ledger_core::plan::Limits;
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human, count};

/// Everything that follows the ledger in words and small tables.
#[component]
pub fn Summary() -> impl IntoView {
    let shown = expect_context::<Shown>();
    move || {
        let good = shown.get()?;
        let e = &good.estimate;
        let phases = e
            .phases
            .iter()
            .map(|p| {
                let name = format!("phase.{}", p.id.id());
                view! {
                    <tr>
                        <td>{now(&name)}</td>
                        <td class="num" title=bytes_exact(Bytes(p.allocated_bytes))>{bytes_human(Bytes(p.allocated_bytes))}</td>
                        <td class="num" title=bytes_exact(Bytes(p.peak_bytes))>{bytes_human(Bytes(p.peak_bytes))}</td>
                    </tr>
                }
            })
            .collect_view();
        let notes = e.warnings.iter().map(|m| view! { <li>{say(m)}</li> }).collect_view();
        let any_notes = !e.warnings.is_empty();
        Some(view! {
            <section class="columns">
                <table>
                    <caption>{t("site.limits")}</caption>
                    <thead><tr>
                        <th scope="col">{t("site.limit")}</th>
                        <th scope="col" class="num">{t("site.largest")}</th>
                        <th scope="col">{t("site.stopped_by")}</th>
                    </tr></thead>
                    <tbody>{limits(&e.limits)}</tbody>
                </table>
                <table>
                    <caption>{t("site.phases")}</caption>
                    <thead><tr>
                        <th scope="col">{t("site.phase")}</th>
                        <th scope="col" class="num">{t("site.allocated")}</th>
                        <th scope="col" class="num">{t("site.on_device")}</th>
                    </tr></thead>
                    <tbody>{phases}</tbody>
                </table>
                {e.kv.as_ref().map(|kv| view! {
                    <table>
                        <caption>{t("site.kv")}</caption>
                        <tbody>
                            {figure("kv.bytes_per_token", bytes_exact(Bytes(kv.bytes_per_token.round() as u64)))}
                            {(kv.blocks > 0).then(|| figure("kv.block", format!("{} × {}", count(kv.block_tokens), bytes_human(Bytes(kv.block_bytes)))))}
                            {(kv.blocks > 0).then(|| figure("kv.blocks", count(kv.blocks)))}
                            {(kv.tokens > 0).then(|| figure("kv.tokens", count(kv.tokens)))}
                            {(kv.token_line > 0).then(|| figure("kv.token_line", count(kv.token_line)))}
                            {(kv.max_concurrency > 0.0).then(|| figure("kv.max_concurrency", format!("{:.2}×", kv.max_concurrency)))}
                        </tbody>
                    </table>
                })}
            </section>
            {any_notes.then(|| view! {
                <section><h2>{t("site.notes")}</h2><ul class="notes">{notes}</ul></section>
            })}
        })
    }
}

fn figure(key: &'static str, value: String) -> AnyView {
    view! { <tr><th scope="row">{now(key)}</th><td class="num">{value}</td></tr> }.into_any()
}

fn limits(limits: &Limits) -> Vec<AnyView> {
    let rows = [
        ("max_model_len", "limit.max_model_len", limits.max_model_len),
        ("max_sequences", "limit.max_sequences", limits.max_sequences),
        ("max_new_tokens", "limit.max_new_tokens", limits.max_new_tokens),
        ("max_micro_batch", "limit.max_micro_batch", limits.max_micro_batch),
    ];
    rows.into_iter()
        .filter_map(|(field, key, value)| {
            let stop = limits
                .stopped_by
                .iter()
                .find(|(f, _)| *f == field)
                .map(|(_, term)| format!("term.{}", term.id()));
            value.map(|v| {
                view! {
                    <tr>
                        <td>{now(key)}</td>
                        <td class="num">{if v == 0 { now("limit.none") } else { count(v) }}</td>
                        <td>{stop.map_or_else(|| now("limit.model"), |s| now(&s))}</td>
                    </tr>
                }
                .into_any()
            })
        })
        .collect()
}
