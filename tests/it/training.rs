//! Tests of training against traces of real steps.

use oom_ledger_core::engines::training::{TrainInputs, TrainSettings, ledger};
use oom_ledger_core::hardware::Device;
use oom_ledger_core::memory::{Ledger, Measured, Parallel, PhaseId, TermId, WeightsSpec};
use oom_ledger_core::model::{Model, preset};
use oom_ledger_core::units::Problem;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture<Row> {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    model: String,
    layers: u64,
    train: TrainSettings,
    forward: u64,
    backward: u64,
    optimizer_step: u64,
    weights: u64,
    gradients: u64,
    optimizer_states: u64,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../fixtures/training/oracle-train.json");
    serde_json::from_str::<Fixture<Row>>(text).expect("fixture").rows
}

fn model(id: &str, layers: u64) -> Model {
    let overrides = [("num_hidden_layers".to_owned(), layers.into())].into_iter().collect();
    preset(id).expect("preset").model_with(&overrides).expect("model")
}

fn device() -> Device {
    Device { gpu: None, total_bytes: 192 << 30, count: 1, other_processes_bytes: 0 }
}

fn answer(model: &Model, train: &TrainSettings) -> Result<Ledger, Problem> {
    ledger(&TrainInputs {
        model,
        device: &device(),
        parallel: Parallel::default(),
        weights: &WeightsSpec::default(),
        train,
        measured: Measured::default(),
    })
}

#[test]
fn peaks_of_counted_steps_are_exact() {
    for row in rows() {
        let answer = answer(&model(&row.model, row.layers), &row.train).expect(&row.id);
        let of = |id| answer.phase(id).map_or(0, |p| p.allocated_bytes);
        let what = format!("{} {} {:?}", row.id, row.model, row.train);
        assert_eq!(of(PhaseId::Forward), row.forward, "forward of {what}");
        assert_eq!(of(PhaseId::Backward), row.backward, "backward of {what}");
        assert_eq!(of(PhaseId::OptimizerStep), row.optimizer_step, "optimizer step of {what}");
    }
}

#[test]
fn states_of_counted_steps_are_exact() {
    for row in rows() {
        let answer = answer(&model(&row.model, row.layers), &row.train).expect(&row.id);
        let of = |id| answer.term(id).map_or(0, |t| t.bytes);
        assert_eq!(of(TermId::Weights), row.weights, "{}", row.id);
        assert_eq!(of(TermId::Gradients), row.gradients, "{}", row.id);
        assert_eq!(of(TermId::OptimizerStates), row.optimizer_states, "{}", row.id);
    }
}

#[test]
fn a_phase_is_the_sum_of_its_terms() {
    for row in rows() {
        let answer = answer(&model(&row.model, row.layers), &row.train).expect(&row.id);
        for phase in &answer.phases {
            let alive = answer.terms.iter().filter(|t| t.phases.contains(&phase.id));
            assert_eq!(alive.map(|t| t.bytes).sum::<u64>(), phase.peak_bytes, "{} {}", row.id, phase.id.id());
        }
    }
}
