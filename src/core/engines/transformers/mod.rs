//! transformers.

use super::{Engine, EngineOption, Inputs, Surface};
use crate::memory::Ledger;
use crate::units::{Message, Problem};

/// transformers.
pub(super) struct Transformers;

impl Engine for Transformers {
    fn id(&self) -> &'static str {
        "transformers"
    }
    fn name(&self) -> &'static str {
        "transformers"
    }
    fn options(&self) -> &'static [EngineOption] {
        &[]
    }
    fn ledger(&self, _: &Inputs<'_>) -> Result<Ledger, Problem> {
        Err(Problem::new("job.serve.engine", Message::new("problem.engine_not_modelled")))
    }
    fn surface(&self, _: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
        Err(Problem::new("job.serve.engine", Message::new("problem.engine_not_modelled")))
    }
}
