//! The answer as plain text, aligned for a terminal, without colour.

use super::markdown::{fact_line, limit_line, origin, part_line};
use super::{Report, advice_lines, advice_rows};
use crate::text::{Lang, message, text};
use crate::units::{Bytes, bytes_human, percent};
use std::fmt::Write as _;

/// How plain text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the terminal; sentences are wrapped there, tables are not.
    pub width: usize,
    /// Show how each figure was computed.
    pub workings: bool,
}

/// The answer as plain text.
// Writing to a String cannot fail.
pub fn plain(lang: Lang, report: &Report, layout: Layout) -> String {
    let t = |key: &str| text(lang, key).to_owned();
    let mut out = wrap(&message(lang, &report.sentence), layout.width, "");
    if let Some(refusal) = &report.refusal {
        out += &wrap(&message(lang, refusal), layout.width, "  ");
    }
    let mut table =
        vec![[t("report.term"), t("report.bytes"), t("report.range"), t("report.share"), t("report.origin")]];
    for row in &report.rows {
        table.push([
            row.name(lang, &report.rows),
            bytes_human(Bytes(row.bytes)),
            row.range().unwrap_or_else(|| "=".to_owned()),
            percent(row.share),
            // The source would break the table; the workings name it.
            origin(lang, row.provenance, ""),
        ]);
    }
    out += "\n";
    out += &align(&table, [false, true, true, true, false]);
    let mut table = vec![[t("report.phase"), t("report.peak"), t("report.allocated"), String::new()]];
    for phase in &report.phases {
        table.push([
            t(&format!("phase.{}", phase.id.id())),
            bytes_human(Bytes(phase.peak_bytes)),
            bytes_human(Bytes(phase.allocated_bytes)),
            if phase.highest { t("report.highest") } else { String::new() },
        ]);
    }
    out += "\n";
    out += &align(&table, [false, true, true, false]);
    if !report.ranks.is_empty() {
        let mut table = vec![[
            t("report.rank"),
            t("report.stage"),
            t("term.weights"),
            t("report.kv"),
            t("report.peak"),
            String::new(),
        ]];
        for rank in &report.ranks {
            let fullest = if rank.fullest { t("report.fullest") } else { String::new() };
            let [weights, kv, peak] =
                [rank.weights_bytes, rank.kv_bytes, rank.peak_bytes].map(|b| bytes_human(Bytes(b)));
            table.push([rank_name(rank), rank.stage.to_string(), weights, kv, peak, fullest]);
        }
        out += "\n";
        out += &align(&table, [false, true, true, true, true, false]);
    }
    if !report.host.is_empty() {
        let mut table = vec![[t("report.host"), t("report.bytes"), t("report.range")]];
        for row in &report.host {
            let name = t(&format!("term.{}", row.id.id()));
            table.push([name, bytes_human(Bytes(row.bytes)), row.range().unwrap_or_else(|| "=".to_owned())]);
        }
        out += "\n";
        out += &align(&table, [false, true, true]);
    }
    out += "\n";
    let facts: Vec<_> = report.facts.iter().map(|(key, value)| [t(key), value.clone()]).collect();
    out += &align(&facts, [false, true]);
    for limit in &report.limits {
        out += &wrap(&limit_line(lang, limit), layout.width, "");
    }
    for (key, value) in &report.options {
        out += &wrap(&fact_line(lang, key, value), layout.width, "");
    }
    if let Some(suggestions) = &report.suggestions {
        let title = if suggestions.missing_bytes > 0 || suggestions.option_stops {
            "lever.title"
        } else {
            "lever.title_tight"
        };
        let _ = writeln!(out, "\n{}", t(title));
        for line in advice_lines(lang, suggestions) {
            out += &wrap(&line, layout.width, "  ");
        }
        for row in advice_rows(lang, suggestions) {
            let _ = writeln!(out, "  {} {}", if row.enough { "*" } else { "-" }, row.setting);
            out += &wrap(
                &format!("{}: {} ({}). {}", row.what, row.frees, row.after, row.cost),
                layout.width,
                "      ",
            );
        }
    }
    if layout.workings {
        let _ = writeln!(out, "\n{}", t("report.workings"));
        for row in &report.rows {
            let _ = writeln!(out, "  {}: {}", row.name(lang, &report.rows), row.working);
            for part in &row.parts {
                let _ = writeln!(out, "    {}", part_line(lang, part));
            }
            if !row.source.is_empty() {
                let _ = writeln!(out, "    {}", origin(lang, row.provenance, row.source));
            }
        }
    }
    if !report.warnings.is_empty() {
        let _ = writeln!(out, "\n{}", t("report.notes"));
        for warning in &report.warnings {
            out += &wrap(&message(lang, warning), layout.width, "  ");
        }
    }
    out
}

/// The number of a rank, or of the first and last of several that hold the same.
pub(super) fn rank_name(rank: &crate::memory::RankShare) -> String {
    match rank.count {
        0 | 1 => rank.first.to_string(),
        n => format!("{}-{}", rank.first, rank.first.saturating_add(n - 1)),
    }
}

/// Columns of a terminal that a character takes: two for Chinese and full-width forms.
fn columns(c: char) -> usize {
    match c as u32 {
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Columns of a terminal that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Rows with columns of equal width; `right` says which stand at the right.
fn align<const N: usize>(rows: &[[String; N]], right: [bool; N]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = width(cell).max(*most);
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, most), right) in row.iter().zip(widths).zip(right) {
            let pad = " ".repeat(most - width(cell));
            let cell = if right { pad + cell } else { cell.clone() + &pad };
            line += &cell;
            line += "  ";
        }
        out += line.trim_end();
        out += "\n";
    }
    out
}

/// `text` in lines of at most `width` columns, each behind `indent`. Chinese may break at any character.
fn wrap(text: &str, most: usize, indent: &str) -> String {
    let most = most.max(20).saturating_sub(indent.len());
    let (mut out, mut line, mut word) = (String::new(), String::new(), String::new());
    let mut push = |line: &mut String, word: &mut String| {
        if width(line) + width(word) > most && !line.trim().is_empty() {
            let _ = writeln!(out, "{indent}{}", line.trim_end());
            line.clear();
            *word = word.trim_start().to_owned();
        }
        line.push_str(word);
        word.clear();
    };
    for c in text.chars() {
        if c == '\n' {
            push(&mut line, &mut word);
            // The engines' own refusals come in lines; a line that is full is as good as an end.
            word.push(' ');
            continue;
        }
        // A closing mark stays with the character before it.
        let mark = "，。；：、）！？".contains(c);
        if (c == ' ' || columns(c) == 2) && !mark {
            push(&mut line, &mut word);
        }
        word.push(c);
    }
    push(&mut line, &mut word);
    if !line.trim().is_empty() {
        let _ = writeln!(out, "{indent}{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{align, width, wrap};

    #[test]
    fn chinese_takes_two_columns() {
        assert_eq!(width("权重 a"), 6);
        let rows = [["权重".to_owned(), "1".to_owned()], ["weights".to_owned(), "12".to_owned()]];
        assert_eq!(align(&rows, [false, true]), "权重      1\nweights  12\n");
    }

    #[test]
    fn lines_stay_within_the_width_and_no_word_is_lost() {
        let text = "the quick brown fox jumps over the lazy dog again and again";
        let wrapped = wrap(text, 24, "  ");
        assert!(wrapped.lines().all(|l| width(l) <= 24), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>(), text.split(' ').collect::<Vec<_>>());
        let chinese = wrap("放得下：最高峰值出现在预填充阶段，余量为一个半吉字节。", 20, "");
        assert!(chinese.lines().all(|l| width(l) <= 22), "{chinese}");
        assert!(!chinese.lines().any(|l| l.starts_with('，')), "{chinese}");
    }
}
