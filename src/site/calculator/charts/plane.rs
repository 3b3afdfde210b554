//! The tokens x sequences plane.

use super::canvas::{self, Keys};
use crate::browser::timed;
use crate::calculator::Shown;
use crate::prefs::Prefs;
use crate::words::{now, t};
use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;
use oom_ledger_core::plan::{self, FrontierRow};
use oom_ledger_core::plot::{self, Frame};
use oom_ledger_core::units::count;
use std::sync::Arc;

/// Cells across and up. The issue's own measure of speed is taken at this size.
const CELLS: usize = 256;
/// Rows of the table.
const ROWS: usize = 16;
/// Cells that one press of an arrow moves.
const STEP: usize = 4;

/// The plane, its reading and its table.
#[component]
pub fn PlaneChart() -> impl IntoView {
    let shown = expect_context::<Shown>();
    let prefs = expect_context::<Prefs>();
    let plane = Memo::new(move |_| {
        let good = shown.get()?;
        timed("plane", || plan::plane(&good.resolved.inputs(), CELLS, CELLS).ok()).map(Arc::new)
    });
    let rows = Memo::new(move |_| {
        let good = shown.get();
        good.and_then(|good| plan::frontier(&good.resolved.inputs(), ROWS).ok()).unwrap_or_default()
    });
    let reading = RwSignal::new(None::<(usize, usize)>);
    let frame = RwSignal::new(Frame::default());
    let canvas = NodeRef::<html::Canvas>::new();
    let size = canvas::size_of(canvas);
    Effect::new(move || {
        let (Some(element), Some(plane)) = (canvas.get(), plane.get()) else { return };
        let keys = Keys { x: "site.tokens", y: "site.sequences", crossing: "site.frontier" };
        let drawn = timed("draw-plane", || {
            canvas::draw(&element, size.get(), &keys, |area, look| plot::plane_map(area, &plane, look))
        });
        frame.set(drawn);
    });
    let line = move || {
        let plane = plane.get()?;
        let (column, row) = reading.get()?;
        plot::plane_reading(prefs.lang.get(), &plane, column, row)
    };
    let keys = move |event: KeyboardEvent| {
        let (columns, rows) =
            plane.with(|p| p.as_ref().map_or((1, 1), |p| (p.tokens.len(), p.sequences.len())));
        let (column, row) = reading.get_untracked().unwrap_or((0, 0));
        let next = match event.key().as_str() {
            "ArrowRight" => ((column + STEP).min(columns - 1), row),
            "ArrowLeft" => (column.saturating_sub(STEP), row),
            "ArrowUp" => (column, (row + STEP).min(rows - 1)),
            "ArrowDown" => (column, row.saturating_sub(STEP)),
            "Home" => (0, row),
            "End" => (columns - 1, row),
            _ => return,
        };
        event.prevent_default();
        reading.set(Some(next));
    };
    view! {
        <figure class="chart">
            <figcaption><h2>{t("site.chart_plane")}</h2><p>{t("site.plane_hint")}</p></figcaption>
            <canvas
                node_ref=canvas
                data-testid="chart-plane"
                role="img"
                tabindex="0"
                aria-label=move || format!("{}. {}", now("site.chart_plane"), now("site.plane_hint"))
                on:keydown=keys
                on:pointermove=move |event| {
                    let (x, y) = canvas::pointer(&event);
                    reading.set(plane.with(|p| p.as_ref().and_then(|p| plot::cell_at(p, &frame.get_untracked(), x, y))));
                }
                on:pointerleave=move |_| reading.set(None)
            ></canvas>
            <p class="reading" aria-live="polite">{line}</p>
            <details>
                <summary>{t("site.chart_table")}</summary>
                <div class="scroll" tabindex="0" role="region" aria-label=t("site.chart_plane")>
                    <table>
                        <caption class="visually-hidden">{t("site.chart_plane")}</caption>
                        <thead><tr>
                            <th scope="col" class="num">{t("site.tokens")}</th>
                            <th scope="col" class="num">{t("site.most_sequences")}</th>
                            <th scope="col">{t("site.stopped_by")}</th>
                        </tr></thead>
                        <tbody>
                            {move || rows.get().into_iter().map(line_of).collect_view()}
                        </tbody>
                    </table>
                </div>
            </details>
        </figure>
    }
}

fn line_of(row: FrontierRow) -> impl IntoView {
    let stop = row.stopped_by.map_or_else(|| "limit.model".to_owned(), |id| format!("term.{}", id.id()));
    view! {
        <tr>
            <td class="num">{count(row.tokens)}</td>
            <td class="num">{count(row.sequences)}</td>
            <td>{move || now(&stop)}</td>
        </tr>
    }
}
