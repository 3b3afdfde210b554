//! The three charts: memory against tokens, against sequences, and the plane of both.

mod canvas;
mod plane;
mod stacked;

use crate::answer::Session;
use crate::words::t;
use leptos::prelude::*;
use oom_ledger_core::plan::Axis;

/// All charts.
#[component]
pub fn Charts() -> impl IntoView {
    let session = expect_context::<Session>();
    // The charts of the job that is shown; each kind is drawn anew when the job changes.
    let training = Memo::new(move |_| {
        session.answer.with(|a| a.good.as_ref().is_some_and(|good| good.resolved.train.is_some()))
    });
    move || if training.get() { of_training().into_any() } else { of_serving().into_any() }
}

fn of_training() -> impl IntoView {
    view! {
        <section class="charts">
            <stacked::Stacked axis=Axis::Tokens x="site.tokens" title="site.chart_seq_len" testid="chart-tokens"/>
            <stacked::Stacked axis=Axis::Sequences x="train.micro_batch" title="site.chart_micro_batch" testid="chart-batch"/>
            <p class="hint">{t("site.chart_keys")}</p>
        </section>
    }
}

fn of_serving() -> impl IntoView {
    view! {
        <section class="charts">
            <stacked::Stacked axis=Axis::Tokens x="site.tokens" title="site.chart_tokens" testid="chart-tokens"/>
            <stacked::Stacked axis=Axis::Sequences x="site.sequences" title="site.chart_batch" testid="chart-batch"/>
            <plane::PlaneChart/>
            <p class="hint">{t("site.chart_keys")}</p>
        </section>
    }
}
