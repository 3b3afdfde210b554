//! Charts come with core's `plot`.

use leptos::prelude::*;

/// All charts.
#[component]
pub fn Charts() -> impl IntoView {
    view! { <section class="charts"></section> }
}
