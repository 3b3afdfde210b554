//! What the browser tests share: a server for `dist/`, a chromedriver, a Chromium, and the checks that
//! hold for every page whatever a test does on it (no error on the console, no request elsewhere).

mod axe;
mod browser;
mod page;
mod watch;

pub use axe::violations;
pub use browser::{Browser, View, with_page};
pub use page::Page;

/// What a step of a test comes to.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An error that says `text`.
pub fn problem(text: impl Into<String>) -> Box<dyn std::error::Error + Send + Sync> {
    text.into().into()
}
