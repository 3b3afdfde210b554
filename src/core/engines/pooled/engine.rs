//! An engine whose whole answer is a [`Plan`].

use super::Plan;
use crate::engines::{Detail, Engine, EngineOption, Inputs, Surface};
use crate::memory::Ledger;
use crate::units::{Message, Problem};

/// Name, options and rules of one engine; ledger and surface follow.
pub(in crate::engines) struct Pooled {
    pub(in crate::engines) id: &'static str,
    pub(in crate::engines) name: &'static str,
    pub(in crate::engines) options: &'static [EngineOption],
    /// Everything that the engine says about a job.
    pub(in crate::engines) plan: fn(&Inputs<'_>, Detail) -> Result<Plan, Problem>,
}

impl Pooled {
    fn answer(&self, inputs: &Inputs<'_>, detail: Detail) -> Result<Ledger, Problem> {
        let serve = inputs.serve;
        let tokens = serve.prompt_tokens.saturating_add(serve.new_tokens);
        (self.plan)(inputs, detail)?.ledger(serve.sequences, tokens)
    }
}

impl Engine for Pooled {
    fn id(&self) -> &'static str {
        self.id
    }
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [EngineOption] {
        self.options
    }
    fn ledger(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        self.answer(inputs, Detail::Whole)
    }
    fn figures(&self, inputs: &Inputs<'_>) -> Result<Ledger, Problem> {
        self.answer(inputs, Detail::Figures)
    }
    fn surface(&self, inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
        Ok((self.plan)(inputs, Detail::Figures)?.surface())
    }
}

/// What is said where the version was not given, or is none whose rules are known.
pub(in crate::engines) fn assumed_version(
    inputs: &Inputs<'_>,
    assumed: bool,
    taken: &'static str,
) -> Option<Message> {
    assumed.then(|| {
        let message = match inputs.serve.engine_version.as_deref() {
            Some(given) => Message::new("pooled.version_assumed").with("given", given),
            None => Message::new("pooled.version_not_given"),
        };
        message.with("taken", taken)
    })
}
