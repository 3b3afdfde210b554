//! One step: forward, backward, optimizer, each with its highest moment.

use super::decoder::Outcome;
use super::graph::{Graph, Rules};
use super::ops::I64;
use super::pool::{Kind, Moment, Pool};
use super::program::Program;
use super::states::States;
use crate::units::{Overflow, Problem};
use std::rc::Rc;

/// The highest moments of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    pub(super) load: Moment,
    pub(super) forward: Moment,
    pub(super) backward: Moment,
    pub(super) optimizer: Moment,
}

/// Runs one step of `program` with `states` in place.
pub(super) fn run(program: &Program<'_>, states: &States, rules: Rules) -> Result<Step, Problem> {
    let pool = Rc::new(Pool::default());
    let mut resident = vec![
        pool.take("weights", states.weights, Kind::Weights),
        pool.take("buffers", program.buffers(), Kind::Weights),
    ];
    pool.start();
    let load = pool.peak();
    resident.push(pool.take("master", states.master, Kind::Master));
    resident.push(pool.take("states", states.optimizer - states.paged, Kind::States));
    resident.push(pool.take("buckets", states.buckets, Kind::Gathered));
    if rules.accumulated {
        resident.push(pool.take("gradients", states.gradients, Kind::Gradients));
    }
    let graph = Graph::new(&pool, rules);
    let ids = graph.constant("input_ids", program.t(), I64);
    let padding = program.train.padding_mask.then(|| graph.constant("attention_mask", program.t(), I64));
    pool.start();
    let Outcome { loss, logits } = program.forward(&graph, &ids);
    let logits = logits.filter(|_| program.train.hold_outputs);
    let forward = pool.peak();
    pool.start();
    let seed = graph.new_like("ones_like", &loss.data, loss.data.e);
    if let Some(shards) = &program.shards {
        shards.before_backward(&graph);
    }
    graph.backward(&loss, seed.clone(), 0);
    if let Some(shards) = &program.shards {
        shards.finish(&graph);
    }
    let backward = pool.peak();
    drop(seed);
    drop((logits, loss));
    ids.data.set_kind(Kind::Activations);
    pool.start();
    let gradients = graph.take_gradients();
    let transient = pool.take("optimizer", states.transient, Kind::OptimizerTransient);
    let optimizer = pool.peak();
    drop((transient, gradients, resident, padding));
    if let Some(shards) = &program.shards {
        shards.clear();
    }
    if pool.overflowed() {
        return Err(Overflow.into());
    }
    Ok(Step { load, forward, backward, optimizer })
}
