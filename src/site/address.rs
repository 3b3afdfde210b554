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
}

impl Address {
    /// Reads the address, follows history, and writes every answered question back.
    pub fn start(session: Session) -> Address {
        let address = Address { page: RwSignal::new(PAGES[0].id) };
        let steps_written = StoredValue::new(0);
        // What the address says; an equal document is not written again.
        let stands = StoredValue::new(String::new());
        let read = move || {
            let fragment = browser::fragment();
            let (page, link) = fragment.split_once('/').unwrap_or((&fragment, ""));
            address.page.set(crate::pages::page(page).id);
            if !link.is_empty() {
                stands.set_value(link.to_owned());
                match Scenario::from_permalink(link) {
                    Ok(scenario) => {
                        session.link.set(None);
                        session.form.set(Form::of(&scenario));
                    }
                    Err(problem) => session.link.set(Some(problem)),
                }
            } else if fragment.is_empty() && !stands.get_value().is_empty() {
                stands.set_value(String::new());
                session.form.set(Form::first());
            }
        };
        read();
        browser::on_address(read);
        Effect::new(move |before: Option<()>| {
            let steps = session.steps.get();
            let Some(good) = session.answer.with(|a| a.problems.is_empty().then(|| a.good.clone())).flatten()
            else {
                return;
            };
            if session.link.with_untracked(Option::is_some) {
                return;
            }
            let Ok(link) = good.scenario.permalink() else { return };
            let new_step = steps != steps_written.get_value();
            steps_written.set_value(steps);
            // The first answer stands under the bare address.
            if before.is_none() && stands.get_value().is_empty() {
                stands.set_value(String::new());
                return;
            }
            if stands.get_value() != link {
                browser::set_fragment(&format!("{}/{link}", PAGES[0].id), new_step);
                stands.set_value(link);
            }
        });
        address
    }
}
