//! The answer in one sentence.

use super::Shown;
use crate::words::say;
use leptos::prelude::*;

/// The sentence, and the engine's refusal if there is one.
#[component]
pub fn VerdictLine() -> impl IntoView {
    let shown = expect_context::<Shown>();
    view! {
        <section aria-live="polite">
            {move || {
                let good = shown.get()?;
                let sentence = say(&good.report.sentence);
                // The verdict itself stands before the first colon, in either language.
                let colon = sentence.find([':', '：']).unwrap_or(0);
                let (verdict, rest) = sentence.split_at(colon);
                let refusal = good.report.refusal.as_ref().map(|r| view! { <p class="refusal">{say(r)}</p> });
                Some(view! {
                    <p class=format!("verdict-line {}", good.report.verdict.id()) data-testid="verdict">
                        <strong>{verdict.to_owned()}</strong> {rest.to_owned()}
                    </p>
                    {refusal}
                })
            }}
        </section>
    }
}
