//! What a person chose for the looks: language and theme, kept in this browser.

use crate::browser;
use leptos::prelude::*;
use oom_ledger_core::text::Lang;

/// Light, dark, or as the system has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// As the system has it.
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// Value of `data-theme`, and the end of its text key.
    pub const fn id(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    const fn next(self) -> Theme {
        match self {
            Theme::System => Theme::Light,
            Theme::Light => Theme::Dark,
            Theme::Dark => Theme::System,
        }
    }
}

/// The choices, as signals.
#[derive(Clone, Copy)]
pub struct Prefs {
    /// Language of every text.
    pub lang: RwSignal<Lang>,
    /// Theme as chosen.
    pub theme: RwSignal<Theme>,
    /// Whether the page is dark now, the system's wish included.
    pub dark: Memo<bool>,
}

impl Prefs {
    /// Reads what was kept, and keeps what is chosen from now on.
    pub fn start() -> Prefs {
        let lang = RwSignal::new(match browser::kept("lang").as_deref() {
            Some("zh") => Lang::Zh,
            Some("en") => Lang::En,
            _ if browser::prefers_chinese() => Lang::Zh,
            _ => Lang::En,
        });
        let theme = RwSignal::new(match browser::kept("theme").as_deref() {
            Some("light") => Theme::Light,
            Some("dark") => Theme::Dark,
            _ => Theme::System,
        });
        let system_dark = browser::system_dark();
        let dark = Memo::new(move |_| match theme.get() {
            Theme::System => system_dark.get(),
            Theme::Light => false,
            Theme::Dark => true,
        });
        // Set at once, so that what is drawn first is drawn in the right colours.
        browser::set_root("data-theme", theme.get_untracked().id());
        Effect::new(move || browser::set_root("lang", lang_tag(lang.get())));
        Prefs { lang, theme, dark }
    }

    /// The other language.
    pub fn turn_lang(self) {
        self.lang.update(|lang| {
            *lang = match lang {
                Lang::En => Lang::Zh,
                Lang::Zh => Lang::En,
            };
            browser::keep("lang", if *lang == Lang::Zh { "zh" } else { "en" });
        });
    }

    /// System, light, dark, and again.
    pub fn turn_theme(self) {
        let next = self.theme.get_untracked().next();
        browser::set_root("data-theme", next.id());
        browser::keep("theme", next.id());
        self.theme.set(next);
    }
}

const fn lang_tag(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh-Hans",
    }
}
