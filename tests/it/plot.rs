//! Tests of charts: drawn on SVG by the code that draws on the page's canvas.

use crate::scenario_of;
use oom_ledger_core::memory::TermId;
use oom_ledger_core::plan::{Axis, Plane, Series, geometric, plane, series};
use oom_ledger_core::plot::{self, Frame, Look, Words, palette};
use oom_ledger_core::share::run;
use oom_ledger_core::text::Lang;
use plotters::prelude::{IntoDrawingArea, SVGBackend};

const WORDS: Words<'static> = Words {
    x: "Tokens",
    y: "Memory",
    device: "device total",
    budget: "budget",
    crossing: "fits up to",
    here: "this job",
};

fn look(theme: palette::Theme, ratio: f64) -> Look<'static> {
    Look { theme, ratio, font: "sans-serif", words: WORDS }
}

fn job(engine: &str) -> oom_ledger_core::share::Resolved {
    let text = format!(
        r#"{{"model": {{"preset": "llama-3.1-8b"}}, "device": {{"preset": "rtx-4090"}},
            "job": {{"serve": {{"engine": "{engine}", "attention": "sdpa", "logits": "all", "sequences": 4}}}}}}"#
    );
    scenario_of(&text).resolve().unwrap()
}

fn of_series(engine: &str, axis: Axis) -> Series {
    series(&job(engine).inputs(), axis, 32).unwrap()
}

fn of_plane(engine: &str) -> Plane {
    plane(&job(engine).inputs(), 48, 32).unwrap()
}

fn svg(
    ratio: f64,
    draw: impl FnOnce(&plotters::drawing::DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Frame,
) -> (String, Frame) {
    let mut out = String::new();
    let size = ((640.0 * ratio) as u32, (320.0 * ratio) as u32);
    let frame = draw(&SVGBackend::with_string(&mut out, size).into_drawing_area());
    (out, frame)
}

#[test]
fn memory_against_tokens() {
    let data = of_series("transformers", Axis::Tokens);
    let (drawn, _) = svg(1.0, |area| plot::stacked(area, &data, &look(palette::LIGHT, 1.0)).unwrap());
    insta::assert_snapshot!(drawn);
}

#[test]
fn memory_against_sequences_of_a_pool() {
    let data = of_series("vllm", Axis::Sequences);
    let (drawn, _) = svg(1.0, |area| plot::stacked(area, &data, &look(palette::DARK, 1.0)).unwrap());
    insta::assert_snapshot!(drawn);
}

#[test]
fn the_plane() {
    let data = of_plane("transformers");
    let (drawn, _) = svg(1.0, |area| plot::plane_map(area, &data, &look(palette::LIGHT, 1.0)).unwrap());
    insta::assert_snapshot!(drawn);
}

/// Texts of a drawing, in the order drawn.
fn texts(drawn: &str) -> Vec<&str> {
    drawn
        .split("<text")
        .skip(1)
        .filter_map(|t| Some(t.split_once('>')?.1.split_once("</text>")?.0.trim()))
        .collect()
}

/// Numbers on the axes of a drawing: every text that starts with a digit.
fn ticks(drawn: &str) -> Vec<&str> {
    texts(drawn).into_iter().filter(|t| t.starts_with(|c: char| c.is_ascii_digit())).collect()
}

/// Whether no two in a row are equal: the axes come one after the other, each in order.
fn rise(ticks: &[&str]) -> bool {
    ticks.len() >= 4 && ticks.windows(2).all(|w| w[0] != w[1])
}

#[test]
fn ticks_of_a_plane_are_powers_of_two_and_differ() {
    let whole = of_plane("vllm");
    for (columns, rows) in [(2, 2), (3, 4), (6, 9), (13, 12), (48, 5), (48, 32)] {
        let (tokens, sequences) = (geometric(1 << columns.min(20), 48), geometric(rows as u64 * 3, 24));
        let cells = tokens.len() * sequences.len();
        let (peak, fits) = (vec![whole.peak[0]; cells], vec![true; cells]);
        let frontier = vec![rows as u64; tokens.len()];
        let data = Plane { tokens, sequences, peak, fits, frontier, here: (1, 1), ..whole.clone() };
        let (drawn, _) = svg(1.0, |area| plot::plane_map(area, &data, &look(palette::LIGHT, 1.0)).unwrap());
        let ticks = ticks(&drawn);
        assert!(rise(&ticks), "{columns} {rows}: {ticks:?}");
        for tick in ticks {
            let n: u64 = tick.replace(',', "").parse().unwrap();
            assert!(n.is_power_of_two(), "{columns} {rows}: {tick}");
        }
    }
}

#[test]
fn ticks_of_a_stack_differ_on_small_devices_and_short_axes() {
    let whole = of_series("transformers", Axis::Tokens);
    for shift in [0, 2, 4, 6, 9] {
        for most in [2, 3, 5, 8, 100] {
            let mut data = whole.clone();
            data.crossing = None;
            data.device_total >>= shift;
            data.budget = data.device_total;
            data.samples.truncate(2);
            for (sample, x) in data.samples.iter_mut().zip([1, most]) {
                sample.x = x;
                sample.terms.iter_mut().for_each(|t| *t >>= shift);
                sample.total = sample.terms.iter().sum();
            }
            let (drawn, _) = svg(1.0, |area| plot::stacked(area, &data, &look(palette::LIGHT, 1.0)).unwrap());
            let ticks = ticks(&drawn);
            assert!(rise(&ticks), "{shift} {most}: {ticks:?}");
        }
    }
}

#[test]
fn a_sharp_screen_doubles_every_size() {
    let data = of_series("transformers", Axis::Tokens);
    let frame =
        |ratio| svg(ratio, |area| plot::stacked(area, &data, &look(palette::LIGHT, ratio)).unwrap()).1;
    let (one, two) = (frame(1.0), frame(2.0));
    for (a, b) in [(one.left, two.left), (one.right, two.right), (one.top, two.top), (one.bottom, two.bottom)]
    {
        // The right and lower edges are rounded once more.
        assert!((2 * a - b).abs() <= 2, "{one:?} {two:?}");
    }
}

#[test]
fn a_sample_is_found_where_it_was_drawn() {
    let data = of_series("vllm", Axis::Sequences);
    let (_, frame) = svg(1.0, |area| plot::stacked(area, &data, &look(palette::LIGHT, 1.0)).unwrap());
    let (first, last) = (data.samples[0].x as f64, data.samples[data.samples.len() - 1].x as f64);
    let pixels = f64::from(frame.right - frame.left);
    for (i, sample) in data.samples.iter().enumerate() {
        let x = f64::from(frame.left) + (sample.x as f64 - first) / (last - first) * pixels;
        assert_eq!(plot::sample_at(&data, &frame, x), Some(i), "sample {i} at {x}");
    }
    assert_eq!(plot::sample_at(&data, &frame, f64::from(frame.left) - 3.0), None);
}

#[test]
fn a_cell_is_found_where_it_was_drawn() {
    let data = of_plane("vllm");
    let (_, frame) = svg(1.0, |area| plot::plane_map(area, &data, &look(palette::LIGHT, 1.0)).unwrap());
    let log = |all: &[u64], i: usize| (all[i] as f64).log2() / (all[all.len() - 1] as f64).log2();
    let (columns, rows) = (data.tokens.len(), data.sequences.len());
    for (column, row) in [(0, 0), (columns / 2, rows / 3), (columns - 1, rows - 1)] {
        let x = f64::from(frame.left) + log(&data.tokens, column) * f64::from(frame.right - frame.left);
        let y = f64::from(frame.bottom) - log(&data.sequences, row) * f64::from(frame.bottom - frame.top);
        assert_eq!(plot::cell_at(&data, &frame, x, y), Some((column, row)));
    }
}

#[test]
fn nothing_to_show_is_drawn_as_nothing() {
    let empty = Series { samples: Vec::new(), ..of_series("vllm", Axis::Tokens) };
    let (_, frame) = svg(1.0, |area| plot::stacked(area, &empty, &look(palette::LIGHT, 1.0)).unwrap());
    assert_eq!(frame, Frame::default());
    assert!(!plot::summary(Lang::En, &empty).is_empty());
}

#[test]
fn the_table_holds_the_crossing_point_and_its_neighbour() {
    let data = of_series("transformers", Axis::Sequences);
    let at = data.crossing.expect("a 4090 does not hold every batch");
    let rows = plot::series_rows(Lang::En, &data, 6);
    for x in [at, at + 1] {
        assert!(rows.iter().any(|r| r[0] == oom_ledger_core::units::count(x)), "{x} in {rows:?}");
    }
    assert!(rows.iter().all(|r| r.len() == data.terms.len() + 4));
}

/// Relative luminance (WCAG 2).
fn luminance((r, g, b): palette::Rgb) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

fn contrast(a: palette::Rgb, b: palette::Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_on_charts_can_be_read() {
    for theme in [palette::LIGHT, palette::DARK] {
        for ink in [theme.ink, theme.soft, theme.accent] {
            assert!(contrast(ink, theme.paper) >= 4.5, "{ink:?} on {:?}", theme.paper);
        }
    }
}

#[test]
fn chart_themes_equal_the_tokens_of_the_page() {
    let css = include_str!("../../public/styles/tokens.css");
    for (theme, dark) in [(palette::LIGHT, false), (palette::DARK, true)] {
        let pairs = [
            ("paper", theme.paper),
            ("ink", theme.ink),
            ("ink-soft", theme.soft),
            ("rule", theme.rule),
            ("accent", theme.accent),
        ];
        for (name, colour) in pairs {
            let line = css.lines().find(|l| l.trim_start().starts_with(&format!("--{name}:"))).unwrap();
            let both = line.split_once("light-dark(").unwrap().1.split_once(')').unwrap().0;
            let (light, dusk) = both.split_once(',').unwrap();
            assert_eq!(if dark { dusk.trim() } else { light.trim() }, palette::hex(colour), "{name}");
        }
    }
}

/// A colour as a person with no long-wave (protan) or no middle-wave (deutan) cones sees it, in linear light
/// (Viénot, Brettel and Mollon 1999).
fn seen(colour: palette::Rgb, protan: bool) -> [f64; 3] {
    let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
    let (r, g, b) = (linear(colour.0), linear(colour.1), linear(colour.2));
    let (l, m, s) = (
        17.8824 * r + 43.5161 * g + 4.11935 * b,
        3.45565 * r + 27.1554 * g + 3.86714 * b,
        0.029_956_6 * r + 0.184_309 * g + 1.46709 * b,
    );
    let (l, m) = if protan { (2.02344 * m - 2.52581 * s, m) } else { (l, 0.494_207 * l + 1.24827 * s) };
    [
        0.080_944_5 * l - 0.130_504 * m + 0.116_721 * s,
        -0.010_248_5 * l + 0.054_019_3 * m - 0.113_615 * s,
        -0.000_365_3 * l - 0.004_121_62 * m + 0.693_511 * s,
    ]
    .map(|c| c.clamp(0.0, 1.0).powf(1.0 / 2.2))
}

/// Every term that the modelled engines emit over jobs which between them have everything: ranks, a vision tower,
/// recurrent layers, materialised scores, neighbours, a printed pool.
fn emitted() -> Vec<TermId> {
    const JOBS: &[&str] = &[
        r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb", "count": 2, "other_processes_bytes": 1073741824},
            "parallel": {"tensor": 2}, "job": {"serve": {"engine": "vllm", "max_model_len": 8192}}}"#,
        r#"{"model": {"preset": "gemma-3-4b"}, "device": {"preset": "h100-80gb"},
            "job": {"serve": {"engine": "vllm", "max_model_len": 8192}}}"#,
        r#"{"model": {"preset": "granite-4.0-h-tiny"}, "device": {"preset": "h100-80gb"},
            "job": {"serve": {"engine": "vllm", "max_model_len": 8192}}}"#,
        r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"},
            "job": {"serve": {"engine": "vllm", "max_model_len": 8192}}, "measured": {"kv_available_bytes": 1073741824}}"#,
        r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"},
            "job": {"serve": {"engine": "transformers", "attention": "eager", "logits": "all"}}}"#,
    ];
    let mut ids: Vec<TermId> = JOBS
        .iter()
        .flat_map(|text| run(&scenario_of(text)).unwrap().terms)
        .filter(|t| t.high > 0)
        .map(|t| t.id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn terms_of_the_engines_can_be_told_apart_by_everyone() {
    let ids = emitted();
    for id in [
        TermId::RecurrentState,
        TermId::AttentionScores,
        TermId::Communication,
        TermId::Encoder,
        TermId::OtherProcesses,
        TermId::Unexplained,
    ] {
        assert!(ids.contains(&id), "the jobs no longer have {id:?}: {ids:?}");
    }
    for (i, a) in ids.iter().enumerate() {
        for b in &ids[i + 1..] {
            for protan in [false, true] {
                let (x, y) = (seen(palette::term(*a), protan), seen(palette::term(*b), protan));
                let apart = x.iter().zip(y).map(|(p, q)| (p - q).powi(2)).sum::<f64>().sqrt();
                assert!(apart > 0.15, "{a:?} and {b:?} look alike: {apart:.2}");
            }
        }
    }
}
