//! A config.json of the person's own: dropped, chosen or pasted. It stays in the tab, and stays as given.

use super::field::id_of;
use crate::answer::Session;
use crate::words::{say, t};
use leptos::prelude::*;
use oom_ledger_core::units::{Bytes, Message, Problem};

/// Largest file read into the field: configs are a few kB; more is some other file.
const LARGEST: u64 = 32 * Bytes::MIB;

/// The part of the form.
#[component]
pub fn Config() -> impl IntoView {
    let session = expect_context::<Session>();
    let over = RwSignal::new(false);
    // Unfolds when a config comes by link or file; what a person folds or unfolds by hand stays so.
    let given = Memo::new(move |_| session.form.with(|f| f.config.is_some()));
    let text = move || session.form.with(|f| f.config.clone().unwrap_or_default());
    let put = move |text: String, choice: bool| {
        if choice {
            session.steps.update(|n| *n += 1);
        }
        session.link.set(None);
        session.form.update(|f| f.config = (!text.trim().is_empty()).then_some(text));
    };
    let take = move |file: web_sys::File| {
        let refuse = move |id, name: String| {
            let message = Message::new(id).with("file", name).with("most", Bytes(LARGEST));
            session.link.set(Some(Problem::new("model.config", message)));
        };
        if file.size() > LARGEST as f64 {
            refuse("site.file_too_large", file.name());
            return;
        }
        let promise = file.text();
        leptos::task::spawn_local(async move {
            match wasm_bindgen_futures::JsFuture::from(promise).await.map(|text| text.as_string()) {
                Ok(Some(text)) => put(text, true),
                _ => refuse("site.file_unreadable", file.name()),
            }
        });
    };
    let wrong = move || {
        session.answer.with(|a| a.problems.iter().find(|p: &&Problem| p.field.starts_with("model")).cloned())
    };
    let own_wrong = move || wrong().filter(|_| session.form.with(|f| f.config.is_some()));
    view! {
        <details class="more" prop:open=move || given.get()>
            <summary>{t("input.own_config_summary")}</summary>
            <div
                class="drop"
                class:over=move || over.get()
                data-testid="config-drop"
                on:dragover=move |event| { event.prevent_default(); over.set(true); }
                on:dragleave=move |_| over.set(false)
                on:drop=move |event| {
                    event.prevent_default();
                    over.set(false);
                    if let Some(file) = event.data_transfer().and_then(|d| d.files()).and_then(|f| f.get(0)) {
                        take(file);
                    }
                }
            >
                <div class="field">
                    <label for="field-model-config">{t("input.config_text")}</label>
                    <textarea
                        id="field-model-config"
                        data-testid="config-text"
                        spellcheck="false"
                        autocomplete="off"
                        prop:value=text
                        aria-invalid=move || own_wrong().is_some().then_some("true")
                        on:input=move |event| put(event_target_value(&event), false)
                    ></textarea>
                    {move || own_wrong().map(|p| view! {
                        <p class="wrong" id=format!("{}-wrong", id_of("model.config"))>{move || say(&p.message)}</p>
                    })}
                </div>
                <div class="field">
                    <label for="config-file">{t("input.config_file")}</label>
                    <input
                        type="file"
                        id="config-file"
                        accept=".json,application/json"
                        on:change=move |event| {
                            let input: web_sys::HtmlInputElement = event_target(&event);
                            if let Some(file) = input.files().and_then(|f| f.get(0)) {
                                take(file);
                            }
                        }
                    />
                </div>
                <button type="button" on:click=move |_| put(String::new(), true)>{t("input.config_clear")}</button>
            </div>
        </details>
    }
}
