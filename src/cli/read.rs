//! `oom-ledger read`: what logs show.

use crate::args::{ReadArgs, ReadFormat};
use crate::{Failure, output};
use oom_ledger_core::share::{reading_json, reading_lines, refusal_json};
use oom_ledger_core::text::{Lang, message};
use oom_ledger_core::trace;
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

/// Reads every file; a file that is refused stops nothing, and makes the exit code 2.
pub fn run(args: &ReadArgs) -> Result<u8, Failure> {
    let lang = Lang::from(args.lang);
    let mut out = output::open(None)?;
    let mut documents: Vec<Value> = Vec::new();
    let mut refused = false;
    for path in &args.files {
        let read = trace::read(&bytes(path)?);
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
