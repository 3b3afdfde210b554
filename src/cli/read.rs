//! `oom-ledger read`: what logs show.

use crate::args::{ReadArgs, ReadFormat};
use crate::{Failure, output};
use oom_ledger_core::evidence::{self, Figure, KEYS, Reading};
use oom_ledger_core::share::{reading_json, reading_lines, refusal_json};
use oom_ledger_core::text::{Lang, message, text};
use oom_ledger_core::trace;
use oom_ledger_core::units::{Bytes, bytes_human};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut all = Vec::new();
        std::io::stdin().lock().read_to_end(&mut all).map(|_| all)
    } else {
        std::fs::read(path)
    };
    read.map_err(|e| Failure::Input(format!("cannot read {}: {e}", path.display())))
}

/// What a text says: what went wrong, then each figure with its line.
fn told(lang: Lang, reading: &Reading, out: &mut impl Write) -> std::io::Result<()> {
    let evidence = &reading.evidence;
    writeln!(out, "{}", reading.format)?;
    if let Some(kind) = evidence.error_kind() {
        writeln!(out, "{kind}: {}", text(lang, &format!("evidence.kind.{kind}")))?;
    }
    for key in KEYS {
        let Some(fact) = evidence.get(key.id) else { continue };
        let value = match (evidence.bytes(key.id), &fact.value) {
            (Some(bytes), _) => match u64::try_from(bytes) {
                Ok(bytes) => bytes_human(Bytes(bytes)),
                Err(_) => format!("-{}", bytes_human(Bytes(bytes.unsigned_abs()))),
            },
            (None, Figure::Text(text)) => text.clone(),
            (None, Figure::Count(n)) => n.to_string(),
            (None, Figure::Real(x)) => x.to_string(),
            (None, Figure::Flag(on)) => on.to_string(),
            (None, Figure::Bytes(n)) => n.to_string(),
        };
        writeln!(out, "  {} = {value}  [{}]", key.id, fact.line)?;
    }
    for warning in &reading.warnings {
        writeln!(out, "{}", message(lang, warning))?;
    }
    Ok(())
}

/// Reads every file; a file that is refused stops nothing, and makes the exit code 2.
pub fn run(args: &ReadArgs) -> Result<u8, Failure> {
    let lang = Lang::from(args.lang);
    let mut out = output::open(None)?;
    let mut documents: Vec<Value> = Vec::new();
    let mut refused = false;
    for path in &args.files {
        let bytes = bytes(path)?;
        let read = trace::read(&bytes);
        // Traces first; what is none may be a message, a start-up log or a snapshot. Sizes in running text are a
        // trace only where no message and no engine's log explains them.
        let loose = read.as_ref().is_ok_and(|t| matches!(t.format, "gpu-text" | "torch-text"));
        let reading = if read.is_err() || loose { evidence::read(&bytes) } else { Reading::default() };
        let explained = reading.evidence.error_kind().is_some() || reading.evidence.text("engine").is_some();
        let said =
            !reading.evidence.is_empty() || reading.format != "unknown" || !reading.warnings.is_empty();
        if (read.is_err() || loose && explained) && said {
            if args.format == ReadFormat::Text {
                if args.files.len() > 1 {
                    writeln!(out, "{}:", path.display())?;
                }
                told(lang, &reading, &mut out)?;
            } else {
                let mut document = reading.to_json(|warning| message(lang, warning));
                if args.files.len() > 1 {
                    document["file"] = path.display().to_string().into();
                }
                documents.push(document);
            }
            refused |= reading.evidence.is_empty();
            continue;
        }
        refused |= read.is_err();
        if args.format == ReadFormat::Text {
            if args.files.len() > 1 {
                writeln!(out, "{}:", path.display())?;
            }
            match read {
                Ok(timeline) => {
                    for line in reading_lines(lang, &timeline, &trace::classify(&timeline)) {
                        writeln!(out, "{line}")?;
                    }
                }
                Err(refusal) => writeln!(out, "{}", message(lang, &refusal.message))?,
            }
            continue;
        }
        let mut document = match read {
            Ok(timeline) => reading_json(lang, &timeline, &trace::classify(&timeline)),
            Err(refusal) => refusal_json(lang, &refusal),
        };
        if args.files.len() > 1 {
            document["file"] = path.display().to_string().into();
        }
        documents.push(document);
    }
    match (args.format, documents.as_slice()) {
        (ReadFormat::Text, _) => {}
        (ReadFormat::Json, [one]) => writeln!(out, "{one:#}")?,
        (ReadFormat::Json, _) => writeln!(out, "{:#}", Value::Array(documents))?,
        (ReadFormat::Jsonl, all) => {
            for document in all {
                writeln!(out, "{document}")?;
            }
        }
    }
    out.flush()?;
    Ok(if refused { 2 } else { 0 })
}
