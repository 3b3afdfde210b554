//! Every page of the site. Adding one: a row here, a function that draws it, its texts.

use leptos::prelude::*;

/// One page.
pub struct Page {
    /// First part of the address's fragment.
    pub id: &'static str,
    /// Key of its name.
    pub name: &'static str,
    /// Draws it.
    pub view: fn() -> AnyView,
}

/// In the order of the navigation; the first is where people arrive.
pub const PAGES: &[Page] = &[
    Page { id: "calculator", name: "page.calculator", view: crate::calculator::view },
    Page { id: "about", name: "page.about", view: crate::app::about },
];

/// The page of that id, or the first.
pub fn page(id: &str) -> &'static Page {
    PAGES.iter().find(|page| page.id == id).unwrap_or(&PAGES[0])
}
