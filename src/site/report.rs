//! Stand-in until core's report lands.
use oom_ledger_core::memory::Working;
use oom_ledger_core::plan::Estimate;
use oom_ledger_core::share::{Resolved, Scenario};
use oom_ledger_core::text::Lang;
use oom_ledger_core::units::Message;

pub fn sentence(e: &Estimate) -> Message {
    Message::new("site.peak").with("x", e.peak_bytes)
}
pub fn question(_: &Scenario, r: &Resolved) -> String {
    r.model.name.clone()
}
pub fn formula_lines(w: &Working) -> Vec<String> {
    vec![w.formula.to_owned()]
}
pub fn markdown(_: Lang, _: &Scenario, _: &Resolved, _: &Estimate, _: Option<&str>) -> String {
    String::new()
}
