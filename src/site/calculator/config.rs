//! A config.json of the person's own, and the checkpoint that it belongs to: dropped, chosen or pasted. They stay
//! in the tab, and the config stays as given.

use super::checkpoint::take;
use super::field::id_of;
use crate::answer::Session;
use crate::words::{say, t};
use leptos::prelude::*;
use oom_ledger_core::model::checkpoint::Summary;
use oom_ledger_core::units::{Bytes, Message, Problem};

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
        session.form.update(|f| f.take_config(Some(text)));
    };
    // The checkpoint in use, in a line.
    let used = move || {
        let file = session.form.with(|f| f.file.clone())?;
        let file = Summary::from_json(&file).ok()?;
        let kind = file.kind.clone().unwrap_or_else(|| file.format.id().to_owned());
        let tensors: u64 = file.rows.iter().map(oom_ledger_core::model::checkpoint::Row::count).sum();
        let message = Message::new("input.weights_file").with("kind", kind).with("count", tensors);
        Some(message.with("bytes", Bytes(file.bytes().ok()?)))
    };
    let take = move |list: Option<web_sys::FileList>| {
        let files = list.map(|list| (0..list.length()).filter_map(|i| list.get(i)).collect());
        leptos::task::spawn_local(take(session, files.unwrap_or_default()));
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
                    take(event.data_transfer().and_then(|d| d.files()));
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
                        accept=".json,.gguf,.safetensors,application/json"
                        multiple=true
                        aria-describedby="config-file-hint"
                        on:change=move |event| {
                            let input: web_sys::HtmlInputElement = event_target(&event);
                            take(input.files());
                        }
                    />
                    <p class="hint" id="config-file-hint">{t("input.config_file_hint")}</p>
                    {move || used().map(|message| view! {
                        <p class="hint" data-testid="weights-file">{move || say(&message)}</p>
                    })}
                    {move || session.notes.get().into_iter().map(|note| view! {
                        <p class="hint" data-testid="file-note">{move || say(&note)}</p>
                    }).collect_view()}
                </div>
                <button type="button" on:click=move |_| put(String::new(), true)>{t("input.config_clear")}</button>
            </div>
        </details>
    }
}
