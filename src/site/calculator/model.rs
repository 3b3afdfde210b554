//! Model search: a combobox over the shipped models, by keys or pointer (ARIA authoring practices).

use super::field::{Wrong, id_of};
use crate::answer::Session;
use crate::browser;
use crate::words::{now, t};
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use oom_ledger_core::model::{PRESETS, Preset, preset};
use oom_ledger_core::units::count;

const PATH: &str = "model.preset";

/// Presets whose name or id holds every word typed.
fn matching(typed: &str) -> Vec<&'static Preset> {
    let words: Vec<String> = typed.to_lowercase().split_whitespace().map(str::to_owned).collect();
    PRESETS
        .iter()
        .filter(|p| {
            let hay = format!("{} {}", p.id, p.name.to_lowercase());
            words.iter().all(|w| hay.contains(w.as_str()))
        })
        .collect()
}

fn shown_name(id: &str) -> String {
    preset(id).map_or_else(|| id.to_owned(), |p| p.name.to_owned())
}

/// The search.
#[component]
pub fn ModelSearch() -> impl IntoView {
    let session = expect_context::<Session>();
    let opened = RwSignal::new(false);
    // What is being typed; none: the chosen model's name stands there, and the list shows all.
    let typing = RwSignal::new(None::<String>);
    let active = RwSignal::new(0_usize);
    let hits = Memo::new(move |_| {
        let matches = || typing.with(|t| matching(t.as_deref().unwrap_or_default()));
        opened.get().then(|| matches().iter().map(|p| p.id).collect::<Vec<_>>())
    });
    let open = move || opened.get();
    let close = move || {
        typing.set(None);
        opened.set(false);
    };
    // The whole list, standing on the model in use.
    let unfold = move || {
        if !opened.get_untracked() {
            let own = session.form.with_untracked(|f| PRESETS.iter().position(|p| p.id == f.get(PATH)));
            active.set(own.unwrap_or(0));
            opened.set(true);
        }
    };
    Effect::new(move || {
        if hits.with(|h| h.as_ref().is_some_and(|h| !h.is_empty())) {
            let id = format!("model-option-{}", active.get());
            // Once the list is laid out: it opens in the same frame.
            request_animation_frame(move || browser::show(&id));
        }
    });
    let choose = move |id: &'static str| {
        close();
        session.form.update(|f| f.take_config(None));
        session.set(PATH, id, true);
    };
    let keys = move |event: KeyboardEvent| {
        let n = hits.with(|h| h.as_ref().map_or(0, Vec::len));
        match event.key().as_str() {
            "ArrowDown" if !open() => unfold(),
            "ArrowDown" if n > 0 => active.update(|a| *a = (*a + 1) % n),
            "ArrowUp" if n > 0 => active.update(|a| *a = (*a + n - 1) % n),
            "Home" if open() => active.set(0),
            "End" if open() && n > 0 => active.set(n - 1),
            "Enter" => {
                if let Some(id) =
                    hits.with(|h| h.as_ref().and_then(|h| h.get(active.get_untracked()).copied()))
                {
                    choose(id);
                }
            }
            "Escape" => close(),
            _ => return,
        }
        if event.key() != "Tab" {
            event.prevent_default();
        }
    };
    let select_all =
        |event: leptos::ev::FocusEvent| event_target::<web_sys::HtmlInputElement>(&event).select();
    let shown = move || {
        typing.get().unwrap_or_else(|| {
            session
                .form
                .with(|f| if f.config.is_some() { now("input.own_config") } else { shown_name(f.get(PATH)) })
        })
    };
    view! {
        <div class="field combo">
            <label for=id_of(PATH)>{t("input.model_search")}</label>
            <input
                type="text"
                role="combobox"
                id=id_of(PATH)
                data-testid="model-search"
                autocomplete="off"
                spellcheck="false"
                aria-autocomplete="list"
                aria-expanded=move || if open() { "true" } else { "false" }
                aria-controls="model-options"
                aria-activedescendant=move || {
                    let any = hits.with(|h| h.as_ref().is_some_and(|h| !h.is_empty()));
                    any.then(|| format!("model-option-{}", active.get()))
                }
                prop:value=shown
                on:input=move |event| {
                    active.set(0);
                    typing.set(Some(event_target_value(&event)));
                    opened.set(true);
                }
                on:keydown=keys
                on:focus=select_all
                on:click=move |_| unfold()
                on:blur=move |_| close()
            />
            <ul id="model-options" role="listbox" aria-label=t("input.model_search") hidden=move || !open()>
                {move || {
                    hits.get().map(|ids| {
                        if ids.is_empty() {
                            return view! { <li role="option" aria-selected="false"><span>{t("input.no_model")}</span></li> }
                                .into_any();
                        }
                        ids.into_iter()
                            .enumerate()
                            .map(|(i, id)| option(i, id, active, choose))
                            .collect_view()
                            .into_any()
                    })
                }}
            </ul>
            <Wrong path=PATH/>
        </div>
    }
}

fn option(
    i: usize,
    id: &'static str,
    active: RwSignal<usize>,
    choose: impl Fn(&'static str) + Copy + 'static,
) -> AnyView {
    let row = preset(id);
    let parameters = row.map_or(0, |p| p.parameters);
    view! {
        <li
            role="option"
            id=format!("model-option-{i}")
            data-testid="model-option"
            aria-selected=move || if active.get() == i { "true" } else { "false" }
            // Before the field loses the focus, which would close the list.
            on:mousedown=move |event| {
                event.prevent_default();
                choose(id);
            }
        >
            <span>{shown_name(id)}</span>
            <span>{count(parameters)}</span>
        </li>
    }
    .into_any()
}
