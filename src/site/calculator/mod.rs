//! The calculator: inputs on one side, the answer on the other.

mod actions;
mod advice;
mod bar;
mod charts;
mod checkpoint;
mod config;
mod device;
mod engine;
mod errors;
mod field;
mod inputs;
mod ledger;
mod model;
mod phases;
mod ranks;
mod summary;
mod training;
mod verdict;
mod working;

use crate::answer::{Good, Session};
use crate::words::t;
use leptos::prelude::*;
use std::sync::Arc;

/// The page.
pub fn view() -> AnyView {
    view! {
        <div class="calculator">
            <inputs::Inputs/>
            <Answers/>
        </div>
    }
    .into_any()
}

/// The last answer, and whether it is older than the form. Each part of the page takes it from here.
#[derive(Clone, Copy)]
pub struct Shown(Memo<Option<Pointer>>);

/// Compares by identity: an answer is never changed in place.
#[derive(Clone)]
struct Pointer(Arc<Good>);

impl PartialEq for Pointer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Shown {
    /// The answer, tracked.
    pub fn get(self) -> Option<Arc<Good>> {
        self.0.get().map(|p| p.0)
    }
}

#[component]
fn Answers() -> impl IntoView {
    let session = expect_context::<Session>();
    let shown = Shown(Memo::new(move |_| session.answer.with(|a| a.good.clone().map(Pointer))));
    provide_context(shown);
    let stale = move || session.answer.with(|a| !a.problems.is_empty());
    view! {
        <main class="answer" id="answer" tabindex="-1">
            <h1 class="visually-hidden">{t("page.calculator")}</h1>
            <errors::Errors/>
            <div class:stale=stale>
                <verdict::VerdictLine/>
                <bar::Bar/>
                <actions::Actions/>
                <advice::Advice/>
                <ledger::LedgerTable/>
                <ranks::Ranks/>
                <phases::Phases/>
                <summary::Summary/>
                <charts::Charts/>
            </div>
        </main>
    }
}
