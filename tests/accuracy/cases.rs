//! Cases: a Scenario and the figures that other software printed for it. Shared by `make accuracy` and by the
//! tests of the core (which include this file).
//!
//! One JSON object per line: `{"id", "source", "scenario": {…}, "expect": [{"path", "value", "rel_tol"}]}`; an
//! expectation may have a `label` (its line in the table) and `half_unit` (half of the last digit printed). A line
//! `{"id", "source", "unchecked": why}` names a printed figure that no case can be made of.
//! `scenario.model.config_file` may name a config: a file of the folder given, else the preset of that name.

#[path = "figures.rs"]
mod figures;
#[path = "summary.rs"]
pub mod summary;

pub use summary::summarise;

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
    /// Its line in the table.
    pub label: String,
    /// What was printed or measured.
    pub expected: Value,
    /// Half of the last digit printed.
    pub half_unit: f64,
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
        /// Low and high end, where the figure has a range.
        range: Option<(f64, f64)>,
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

impl Row {
    /// Whether the range shown holds what was printed, or anything that rounds to it; `None` without a range.
    pub fn held(&self) -> Option<bool> {
        let Outcome::Figure { range: Some((low, high)), .. } = &self.outcome else { return None };
        let printed = self.expected.as_f64().filter(|v| *v > 0.0)?;
        Some(*low <= printed + self.half_unit && printed - self.half_unit <= *high)
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
                label: one["label"].as_str().unwrap_or(path).to_owned(),
                half_unit: one["half_unit"].as_f64().unwrap_or(0.0),
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
            return if id.ends_with("not_modelled") {
                Outcome::NotModelled(said)
            } else {
                Outcome::Refused(said)
            };
        }
    };
    let Some(expected) = expected.as_f64() else {
        // A word, such as a verdict.
        return match lookup(result, path) {
            Some(got) => Outcome::Figure {
                error: if got == expected { 0.0 } else { f64::INFINITY },
                got: got.clone(),
                range: None,
            },
            None => Outcome::Refused(format!("the result has no {path}")),
        };
    };
    let Some(found) = figures::find(result, path) else {
        return Outcome::Refused(format!("the result has no {path}"));
    };
    let error = if found.value.to_bits() == expected.to_bits() {
        0.0
    } else if expected == 0.0 {
        f64::INFINITY
    } else {
        found.value / expected - 1.0
    };
    Outcome::Figure { got: json!(found.value), error, range: found.range }
}

/// A figure that is known to lie outside its tolerance, and why.
#[derive(serde::Deserialize)]
pub struct Miss {
    /// The case; `*` stands for any text.
    pub id: String,
    /// The figure, as the table names it.
    pub figure: String,
    /// The reason.
    pub why: String,
}

impl Miss {
    /// Whether it speaks of this expectation.
    pub fn covers(&self, row: &Row) -> bool {
        let mut rest = row.id.as_str();
        let parts: Vec<&str> = self.id.split('*').collect();
        let last = parts.len() - 1;
        let fits = parts.iter().enumerate().all(|(i, part)| {
            let at = if i == last && last > 0 {
                rest.ends_with(part).then(|| rest.len() - part.len())
            } else {
                rest.find(part).filter(|at| i > 0 || *at == 0)
            };
            at.is_some_and(|at| {
                rest = &rest[at + part.len()..];
                true
            })
        });
        fits && (last > 0 || rest.is_empty()) && self.figure == row.label
    }
}

/// Printed figures that no case can be made of: the row, and why.
pub fn unchecked(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of = |line: Value| {
        let word = |name: &str| line[name].as_str().map(str::to_owned);
        Some((word("id")?, word("unchecked")?))
    };
    lines.filter_map(of).collect()
}
