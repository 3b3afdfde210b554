//! Cases: a Scenario and the figures that other software printed for it. Shared by `make accuracy` and by the
//! tests of the core (which include this file).
//!
//! One JSON object per line: `{"id", "source", "scenario": {…}, "expect": [{"path", "value", "rel_tol"}]}`.
//! `scenario.model.config_file` may name a config: a file of the folder given, else the preset of that name.

use oom_ledger_core::share::{Scenario, lookup, run};
use oom_ledger_core::units::Problem;
use serde_json::{Value, json};
use std::path::Path;

/// One expectation of one case, and what the core said.
pub struct Row {
    /// The case.
    pub id: String,
    /// Cases of one kind: engine, and for transformers attention and cache.
    pub group: String,
    /// The figure.
    pub path: String,
    /// What was printed or measured.
    pub expected: Value,
    /// Tolerance of the case file, relative.
    pub tolerance: f64,
    /// What the core answers.
    pub outcome: Outcome,
}

/// What the core answers to an expectation.
pub enum Outcome {
    /// A figure.
    Figure {
        /// The figure, or text (a verdict).
        got: Value,
        /// Relative error, with sign.
        error: f64,
    },
    /// The kind of case is not modelled, and the core says so.
    NotModelled(String),
    /// The core refuses the case, or has no such figure: counts as a miss.
    Refused(String),
}

impl Row {
    /// Whether the figure is within its tolerance.
    pub fn within(&self) -> bool {
        matches!(&self.outcome, Outcome::Figure { error, .. } if error.abs() <= self.tolerance)
    }
}

/// Every expectation of a case file.
///
/// Errors: the line that is no case, and why.
pub fn evaluate(text: &str, configs: Option<&Path>) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).map_err(|e| format!("line {}: {e}", index + 1))?;
        let (Some(scenario), Some(expect)) = (case.get("scenario"), case.get("expect")) else {
            // Files of measured rows hold some that are not cases: geometry, notes.
            continue;
        };
        let id = case["id"].as_str().map_or_else(|| format!("line {}", index + 1), str::to_owned);
        let answer = answer(scenario.clone(), configs);
        let expect = expect.as_array().ok_or_else(|| format!("line {}: expect is no list", index + 1))?;
        for one in expect {
            let path = one["path"].as_str().ok_or_else(|| format!("line {}: no path", index + 1))?;
            rows.push(Row {
                id: id.clone(),
                group: group(scenario),
                path: path.to_owned(),
                expected: one["value"].clone(),
                tolerance: one["rel_tol"].as_f64().unwrap_or(0.0),
                outcome: outcome(&answer, path, &one["value"]),
            });
        }
    }
    Ok(rows)
}

fn answer(mut scenario: Value, configs: Option<&Path>) -> Result<Value, Problem> {
    if let Some(model) = scenario.get_mut("model").and_then(Value::as_object_mut)
        && let Some(Value::String(file)) = model.remove("config_file")
    {
        let config = configs
            .and_then(|folder| std::fs::read_to_string(folder.join(&file)).ok())
            .and_then(|text| serde_json::from_str(&text).ok());
        match config {
            Some(config) => model.insert("config".to_owned(), config),
            None => model.insert("preset".to_owned(), json!(file.trim_end_matches(".json"))),
        };
    }
    // The makers of measured rows name the flash-attention package, emulated on tensors without data, so.
    if let Some(attention) = scenario.pointer_mut("/job/serve/attention")
        && attention == "fa2_fake"
    {
        *attention = json!("flash");
    }
    let estimate = run(&Scenario::from_json(scenario)?)?;
    Ok(serde_json::to_value(estimate).unwrap_or_default())
}

fn group(scenario: &Value) -> String {
    let Some(serve) = scenario.pointer("/job/serve") else { return "training".to_owned() };
    let engine = serve["engine"].as_str().unwrap_or("vllm");
    if engine != "transformers" {
        return engine.to_owned();
    }
    let or = |name: &str, default: &str| serve[name].as_str().unwrap_or(default).to_owned();
    format!("{engine} {} {}", or("attention", "flash"), or("cache", "dynamic"))
}

fn outcome(answer: &Result<Value, Problem>, path: &str, expected: &Value) -> Outcome {
    let result = match answer {
        Ok(result) => result,
        Err(problem) => {
            let said = oom_ledger_core::text::message(oom_ledger_core::text::Lang::En, &problem.message);
            let id = problem.message.id;
            return if id.ends_with("not_modelled") || id == "scenario.train" {
                Outcome::NotModelled(said)
            } else {
                Outcome::Refused(said)
            };
        }
    };
    let Some(got) = lookup(result, path) else {
        return Outcome::Refused(format!("the result has no {path}"));
    };
    let error = match (got.as_f64(), expected.as_f64()) {
        (Some(got), Some(expected)) if got.to_bits() == expected.to_bits() => 0.0,
        (Some(got), Some(expected)) if expected != 0.0 => got / expected - 1.0,
        _ if got == expected => 0.0,
        _ => f64::INFINITY,
    };
    Outcome::Figure { got: got.clone(), error }
}

/// The errors of one kind of figure.
pub struct Summary {
    /// Kind of case.
    pub group: String,
    /// The figure.
    pub path: String,
    /// Expectations, those without an answer included.
    pub all: usize,
    /// Of these, not modelled.
    pub not_modelled: usize,
    /// Of these, refused or missing.
    pub refused: usize,
    /// Of these, within tolerance.
    pub within: usize,
    /// Absolute relative errors, sorted.
    pub errors: Vec<f64>,
}

impl Summary {
    /// The error that a share of all figures do not exceed; `None` without figures.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.errors.len().checked_sub(1)?;
        let at = (share * self.errors.len() as f64).ceil() as usize;
        self.errors.get(at.saturating_sub(1).min(last)).copied()
    }

    /// The middle error; with an even number, the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let n = self.errors.len();
        let upper = *self.errors.get(n / 2)?;
        let lower = if n.is_multiple_of(2) { *self.errors.get(n / 2 - 1)? } else { upper };
        Some(f64::midpoint(lower, upper))
    }

    /// The mean error.
    pub fn mean(&self) -> Option<f64> {
        (!self.errors.is_empty()).then(|| self.errors.iter().sum::<f64>() / self.errors.len() as f64)
    }
}

/// One summary per kind of case and figure, in order of first appearance.
pub fn summarise(rows: &[Row]) -> Vec<Summary> {
    let mut all: Vec<Summary> = Vec::new();
    for row in rows {
        let found = all.iter().position(|s| s.group == row.group && s.path == row.path);
        let at = found.unwrap_or_else(|| {
            let (group, path) = (row.group.clone(), row.path.clone());
            all.push(Summary {
                group,
                path,
                all: 0,
                not_modelled: 0,
                refused: 0,
                within: 0,
                errors: Vec::new(),
            });
            all.len() - 1
        });
        let summary = &mut all[at];
        summary.all += 1;
        summary.within += usize::from(row.within());
        match &row.outcome {
            Outcome::Figure { error, .. } => summary.errors.push(error.abs()),
            Outcome::NotModelled(_) => summary.not_modelled += 1,
            Outcome::Refused(_) => summary.refused += 1,
        }
    }
    for summary in &mut all {
        summary.errors.sort_by(f64::total_cmp);
    }
    all
}
