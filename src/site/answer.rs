//! From what was typed to the answer, and what stays on screen while something typed cannot be used.

use crate::browser::timed;
use crate::form::Form;
use leptos::prelude::*;
use oom_ledger_core::plan::Estimate;
use oom_ledger_core::share::{Report, Resolved, Scenario};
use oom_ledger_core::units::{Message, Problem};
use std::sync::Arc;

/// An answer and the question it answers.
#[derive(Clone, Debug)]
pub struct Good {
    /// The document.
    pub scenario: Scenario,
    /// Names looked up.
    pub resolved: Resolved,
    /// The ledger.
    pub estimate: Estimate,
    /// The ledger as rows, as the command line and the Markdown show it too.
    pub report: Report,
}

/// What is on screen.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The last question that could be answered.
    pub good: Option<Arc<Good>>,
    /// What is wrong with what is typed now; then `good` is older than the form.
    pub problems: Vec<Problem>,
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.good, &other.good) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same && self.problems == other.problems
    }
}

/// Form and answer, shared by all parts of the page.
#[derive(Clone, Copy)]
pub struct Session {
    /// What is typed.
    pub form: RwSignal<Form>,
    /// A link or a file that could not be read; the form is not touched by it.
    pub link: RwSignal<Option<Problem>>,
    /// What a person should know about the files that were read last.
    pub notes: RwSignal<Vec<Message>>,
    /// What is on screen.
    pub answer: Memo<Answer>,
    /// Counts choices that history should remember; typing does not count.
    pub steps: RwSignal<u64>,
}

impl Session {
    /// A session on the first form.
    pub fn start() -> Session {
        let form = RwSignal::new(Form::first());
        let answer = Memo::new(move |before: Option<&Answer>| {
            form.with(|form| match timed("answer", || solve(form)) {
                Ok(good) => Answer { good: Some(Arc::new(good)), problems: Vec::new() },
                Err(problems) => Answer { good: before.and_then(|b| b.good.clone()), problems },
            })
        });
        Session {
            form,
            link: RwSignal::new(None),
            notes: RwSignal::new(Vec::new()),
            answer,
            steps: RwSignal::new(0),
        }
    }

    /// Sets a field; `choice` makes it a step of history.
    pub fn set(self, path: &'static str, value: &str, choice: bool) {
        if choice {
            self.steps.update(|n| *n += 1);
        }
        self.link.set(None);
        self.form.update(|form| form.set(path, value));
    }

    /// The problem with the field at `path`, if any.
    pub fn wrong(self, path: &'static str) -> Option<Problem> {
        self.answer.with(|answer| answer.problems.iter().find(|p| p.field == path).cloned())
    }
}

fn solve(form: &Form) -> Result<Good, Vec<Problem>> {
    let scenario = form.scenario()?;
    let resolved = scenario.resolve().map_err(|p| vec![p])?;
    let estimate = resolved.estimate().map_err(|p| vec![p])?;
    let report = Report::new(&scenario, &resolved, &estimate);
    Ok(Good { scenario, resolved, estimate, report })
}
