//! What could be changed: every lever of the job, the bytes it frees, what it costs; one click applies it.

use super::Shown;
use crate::answer::Session;
use crate::prefs::Prefs;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::memory::Verdict;
use oom_ledger_core::plan::{Suggestion, Suggestions};
use oom_ledger_core::share::{AdviceRow, advice_lines, advice_rows};
use serde_json::Value;

/// The section; nothing where the job fits with its whole range.
#[component]
pub fn Advice() -> impl IntoView {
    let shown = expect_context::<Shown>();
    let prefs = expect_context::<Prefs>();
    let found = Memo::new(move |_| {
        let good = shown.get()?;
        if good.estimate.verdict == Verdict::Fits {
            return None;
        }
        good.resolved.suggestions()
    });
    view! {
        {move || {
            let suggestions = found.get().filter(|s| s.missing_bytes > 0 || !s.levers.is_empty())?;
            Some(section(prefs, &suggestions))
        }}
    }
}

fn section(prefs: Prefs, suggestions: &Suggestions) -> AnyView {
    let lang = prefs.lang.get();
    let title = if suggestions.missing_bytes > 0 || suggestions.option_stops {
        "lever.title"
    } else {
        "lever.title_tight"
    };
    let lines =
        advice_lines(lang, suggestions).into_iter().map(|line| view! { <p>{line}</p> }).collect_view();
    let rows = advice_rows(lang, suggestions);
    let rows = suggestions.levers.iter().cloned().zip(rows).map(|(s, words)| row(s, words)).collect_view();
    view! {
        <section class="advice" data-testid="advice">
            <h2>{t(title)}</h2>
            {lines}
            <div class="scroll" tabindex="0" role="region" aria-label=t(title)>
                <table class="levers">
                    <thead>
                        <tr>
                            <th scope="col">{t("lever.what")}</th>
                            <th scope="col" class="num">{t("lever.frees")}</th>
                            <th scope="col">{t("lever.after")}</th>
                            <th scope="col"><span class="visually-hidden">{t("lever.apply")}</span></th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
    .into_any()
}

fn row(suggestion: Suggestion, words: AdviceRow) -> impl IntoView {
    let session = expect_context::<Session>();
    let label = words.setting.clone();
    let id = suggestion.id;
    // What frees nothing is told, not offered.
    let button = suggestion.no_effect.is_none().then(|| {
        view! {
            <button type="button" aria-label=move || format!("{}: {label}", now("lever.apply")) on:click=move |_| apply(session, &suggestion)>
                {t("lever.apply")}
            </button>
        }
    });
    view! {
        <tr class:enough=words.enough data-testid=format!("lever-{id}")>
            <td>
                <span class="lever-name">{words.what}</span>
                <code>{words.setting}</code>
                <span class="lever-cost">{words.cost}</span>
            </td>
            <td class="num">{words.frees}</td>
            <td>{words.after}</td>
            <td>{button}</td>
        </tr>
    }
}

/// Puts the changes into the form, as one step of history.
fn apply(session: Session, suggestion: &Suggestion) {
    for (index, (path, value)) in suggestion.set.iter().enumerate() {
        let typed = match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        // A typed size beside a preset would keep the old size.
        if *path == "device.preset" {
            session.set("device.total_bytes", "", false);
        }
        session.set(path, &typed, index == 0);
    }
}
