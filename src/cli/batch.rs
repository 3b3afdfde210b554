//! `oom-ledger estimate --batch`: one Scenario per line, one result per line.

use crate::args::{EstimateArgs, Format};
use crate::estimate::document_of;
use crate::scenario::Overlay;
use crate::{Failure, output};
use oom_ledger_core::memory::Verdict;
use oom_ledger_core::share::{Scenario, error_json};
use oom_ledger_core::text::Lang;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Answers every line in order. A line that cannot be used gets an error line and stops nothing; only
/// `--check` turns it into an exit code (2), since whoever reads results line by line sees it there.
pub fn run(args: &EstimateArgs, overlay: &Overlay) -> Result<u8, Failure> {
    let lang = Lang::from(args.lang);
    if args.format == Format::Markdown {
        return Err(Failure::Input(
            "--batch writes JSON lines; --format markdown is for one Scenario".into(),
        ));
    }
    let path = args.batch.as_deref().unwrap_or(Path::new("-"));
    let mut input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path);
        let file = file.map_err(|e| Failure::Input(format!("cannot read {}: {e}", path.display())))?;
        Box::new(BufReader::new(file))
    };
    let mut out = output::open(args.output.as_deref())?;
    let (mut number, mut bad, mut short) = (0u64, false, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|e| Failure::Input(format!("cannot read {}: {e}", path.display())))? == 0 {
            break;
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        let mut parameters = None;
        let ended = Scenario::value_from_str(text.trim_end()).and_then(|mut doc| {
            overlay.apply(&mut doc);
            let resolved = Scenario::from_json(doc)?.resolve()?;
            parameters = Some(resolved.model.parameters);
            let answer = resolved.estimate()?;
            let value = document_of(lang, args, &resolved, &answer);
            Ok((answer.verdict, value))
        });
        let value = match ended {
            Ok((verdict, value)) => {
                short |= verdict == Verdict::DoesNotFit;
                value
            }
            Err(mut problem) => {
                bad = true;
                // Broken JSON is on line 1 of its own document: here the line of the file helps.
                for (name, value) in &mut problem.message.args {
                    if *name == "line" {
                        *value = number.into();
                    }
                }
                error_json(lang, &problem, Some(number), parameters)
            }
        };
        // Each answer is out before the next line is read: the input may be a pipe that waits for it.
        if let Err(error) = writeln!(out, "{value}").and_then(|()| out.flush()) {
            // `--check | head` still answers with its code, which every line decides.
            if !args.check || error.kind() != std::io::ErrorKind::BrokenPipe {
                return Err(error.into());
            }
        }
    }
    Ok(match (args.check, bad, short) {
        (true, true, _) => 2,
        (true, false, true) => 1,
        _ => 0,
    })
}
