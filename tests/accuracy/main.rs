//! `make accuracy`: the error of every expectation in case files, and a summary per kind of figure.

mod cases;

use cases::summary::Summary;
use cases::{Miss, Outcome, Row, evaluate, summarise, unchecked};
use clap::Parser;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the error of every expectation, and a summary per kind of figure.
#[derive(Parser)]
struct Args {
    /// Case files (JSON Lines); without any, those shipped with the project.
    files: Vec<PathBuf>,
    /// Folder of the config files that cases name; a missing one means the preset of that name.
    #[arg(long, default_value = "../shared/model-configs")]
    configs: PathBuf,
    /// Only the summary, as a Markdown table.
    #[arg(long)]
    markdown: bool,
    /// Only expectations that miss their tolerance, and the summary.
    #[arg(long)]
    misses: bool,
    /// Exit with 1 when a modelled expectation misses its tolerance, and the miss is not explained in misses.json.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut err = std::io::stderr().lock();
    let files = if args.files.is_empty() { shipped() } else { args.files.clone() };
    let misses = known_misses();
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for file in &files {
        let read = std::fs::read_to_string(file).map_err(|e| e.to_string());
        let both = read.and_then(|text| Ok((evaluate(&text, Some(&args.configs))?, unchecked(&text))));
        match both {
            Ok((more, without)) => {
                rows.extend(more);
                skipped.extend(without);
            }
            Err(why) => {
                let _ = writeln!(err, "{}: {why}", file.display());
                return ExitCode::from(2);
            }
        }
    }
    if rows.is_empty() {
        let _ = writeln!(err, "no line has a scenario and expectations: {files:?}");
        return ExitCode::from(2);
    }
    // A reader that stops early (`| head`) is no failure.
    let _ = print(&args, &rows, &skipped, &misses);
    let known = |row: &Row| misses.iter().any(|m| m.covers(row));
    let counts = |row: &Row| !matches!(row.outcome, Outcome::NotModelled(_)) && !known(row);
    let missed = rows.iter().any(|row| !row.within() && counts(row));
    if args.check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Misses with their reason.
fn known_misses() -> Vec<Miss> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cases/misses.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The case files of the project, sorted.
fn shipped() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/cases");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    files
}

/// Titles of the table's columns.
const COLUMNS: [&str; 10] =
    ["engine", "figure", "n", "mean", "median", "p95", "worst", "within", "in range", "width"];

fn print(args: &Args, rows: &[Row], skipped: &[(String, String)], misses: &[Miss]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if !args.markdown {
        for row in rows.iter().filter(|row| !args.misses || !row.within()) {
            print_row(&mut out, row)?;
            if let Some(miss) = misses.iter().find(|m| !row.within() && m.covers(row)) {
                writeln!(out, "     {}", miss.why)?;
            }
        }
        writeln!(out)?;
    }
    print_cells(&mut out, &COLUMNS.map(str::to_owned), args.markdown)?;
    if args.markdown {
        writeln!(out, "|---|---|{}", "---:|".repeat(8))?;
    }
    for summary in &summarise(rows) {
        print_cells(&mut out, &cells(summary), args.markdown)?;
    }
    if !skipped.is_empty() {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for (_, why) in skipped {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, n)) => *n += 1,
                None => reasons.push((why, 1)),
            }
        }
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let listed: Vec<_> = reasons.iter().map(|(why, n)| format!("{why} ({n})")).collect();
        writeln!(out, "\nNot checkable: {} figures. {}.", skipped.len(), listed.join("; "))?;
    }
    out.flush()
}

fn print_row(out: &mut impl Write, row: &Row) -> std::io::Result<()> {
    let mark = if row.within() { "ok  " } else { "MISS" };
    match &row.outcome {
        Outcome::Figure { got, error, .. } => writeln!(
            out,
            "{mark} {:<40} {:<34} expected {:>16} got {:>16} error {:>9} tolerance {}",
            row.id,
            row.path,
            figure(&row.expected),
            figure(got),
            percent(Some(*error)),
            percent(Some(row.tolerance))
        ),
        Outcome::NotModelled(why) => {
            writeln!(out, "---- {:<40} {:<34} not modelled: {why}", row.id, row.path)
        }
        Outcome::Refused(why) => writeln!(out, "MISS {:<40} {:<34} no answer: {why}", row.id, row.path),
    }
}

/// One line of the table.
fn print_cells(out: &mut impl Write, cells: &[String; 10], markdown: bool) -> std::io::Result<()> {
    if markdown {
        return writeln!(out, "| {} |", cells.join(" | "));
    }
    write!(out, "{:<28} {:<40}", cells[0], cells[1])?;
    for cell in &cells[2..] {
        write!(out, " {cell:>12}")?;
    }
    writeln!(out)
}

fn cells(s: &Summary) -> [String; 10] {
    let answered = s.all - s.not_modelled;
    let within = if answered == 0 { "not modelled".to_owned() } else { format!("{}/{answered}", s.within) };
    let held = if s.ranged == 0 { "–".to_owned() } else { format!("{}/{}", s.held, s.ranged) };
    [
        s.group.clone(),
        s.figure.clone(),
        s.all.to_string(),
        percent(s.mean()),
        percent(s.median()),
        percent(s.quantile(0.95)),
        percent(s.quantile(1.0)),
        within,
        held,
        percent(s.width()),
    ]
}

fn figure(value: &serde_json::Value) -> String {
    match value.as_f64() {
        Some(x) if (0.0..1e15).contains(&x) && x.fract() > 0.0 => format!("{x:.3}"),
        Some(x) if x >= 0.0 => oom_ledger_core::units::count(x as u64),
        _ => value.to_string(),
    }
}

fn percent(error: Option<f64>) -> String {
    match error {
        Some(e) if e.abs() < 1e-12 => "0 %".to_owned(),
        Some(e) if e.abs() >= 0.1 && e.is_finite() => format!("{:.0} %", e * 100.0),
        Some(e) if e.is_finite() => format!("{:.3} %", e * 100.0),
        Some(_) => "∞".to_owned(),
        None => "–".to_owned(),
    }
}
