//! The answer in one sentence.

use super::Shown;
use crate::report;
use crate::words::{now, say};
use leptos::prelude::*;

/// The sentence, the refusal if there is one, and what was asked.
#[component]
pub fn VerdictLine() -> impl IntoView {
    let shown = expect_context::<Shown>();
    move || {
        let good = shown.get()?;
        let verdict = good.estimate.verdict.id();
        let sentence = say(&report::sentence(&good.estimate));
        let refusal = good.estimate.refusal.clone();
        Some(view! {
            <section aria-live="polite">
                <p class=format!("verdict-line {verdict}") data-testid="verdict">
                    <strong>{now(verdict_key(verdict))}</strong> " " {sentence}
                </p>
                {refusal.map(|r| view! { <p class="refusal">{say(&r)}</p> })}
                <p class="what">{report::question(&good.scenario, &good.resolved)}</p>
            </section>
        })
    }
}

fn verdict_key(id: &str) -> &'static str {
    match id {
        "fits" => "site.fits",
        "tight" => "site.tight",
        _ => "site.does_not_fit",
    }
}
