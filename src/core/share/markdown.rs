//! The answer as Markdown, for an incident or a ticket.

use super::plain::rank_name;
use super::{Report, Scenario, advice_lines, advice_rows};
use crate::memory::{Part, Provenance};
use crate::text::{Lang, has, message, text};
use crate::units::{Bytes, bytes_exact, bytes_human, count, percent};
use std::fmt::Write as _;

/// The answer to `scenario` as Markdown: verdict, terms, workings, phases, limits, and what it was computed
/// from. `link` is the address that opens it again, where there is one.
pub fn markdown(lang: Lang, scenario: &Scenario, report: &Report, link: Option<&str>) -> String {
    let t = |key: &str| text(lang, key).to_owned();
    let mut out = String::new();
    let verdict = t(verdict_key(report));
    line(&mut out, &format!("## OOM Ledger: {verdict}\n"));
    line(&mut out, &format!("{}\n", escape(&message(lang, &report.sentence))));
    if let Some(refusal) = &report.refusal {
        line(&mut out, &format!("> {}\n", escape(&message(lang, refusal))));
    }
    head(
        &mut out,
        &[&t("report.term"), &t("report.bytes"), &t("report.range"), &t("report.share"), &t("report.origin")],
    );
    for row in &report.rows {
        let origin = origin(lang, row.provenance, "");
        cells(
            &mut out,
            &[
                &row.name(lang, &report.rows),
                &bytes_human(Bytes(row.bytes)),
                &row.range().unwrap_or_else(|| "=".to_owned()),
                &percent(row.share),
                &origin,
            ],
        );
    }
    section(&mut out, &t("report.workings"));
    for row in &report.rows {
        let name = row.name(lang, &report.rows);
        line(&mut out, &format!("* **{name}**: {}", code(&row.working.to_string())));
        for part in &row.parts {
            line(&mut out, &format!("  * {}", code(&part_line(lang, part))));
        }
        if !row.source.is_empty() {
            line(&mut out, &format!("  * {}", escape(&origin(lang, row.provenance, row.source))));
        }
    }
    section(&mut out, &t("report.phases"));
    head(&mut out, &[&t("report.phase"), &t("report.peak"), &t("report.allocated")]);
    for phase in &report.phases {
        let name = t(&format!("phase.{}", phase.id.id()));
        let name = if phase.highest { format!("**{name}**") } else { name };
        cells(
            &mut out,
            &[&name, &bytes_human(Bytes(phase.peak_bytes)), &bytes_human(Bytes(phase.allocated_bytes))],
        );
    }
    section(&mut out, &t("report.figures"));
    for (key, value) in &report.facts {
        line(&mut out, &format!("* {}", escape(&fact_line(lang, key, value))));
    }
    for limit in &report.limits {
        line(&mut out, &format!("* {}", escape(&limit_line(lang, limit))));
    }
    for (key, value) in &report.options {
        line(&mut out, &format!("* {}", escape(&fact_line(lang, key, value))));
    }
    if !report.ranks.is_empty() {
        section(&mut out, &t("report.ranks"));
        head(
            &mut out,
            &[&t("report.rank"), &t("report.stage"), &t("term.weights"), &t("report.kv"), &t("report.peak")],
        );
        for rank in &report.ranks {
            let name = if rank.fullest { format!("**{}**", rank_name(rank)) } else { rank_name(rank) };
            let [weights, kv, peak] =
                [rank.weights_bytes, rank.kv_bytes, rank.peak_bytes].map(|b| bytes_human(Bytes(b)));
            cells(&mut out, &[&name, &rank.stage.to_string(), &weights, &kv, &peak]);
        }
    }
    if !report.host.is_empty() {
        section(&mut out, &t("report.host"));
        head(&mut out, &[&t("report.term"), &t("report.bytes"), &t("report.range")]);
        for row in &report.host {
            let name = t(&format!("term.{}", row.id.id()));
            cells(
                &mut out,
                &[&name, &bytes_human(Bytes(row.bytes)), &row.range().unwrap_or_else(|| "=".to_owned())],
            );
        }
    }
    if let Some(suggestions) = &report.suggestions {
        section(&mut out, &t("lever.title"));
        for said in advice_lines(lang, suggestions) {
            line(&mut out, &format!("{}\n", escape(&said)));
        }
        head(
            &mut out,
            &[&t("lever.option"), &t("lever.frees"), &t("lever.after"), &t("lever.what"), &t("lever.cost")],
        );
        for row in advice_rows(lang, suggestions) {
            let setting = code(&row.setting.replace('|', "\\|"));
            line(
                &mut out,
                &format!(
                    "| {setting} | {} | {} | {} | {} |",
                    row.frees,
                    row.after,
                    escape(&row.what),
                    escape(&row.cost)
                ),
            );
        }
    }
    if !report.warnings.is_empty() {
        section(&mut out, &t("report.notes"));
        for warning in &report.warnings {
            line(&mut out, &format!("* {}", escape(&message(lang, warning))));
        }
    }
    section(&mut out, &t("report.scenario"));
    let json = serde_json::to_string_pretty(&scenario.to_short_json()).unwrap_or_default();
    let fence = "`".repeat(longest_run(&json).max(2) + 1);
    line(&mut out, &format!("{fence}json\n{json}\n{fence}"));
    if let Some(link) = link {
        line(&mut out, &format!("\n{}: <{link}>", t("report.link")));
    }
    out
}

/// The text key of the verdict.
pub(super) fn verdict_key(report: &Report) -> &'static str {
    match report.verdict {
        crate::memory::Verdict::Fits => "verdict.fits",
        crate::memory::Verdict::Tight => "verdict.tight",
        crate::memory::Verdict::DoesNotFit => "verdict.does_not_fit",
    }
}

/// Where a figure comes from, with its source.
pub(super) fn origin(lang: Lang, provenance: Provenance, source: &str) -> String {
    let key = format!("provenance.{}", provenance.id());
    let what = text(lang, &key);
    if source.is_empty() { what.to_owned() } else { format!("{what} ({source})") }
}

/// One line of a sum.
pub(super) fn part_line(lang: Lang, part: &Part) -> String {
    let label = if has(&part.label) { text(lang, &part.label) } else { &part.label };
    let detail = if part.detail.is_empty() { String::new() } else { format!(" · {}", part.detail) };
    format!("{label}{detail} = {} ({})", bytes_human(Bytes(part.bytes)), bytes_exact(Bytes(part.bytes)))
}

/// One limit, with what stops the next.
pub(super) fn limit_line(lang: Lang, limit: &super::LimitRow) -> String {
    match limit.stopped_by {
        Some(term) => {
            let template = crate::units::Message::new("report.limit_stopped")
                .with("name", limit.key)
                .with("value", limit.value)
                .with("term", format!("term.{}", term.id()));
            message(lang, &template)
        }
        None => fact_line(lang, limit.key, &count(limit.value)),
    }
}

/// A name, by its key, and its value.
pub(super) fn fact_line(lang: Lang, key: &str, value: &str) -> String {
    message(lang, &crate::units::Message::new("report.fact").with("name", key).with("value", value))
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

fn section(out: &mut String, title: &str) {
    line(out, &format!("\n### {title}\n"));
}

fn head(out: &mut String, names: &[&str]) {
    cells(out, names);
    // Figures stand at the right; the first column is a name, and so is the fifth.
    let rules: String = (0..names.len()).map(|i| if i == 0 || i == 4 { "---|" } else { "---:|" }).collect();
    line(out, &format!("|{rules}"));
}

fn cells(out: &mut String, cells: &[&str]) {
    let cells: Vec<_> = cells.iter().map(|cell| escape(cell)).collect();
    line(out, &format!("| {} |", cells.join(" | ")));
}

/// Text that Markdown would take for markup, one line.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '`' | '<' | '[' | ']' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// A span of code, which may hold backticks itself.
fn code(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    format!("{fence}{}{fence}", text.replace(['\n', '\r'], " "))
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
