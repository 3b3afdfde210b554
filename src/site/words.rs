//! Texts in the person's language.

use crate::prefs::Prefs;
use leptos::prelude::*;
use oom_ledger_core::text;
use oom_ledger_core::units::Message;

/// The text of `key`, following the language.
pub fn t(key: &'static str) -> impl Fn() -> &'static str + Copy + Send + Sync + 'static {
    let prefs = expect_context::<Prefs>();
    move || text::text(prefs.lang.get(), key)
}

/// The text of `key` now; tracks the language.
pub fn now(key: &str) -> String {
    text::text(expect_context::<Prefs>().lang.get(), key).to_owned()
}

/// A message now; tracks the language.
pub fn say(message: &Message) -> String {
    text::message(expect_context::<Prefs>().lang.get(), message)
}
