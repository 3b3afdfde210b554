//! One labelled field, bound to the form by its path.

use crate::answer::Session;
use crate::words::{say, t};
use leptos::prelude::*;

/// The id of the input for a path, so that an error can link to it.
pub fn id_of(path: &str) -> String {
    format!("field-{}", path.replace('.', "-"))
}

/// The sentence under a field that cannot be used.
#[component]
pub fn Wrong(path: &'static str) -> impl IntoView {
    let session = expect_context::<Session>();
    move || {
        session.wrong(path).map(|problem| {
            view! { <p class="wrong" id=format!("{}-wrong", id_of(path))>{move || say(&problem.message)}</p> }
        })
    }
}

/// A field that is typed.
#[component]
pub fn Typed(
    /// Path in the Scenario document.
    path: &'static str,
    /// Key of the label.
    label: &'static str,
    /// The engine's own name of the option.
    #[prop(optional)]
    flag: &'static str,
    /// What applies when nothing is typed.
    #[prop(optional)]
    default: &'static str,
    /// Test id.
    #[prop(optional)]
    testid: &'static str,
) -> impl IntoView {
    let session = expect_context::<Session>();
    let id = id_of(path);
    let described = format!("{id}-wrong");
    let testid = (!testid.is_empty()).then_some(testid);
    view! {
        <div class="field">
            <label for=id.clone()>
                {t(label)} {(!flag.is_empty()).then(|| view! { " " <span class="flag">{flag}</span> })}
            </label>
            <input
                type="text"
                class="figure"
                id=id
                data-testid=testid
                autocomplete="off"
                spellcheck="false"
                placeholder=default
                prop:value=move || session.form.with(|f| f.get(path).to_owned())
                aria-invalid=move || session.wrong(path).is_some().then_some("true")
                aria-describedby=move || session.wrong(path).is_some().then(|| described.clone())
                on:input=move |event| session.set(path, &event_target_value(&event), false)
            />
            <Wrong path/>
        </div>
    }
}

/// A field that is chosen: value and what is shown for it.
#[component]
pub fn Choice(
    /// Path in the Scenario document.
    path: &'static str,
    /// Key of the label.
    label: &'static str,
    /// The engine's own name of the option.
    #[prop(optional)]
    flag: &'static str,
    /// Values with what is shown; a name that is a text key is put into words.
    options: Vec<(String, String)>,
    /// The value that stands for "nothing chosen".
    #[prop(optional)]
    unset: &'static str,
) -> impl IntoView {
    let session = expect_context::<Session>();
    let id = id_of(path);
    let current = Memo::new(move |_| {
        session.form.with(|f| if f.get(path).is_empty() { unset.to_owned() } else { f.get(path).to_owned() })
    });
    let items = options
        .into_iter()
        .map(|(value, name)| {
            let own = value.clone();
            view! {
                <option value=value selected=move || current.get() == own>{move || crate::words::now(&name)}</option>
            }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for=id.clone()>
                {t(label)} {(!flag.is_empty()).then(|| view! { " " <span class="flag">{flag}</span> })}
            </label>
            <select
                id=id
                prop:value=move || current.get()
                on:change=move |event| session.set(path, &event_target_value(&event), true)
            >
                {items}
            </select>
            <Wrong path/>
        </div>
    }
}

/// A tick box.
#[component]
pub fn Flag(
    /// Path in the Scenario document.
    path: &'static str,
    /// Key of the label.
    label: &'static str,
    /// The engine's own name of the option.
    #[prop(optional)]
    flag: &'static str,
) -> impl IntoView {
    let session = expect_context::<Session>();
    let id = id_of(path);
    view! {
        <div class="check">
            <input
                type="checkbox"
                id=id.clone()
                prop:checked=move || session.form.with(|f| f.get(path) == "true")
                on:change=move |event| {
                    session.set(path, if event_target_checked(&event) { "true" } else { "false" }, true);
                }
            />
            <label for=id>{t(label)} " " <span class="flag">{flag}</span></label>
        </div>
    }
}
