//! The three charts: memory against tokens, against sequences, and the plane of both.

mod canvas;
mod plane;
mod stacked;

use crate::words::t;
use leptos::prelude::*;
use oom_ledger_core::plan::Axis;

/// All charts.
#[component]
pub fn Charts() -> impl IntoView {
    view! {
        <section class="charts">
            <stacked::Stacked axis=Axis::Tokens title="site.chart_tokens" testid="chart-tokens"/>
            <stacked::Stacked axis=Axis::Sequences title="site.chart_batch" testid="chart-batch"/>
            <plane::PlaneChart/>
            <p class="hint">{t("site.chart_keys")}</p>
        </section>
    }
}
