//! `make accuracy`: the error of every expectation in case files, and a summary per kind of figure.

mod cases;

use cases::{Outcome, Row, Summary, evaluate, summarise};
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
    /// Exit with 1 when a modelled expectation misses its tolerance.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut err = std::io::stderr().lock();
    let files = if args.files.is_empty() { shipped() } else { args.files.clone() };
    let mut rows = Vec::new();
    for file in &files {
        let read = std::fs::read_to_string(file).map_err(|e| e.to_string());
        match read.and_then(|text| evaluate(&text, Some(&args.configs))) {
            Ok(more) => rows.extend(more),
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
    let _ = print(&args, &rows);
    let missed = rows.iter().any(|row| !row.within() && !matches!(row.outcome, Outcome::NotModelled(_)));
    if args.check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
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

fn print(args: &Args, rows: &[Row]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if !args.markdown {
        for row in rows.iter().filter(|row| !args.misses || !row.within()) {
            print_row(&mut out, row)?;
        }
        writeln!(out)?;
    }
    let summaries = summarise(rows);
    if args.markdown {
        writeln!(out, "| engine | figure | cases | median error | 95 % | worst | within tolerance |")?;
        writeln!(out, "|---|---|---:|---:|---:|---:|---:|")?;
    } else {
        let head = ["engine", "figure", "n", "mean", "median", "p95", "worst", "within"];
        writeln!(
            out,
            "{:<28} {:<34} {:>4} {:>9} {:>9} {:>9} {:>9} {:>9}",
            head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]
        )?;
    }
    for summary in &summaries {
        print_summary(&mut out, summary, args.markdown)?;
    }
    out.flush()
}

fn print_row(out: &mut impl Write, row: &Row) -> std::io::Result<()> {
    let mark = if row.within() { "ok  " } else { "MISS" };
    match &row.outcome {
        Outcome::Figure { got, error } => writeln!(
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

fn print_summary(out: &mut impl Write, s: &Summary, markdown: bool) -> std::io::Result<()> {
    let answered = s.all - s.not_modelled;
    let within = if answered == 0 { "not modelled".to_owned() } else { format!("{}/{answered}", s.within) };
    let (median, p95, worst) = (percent(s.median()), percent(s.quantile(0.95)), percent(s.quantile(1.0)));
    if markdown {
        writeln!(out, "| {} | `{}` | {} | {median} | {p95} | {worst} | {within} |", s.group, s.path, s.all)
    } else {
        let mean = percent(s.mean());
        writeln!(
            out,
            "{:<28} {:<34} {:>4} {mean:>9} {median:>9} {p95:>9} {worst:>9} {within:>9}",
            s.group, s.path, s.all
        )
    }
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
        Some(e) if e.is_finite() => format!("{:.3} %", e * 100.0),
        Some(_) => "∞".to_owned(),
        None => "–".to_owned(),
    }
}
