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

/// The error of a figure in millionths of what was counted.
fn ppm(given: u64, counted: u64) -> u64 {
    given.abs_diff(counted) * 1_000_000 / counted.max(1)
}

#[test]
fn peaks_of_counted_steps() {
    let phases = [PhaseId::Forward, PhaseId::Backward, PhaseId::OptimizerStep];
    let mut errors: [Vec<(u64, String)>; 3] = Default::default();
    for row in rows() {
        let answer = answer(&model(&row.model, row.layers), &row.train).expect(&row.id);
        let counted = [row.forward, row.backward, row.optimizer_step];
        for ((phase, counted), errors) in phases.into_iter().zip(counted).zip(&mut errors) {
            let given = answer.phase(phase).expect("phase").allocated_bytes;
            errors.push((ppm(given, counted), format!("{} {} {:?}", row.id, row.model, row.train)));
        }
    }
    for (phase, mut errors) in phases.into_iter().zip(errors) {
        errors.sort();
        let (median, worst) = (errors[errors.len() / 2].0, errors.last().expect("rows"));
        assert!(median <= 10, "{}: median {median} ppm", phase.id());
        assert!(worst.0 <= WORST_PPM, "{}: {} ppm: {}", phase.id(), worst.0, worst.1);
    }
}

/// Largest error of a peak, in millionths.
const WORST_PPM: u64 = 5_000;

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
