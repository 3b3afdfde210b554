//! What engines share that reserve a pool for keys and values at start-up: figures with ranges, the rows of the
//! ledger, the widest point of a forward pass, and the answer built from them.

mod engine;
mod forward;
mod plan;
mod release;
mod rows;
mod span;

pub(super) use engine::{Pooled, assumed_version};
pub(super) use forward::{encoder_elements, product, stages, widest_layer};
pub(super) use plan::{Plan, Pool, Row, Sampler, Window};
pub(super) use release::release;
pub(super) use rows::{RUNNING, SERVING, STARTED, communication, measured, other_processes, phase, row};
pub(super) use span::{End, Span};
