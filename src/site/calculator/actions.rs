//! Copy as Markdown, copy the address, save the Scenario.

use super::Shown;
use crate::browser;
use crate::prefs::Prefs;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::Verdict;
use oom_ledger_core::share::markdown;
use oom_ledger_core::text::message;

/// The buttons, and what came of them.
#[component]
pub fn Actions() -> impl IntoView {
    let shown = expect_context::<Shown>();
    let prefs = expect_context::<Prefs>();
    let said = RwSignal::new(String::new());
    // Where there is no clipboard the text is shown, selected, to be copied by hand.
    let by_hand = RwSignal::new(None::<String>);
    let copy = move |text: String| {
        let kept = text.clone();
        browser::copy(&text, move |ok| {
            said.set((if ok { "site.copied" } else { "site.copy_by_hand" }).to_owned());
            by_hand.set((!ok).then(|| kept.clone()));
        });
    };
    // A config can be too large for any address; the answer can still be copied without one.
    let link = move || {
        let link = shown.get()?.scenario.permalink();
        let address = browser::address();
        let base = address.split('#').next().unwrap_or_default();
        Some(link.map(|link| format!("{base}#calculator/{link}")))
    };
    view! {
        <div class="actions">
            <button type="button" data-testid="copy-markdown" on:click=move |_| {
                if let (Some(good), Some(link)) = (shown.get(), link()) {
                    let link = link.ok();
                    // What could be changed belongs into an incident, where the answer is not a plain "fits".
                    let mut report = good.report.clone();
                    if report.verdict != Verdict::Fits {
                        report = report.with_suggestions(&good.resolved);
                    }
                    copy(markdown(prefs.lang.get_untracked(), &good.scenario, &report, link.as_deref()));
                }
            }>{t("site.copy_markdown")}</button>
            <button type="button" data-testid="copy-link" on:click=move |_| {
                match link() {
                    Some(Ok(link)) => copy(link),
                    Some(Err(problem)) => said.set(message(prefs.lang.get_untracked(), &problem.message)),
                    None => {}
                }
            }>{t("site.copy_link")}</button>
            <button type="button" data-testid="copy-scenario" on:click=move |_| {
                if let Some(good) = shown.get() {
                    copy(serde_json::to_string_pretty(&good.scenario).unwrap_or_default());
                }
            }>{t("site.copy_scenario")}</button>
            <span role="status">{move || now(&said.get())}</span>
            {move || by_hand.get().map(|text| view! {
                <textarea readonly aria-label=t("site.copy_by_hand") prop:value=text></textarea>
            })}
        </div>
    }
}
