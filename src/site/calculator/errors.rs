//! The error summary: every problem in the words that stand by its field, with a link to it.

use super::field::id_of;
use crate::answer::Session;
use crate::browser;
use crate::form::FIELDS;
use crate::words::{say, t};
use leptos::prelude::*;
use oom_ledger_core::units::Problem;

/// All problems; nothing where there is none.
#[component]
pub fn Errors() -> impl IntoView {
    let session = expect_context::<Session>();
    let problems = move || {
        let mut all: Vec<Problem> = session.link.get().into_iter().collect();
        session.answer.with(|a| all.extend(a.problems.iter().cloned()));
        all
    };
    move || {
        let all = problems();
        (!all.is_empty()).then(|| {
            let rows = all.into_iter().map(row).collect_view();
            // A link or file that cannot be read leaves the form as it is, and the answer is the form's.
            let older = session.answer.with(|a| !a.problems.is_empty());
            let hint = if older { "site.problems_hint" } else { "site.aside_hint" };
            view! {
                <div class="errors" role="alert" data-testid="error-summary">
                    <h2>{t("site.problems")}</h2>
                    <ul>{rows}</ul>
                    <p class="hint">{t(hint)}</p>
                </div>
            }
        })
    }
}

fn row(problem: Problem) -> AnyView {
    let target = if problem.field.starts_with("model.config") || problem.field.starts_with("model.overrides")
    {
        Some("field-model-config".to_owned())
    } else {
        FIELDS.iter().any(|(path, _)| *path == problem.field).then(|| id_of(&problem.field))
    };
    match target {
        None => view! { <li>{move || say(&problem.message)}</li> }.into_any(),
        Some(id) => {
            let href = format!("#{id}");
            view! {
                <li>
                    <a
                        href=href
                        on:click=move |event| {
                            event.prevent_default();
                            event.stop_propagation();
                            browser::focus(&id);
                        }
                    >
                        {move || say(&problem.message)}
                    </a>
                </li>
            }
            .into_any()
        }
    }
}
