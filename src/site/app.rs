//! The frame around every page: name, navigation, language, theme.

use crate::address::Address;
use crate::answer::Session;
use crate::pages::PAGES;
use crate::prefs::Prefs;
use crate::words::{now, t};
use leptos::prelude::*;

/// The whole page.
#[component]
pub fn App() -> impl IntoView {
    let prefs = Prefs::start();
    provide_context(prefs);
    let session = Session::start();
    provide_context(session);
    let address = Address::start(session);
    crate::browser::keep_dropped_files_out();
    Effect::new(move || {
        let page = now(crate::pages::page(address.page.get()).name);
        document().set_title(&format!("{page} · OOM Ledger"));
    });
    let links = PAGES
        .iter()
        .map(|page| {
            let here = move || address.page.get() == page.id;
            view! {
                <a href=move || address.of(page.id) aria-current=move || here().then_some("page")>
                    {t(page.name)}
                </a>
            }
        })
        .collect_view();
    view! {
        <a class="skip" href="#answer" on:click=|event| { event.prevent_default(); crate::browser::focus("answer"); }>
            {t("site.skip")}
        </a>
        <header class="mast">
            <a class="name" href=move || address.of(PAGES[0].id)>"OOM Ledger"</a>
            <nav aria-label=t("site.pages")>{links}</nav>
            <div class="switches">
                <button
                    data-testid="lang-toggle"
                    lang=move || if now("site.other_lang") == "English" { "en" } else { "zh-Hans" }
                    on:click=move |_| prefs.turn_lang()
                >
                    {t("site.other_lang")}
                </button>
                <button data-testid="theme-toggle" on:click=move |_| prefs.turn_theme()>
                    {move || format!("{}: {}", now("site.theme"), now(theme_key(prefs)))}
                </button>
            </div>
        </header>
        {move || (crate::pages::page(address.page.get()).view)()}
        <footer class="foot">{t("site.privacy_line")}</footer>
    }
}

fn theme_key(prefs: Prefs) -> &'static str {
    match prefs.theme.get().id() {
        "light" => "theme.light",
        "dark" => "theme.dark",
        _ => "theme.system",
    }
}

/// What the figures are, and what happens to what is given.
pub fn about() -> AnyView {
    const PARTS: &[(&str, &str)] = &[
        ("about.how", "about.how_text"),
        ("about.origin", "about.origin_text"),
        ("about.range", "about.range_text"),
        ("about.engines", "about.engines_text"),
        ("about.privacy", "about.privacy_text"),
    ];
    let parts = PARTS
        .iter()
        .map(|(head, body)| view! { <section><h2>{t(head)}</h2><p>{t(body)}</p></section> })
        .collect_view();
    view! { <main class="prose" id="answer" tabindex="-1"><h1>{t("page.about")}</h1>{parts}</main> }
        .into_any()
}
