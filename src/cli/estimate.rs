//! `oom-ledger estimate`.

use crate::args::{EstimateArgs, Format};
use crate::imports::Imports;
use crate::scenario::{Overlay, read, refuse};
use crate::{Failure, batch, output};
use oom_ledger_core::engines::engine;
use oom_ledger_core::memory::Verdict;
use oom_ledger_core::plan::{Estimate, option_limits};
use oom_ledger_core::share::{
    Layout, Report, Resolved, Scenario, advice_json, error_json, markdown, plain, result_json,
};
use oom_ledger_core::text::Lang;
use serde_json::{Value, json};

/// Columns, where the terminal does not say.
const WIDTH: usize = 100;

/// Runs the command; the exit code.
pub fn run(args: &EstimateArgs) -> Result<u8, Failure> {
    let lang = Lang::from(args.lang);
    let imports = Imports::new(lang, &args.import)?;
    let overlay = Overlay::new(lang, &args.fields, &imports.fields)?;
    let json = matches!(args.format, Format::Json | Format::Jsonl) && !args.permalink && args.batch.is_none();
    if !json {
        imports.tell(lang);
    }
    if args.batch.is_some() {
        return batch::run(args, &overlay);
    }
    let refused = |problem| refuse(lang, &problem);
    let mut doc = document(args, &overlay)?;
    overlay.apply(&mut doc);
    let scenario = Scenario::from_json(doc).map_err(refused)?;
    let resolved = scenario.resolve().map_err(refused)?;
    if args.permalink {
        let mut out = output::open(args.output.as_deref())?;
        writeln!(out, "{}", scenario.permalink().map_err(refused)?)?;
        out.flush()?;
        return Ok(0);
    }
    let answer = match resolved.estimate() {
        Ok(answer) => answer,
        Err(problem) => {
            // Who asked for JSON reads JSON, and learns what could be told of the model.
            if json {
                let mut error = error_json(lang, &problem, None, Some(resolved.model.parameters));
                imports.put_into(lang, &mut error);
                let mut out = output::open(args.output.as_deref())?;
                writeln!(out, "{error}")?;
                out.flush()?;
            }
            return Err(refused(problem));
        }
    };
    let report = || {
        let report = Report::new(&scenario, &resolved, &answer);
        if args.suggest { report.with_suggestions(&resolved) } else { report }
    };
    let result = || {
        let mut value = document_of(lang, args, &resolved, &answer);
        imports.put_into(lang, &mut value);
        value
    };
    let text = match args.format {
        Format::Json => {
            let pretty = serde_json::to_string_pretty(&result());
            pretty.unwrap_or_default() + "\n"
        }
        Format::Jsonl => result().to_string() + "\n",
        Format::Markdown => markdown(lang, &scenario, &report(), None),
        Format::Text => {
            let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
            let layout = Layout { width: columns.unwrap_or(WIDTH), workings: args.workings };
            plain(lang, &report(), layout)
        }
    };
    let mut out = output::open(args.output.as_deref())?;
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let code = u8::from(args.check && answer.verdict == Verdict::DoesNotFit);
    match written {
        // `--check | head` still answers with its code.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(code),
        other => other.map(|()| code).map_err(Failure::from),
    }
}

/// The result document, with suggestions where they were asked for.
pub fn document_of(lang: Lang, args: &EstimateArgs, resolved: &Resolved, answer: &Estimate) -> Value {
    let mut value = result_json(lang, answer);
    if resolved.train.is_none()
        && let Ok(engine) = engine(&resolved.serve.engine)
    {
        let more = serde_json::to_value(option_limits(engine, &resolved.inputs())).unwrap_or_default();
        if let (Some(limits), Value::Object(more)) = (value["limits"].as_object_mut(), more) {
            limits.extend(more);
        }
    }
    if args.suggest
        && let Some(suggestions) = resolved.suggestions()
    {
        value["suggestions"] = advice_json(lang, &suggestions);
    }
    value
}

/// The document before flags.
fn document(args: &EstimateArgs, overlay: &Overlay) -> Result<Value, Failure> {
    let lang = Lang::from(args.lang);
    if let Some(link) = &args.link {
        let fragment = link.rsplit('#').next().unwrap_or(link);
        let scenario = Scenario::from_permalink(fragment).map_err(|p| refuse(lang, &p))?;
        return Ok(scenario.to_short_json());
    }
    let Some(path) = &args.scenario else {
        if overlay.is_empty() {
            let sentence = "nothing to estimate: give a SCENARIO.json (or -), or --model and --gpu; \
                            --help shows examples";
            return Err(Failure::Input(sentence.to_owned()));
        }
        return Ok(json!({"schema": 1, "model": {}, "device": {}}));
    };
    Scenario::value_from_str(&read(path)?).map_err(|p| refuse(lang, &p))
}
