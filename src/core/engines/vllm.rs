//! vLLM.

use super::{Engine, EngineOption, Inputs, Surface};
use crate::memory::Ledger;
use crate::units::{Message, Problem};

/// vLLM.
pub(super) struct Vllm;

impl Engine for Vllm {
    fn id(&self) -> &'static str {
        "vllm"
    }
    fn name(&self) -> &'static str {
        "vLLM"
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
