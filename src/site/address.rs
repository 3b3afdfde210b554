//! The address: `#page` or `#calculator/1.…`, where the second part is the whole Scenario. Nothing of it is
//! ever sent to a server, since a fragment is not part of a request.

use crate::answer::Session;
use crate::browser;
use crate::form::Form;
use crate::pages::PAGES;
use leptos::prelude::*;
use oom_ledger_core::share::Scenario;

/// Where the person is.
#[derive(Clone, Copy)]
pub struct Address {
    /// Id of the page.
    pub page: RwSignal<&'static str>,
    /// The permalink that stands for what is on screen; empty for the first form.
    link: RwSignal<String>,
}

impl Address {
    /// Reads the address, follows history, and writes every answered question back.
    pub fn start(session: Session) -> Address {
        let address = Address { page: RwSignal::new(PAGES[0].id), link: RwSignal::new(String::new()) };
        address.read(session);
        browser::on_address(move || address.read(session));
        let steps_written = StoredValue::new(session.steps.get_untracked());
        Effect::new(move || {
            let steps = session.steps.get();
            let good = session.answer.with(|a| a.problems.is_empty().then(|| a.good.clone())).flatten();
            // What could not be read stays in the address until the person changes something.
            if session.link.get().is_some() {
                return;
            }
            let Some(good) = good else { return };
            let new_step = steps != steps_written.get_value();
            let Ok(link) = good.scenario.permalink() else { return };
            let first = address.link.with_untracked(String::is_empty)
                && session.form.with_untracked(|form| *form == Form::first());
            if first || address.link.get_untracked() == link {
                return;
            }
            // A browser may refuse when asked too often; the next change then writes both.
            if browser::set_fragment(&format!("{}/{link}", PAGES[0].id), new_step) {
                steps_written.set_value(steps);
                address.link.set(link);
            }
        });
        address
    }

    fn read(self, session: Session) {
        let fragment = browser::fragment();
        let (page, link) = fragment.split_once('/').unwrap_or((&fragment, ""));
        let page = crate::pages::page(page).id;
        // Setting it anew would draw the whole page anew.
        if self.page.get_untracked() != page {
            self.page.set(page);
        }
        if link.is_empty() {
            // The calculator's bare address is the first form; another page keeps what is there.
            if page == PAGES[0].id && self.link.with_untracked(|l| !l.is_empty()) {
                self.link.set(String::new());
                session.link.set(None);
                session.form.set(Form::first());
            }
            return;
        }
        if self.link.with_untracked(|l| l == link) {
            return;
        }
        self.link.set(link.to_owned());
        match Scenario::from_permalink(link) {
            Ok(scenario) => {
                session.link.set(None);
                session.form.set(Form::of(&scenario));
            }
            Err(problem) => session.link.set(Some(problem)),
        }
    }

    /// The address of a page, with what is on screen where the page shows it; tracked.
    pub fn of(self, page: &str) -> String {
        let link = self.link.get();
        if page == PAGES[0].id && !link.is_empty() { format!("#{page}/{link}") } else { format!("#{page}") }
    }
}
