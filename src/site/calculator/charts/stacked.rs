//! Memory against one axis.

use super::canvas::{self, Keys};
use crate::browser::timed;
use crate::calculator::Shown;
use crate::prefs::Prefs;
use crate::words::{now, t};
use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;
use oom_ledger_core::plan::{Axis, Series};
use oom_ledger_core::plot::{self, Frame};
use std::sync::Arc;

/// Samples of a series: one for about every eight pixels of a wide chart.
const SAMPLES: usize = 96;
/// Rows of its table.
const ROWS: usize = 12;

/// The chart, its reading and its table.
#[component]
pub fn Stacked(
    /// What is varied.
    axis: Axis,
    /// Key of the axis' name.
    x: &'static str,
    /// Key of the title.
    title: &'static str,
    /// Test id.
    testid: &'static str,
) -> impl IntoView {
    let shown = expect_context::<Shown>();
    let prefs = expect_context::<Prefs>();
    let series = Memo::new(move |_| {
        let good = shown.get()?;
        timed("series", || good.resolved.series(axis, SAMPLES).ok()).map(Arc::new)
    });
    let reading = RwSignal::new(None::<usize>);
    let frame = RwSignal::new(Frame::default());
    let canvas = NodeRef::<html::Canvas>::new();
    let size = canvas::size_of(canvas);
    let redraw = move || {
        let (Some(element), Some(series)) = (canvas.get(), series.get()) else { return };
        let keys = Keys { x, y: "site.memory", crossing: "site.crossing" };
        let drawn = timed("draw-stacked", || {
            canvas::draw(&element, size.get(), &keys, |area, look| plot::stacked(area, &series, look))
        });
        frame.set(drawn);
    };
    Effect::new(redraw);
    let summary = move || series.get().map(|s| plot::summary(prefs.lang.get(), &s)).unwrap_or_default();
    let line = move || {
        let series = series.get()?;
        plot::series_reading(prefs.lang.get(), &series, reading.get()?)
    };
    let keys = move |event: KeyboardEvent| {
        let last = series.with(|s| s.as_ref().map_or(0, |s| s.samples.len().saturating_sub(1)));
        let at = reading.get_untracked();
        let next = match event.key().as_str() {
            "ArrowRight" => at.map_or(0, |i| (i + 1).min(last)),
            "ArrowLeft" => at.map_or(last, |i| i.saturating_sub(1)),
            "Home" => 0,
            "End" => last,
            "PageDown" => at.map_or(0, |i| i.saturating_sub(10)),
            "PageUp" => at.map_or(0, |i| (i + 10).min(last)),
            _ => return,
        };
        event.prevent_default();
        reading.set(Some(next));
    };
    view! {
        <figure class="chart">
            <figcaption><h2>{t(title)}</h2><p>{summary}</p></figcaption>
            <canvas
                node_ref=canvas
                data-testid=testid
                role="img"
                tabindex="0"
                aria-label=move || format!("{}. {}", now(title), summary())
                on:keydown=keys
                on:pointermove=move |event| {
                    let (x, _) = canvas::pointer(&event);
                    reading.set(series.with(|s| s.as_ref().and_then(|s| plot::sample_at(s, &frame.get_untracked(), x))));
                }
                on:pointerleave=move |_| reading.set(None)
            ></canvas>
            <p class="reading" aria-live="polite">{line}</p>
            <details>
                <summary>{t("site.chart_table")}</summary>
                <div class="scroll" tabindex="0" role="region" aria-label=t(title)>
                    {move || series.get().map(|s| table(&s, title, x, prefs))}
                </div>
            </details>
        </figure>
    }
}

fn table(series: &Series, title: &'static str, x: &'static str, prefs: Prefs) -> AnyView {
    let heads = series
        .terms
        .iter()
        .map(|id| view! { <th scope="col" class="num">{now(&format!("term.{}", id.id()))}</th> })
        .collect_view();
    let rows = plot::series_rows(prefs.lang.get(), series, ROWS)
        .into_iter()
        .map(|row| view! { <tr>{row.into_iter().map(|cell| view! { <td class="num">{cell}</td> }).collect_view()}</tr> })
        .collect_view();
    view! {
        <table>
            <caption class="visually-hidden">{now(title)}</caption>
            <thead><tr>
                <th scope="col" class="num">{now(x)}</th>
                {heads}
                <th scope="col" class="num">{now("plan.kv_used")}</th>
                <th scope="col" class="num">{now("site.peak")}</th>
                <th scope="col" class="num">{now("site.verdict")}</th>
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}
