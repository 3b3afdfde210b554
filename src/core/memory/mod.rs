//! Layer 2: the formulas, one file per term. Returns numbers and workings, never text.

pub mod context;
pub mod hf_forward;
pub mod kv_cache;
mod ledger;
mod parallel;
pub mod recurrent;
pub mod training;
pub mod weights;

pub use ledger::{
    DeviceBudget, KvSummary, Ledger, Part, Phase, PhaseId, Provenance, Range, RankShare, Residency, Symbol,
    Term, TermId, Verdict, Working, at_peak, highest, sum,
};
pub use parallel::{Measured, Parallel, WeightsSpec};
