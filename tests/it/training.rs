//! Tests of training against traces of real steps.

use oom_ledger_core::engines::training::{Lora, Precision, Targets, TrainInputs, TrainSettings, ledger};
use oom_ledger_core::hardware::Device;
use oom_ledger_core::memory::{Ledger, Measured, Parallel, PhaseId, TermId, WeightsSpec};
use oom_ledger_core::model::{Model, preset};
use oom_ledger_core::units::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Fixture {
    /// Configs of models that are no presets.
    #[serde(default)]
    configs: BTreeMap<String, Value>,
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
    serde_json::from_str::<Fixture>(text).expect("fixture").rows
}

/// Steps that the rules were not made on: other classes, shapes, optimizers, adapters.
fn own() -> Fixture {
    serde_json::from_str(include_str!("../fixtures/training/own-traces.json")).expect("fixture")
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
fn own_traces_are_met() {
    let own = own();
    let mut errors = Vec::new();
    for row in &own.rows {
        let model = match own.configs.get(&row.model) {
            Some(config) => Model::from_config(&row.model, config).expect(&row.id),
            None => model(&row.model, row.layers),
        };
        let answer = answer(&model, &row.train).expect(&row.id);
        let of = |id| answer.phase(id).map_or(0, |p| p.allocated_bytes);
        for (given, counted) in [
            (of(PhaseId::Forward), row.forward),
            (of(PhaseId::Backward), row.backward),
            (of(PhaseId::OptimizerStep), row.optimizer_step),
        ] {
            let ppm = given.abs_diff(counted) * 1_000_000 / counted;
            assert!(ppm <= 3_000, "{}: {given}, counted {counted}", row.id);
            errors.push(ppm);
        }
        let of = |id| answer.term(id).map_or(0, |t| t.bytes);
        // Fake CPU tensors count the step counters, which a device keeps on the host; longrope registers a buffer late.
        let on_host = if row.train.precision == Precision::Bf16 { 512 } else { 1 << 16 };
        assert!(of(TermId::Weights).abs_diff(row.weights) <= VISION, "{}", row.id);
        assert!(of(TermId::Gradients).abs_diff(row.gradients) <= 1 << 12, "{}", row.id);
        assert!(of(TermId::OptimizerStates).abs_diff(row.optimizer_states) <= on_host, "{}", row.id);
    }
    errors.sort_unstable();
    assert_eq!(errors[errors.len() / 2], 0, "median");
}

/// Bytes of buffers in a vision tower that its tensors do not show.
const VISION: u64 = 1 << 16;

#[derive(Deserialize)]
struct Sharded {
    id: String,
    model: String,
    layers: u64,
    data: u64,
    train: TrainSettings,
    forward: u64,
    backward: u64,
    weights: u64,
    optimizer_states: u64,
}

fn spread(model: &Model, train: &TrainSettings, data: u64) -> Ledger {
    ledger(&TrainInputs {
        model,
        device: &Device { count: data, ..device() },
        parallel: Parallel { data, ..Parallel::default() },
        weights: &WeightsSpec::default(),
        train,
        measured: Measured::default(),
    })
    .expect("ledger")
}

#[test]
fn sharded_steps_are_exact() {
    #[derive(Deserialize)]
    struct Rows {
        rows: Vec<Sharded>,
    }
    let text = include_str!("../fixtures/training/oracle-fsdp.json");
    for row in serde_json::from_str::<Rows>(text).expect("fixture").rows {
        let answer = spread(&model(&row.model, row.layers), &row.train, row.data);
        let of = |id| answer.phase(id).map_or(0, |p| p.allocated_bytes);
        assert_eq!(of(PhaseId::Forward), row.forward, "{}", row.id);
        assert_eq!(of(PhaseId::Backward), row.backward, "{}", row.id);
        let of = |id| answer.term(id).map_or(0, |t| t.bytes);
        assert_eq!(of(TermId::Weights), row.weights, "{}", row.id);
        assert_eq!(of(TermId::OptimizerStates), row.optimizer_states, "{}", row.id);
    }
}

#[test]
fn each_stage_shares_more() {
    let model = model("llama-3.1-8b", 32);
    let n = model.parameters;
    let states = |stage, data| {
        let train =
            TrainSettings { zero_stage: stage, precision: Precision::Bf16Master, ..TrainSettings::default() };
        let answer = spread(&model, &train, data);
        [TermId::Weights, TermId::Gradients, TermId::MasterWeights, TermId::OptimizerStates]
            .map(|id| answer.term(id).map_or(0, |t| t.bytes))
    };
    let whole = [2 * n, 4 * n, 4 * n, 8 * n];
    let first = [3, 2, 1, 1];
    for stage in 0..=3 {
        for data in [1, 8, 64] {
            for ((bytes, whole), first) in states(stage, data).into_iter().zip(whole).zip(first) {
                let wanted = if stage >= first { whole / data } else { whole };
                assert!(bytes.abs_diff(wanted) <= 1 << 20, "stage {stage}, {data} ranks: {bytes} {wanted}");
            }
        }
    }
}

#[test]
fn what_is_not_modelled_is_refused_by_its_field() {
    let model = model("llama-3.2-1b", 2);
    let refusal = |train: TrainSettings| answer(&model, &train).expect_err("refused").field;
    let default = TrainSettings::default;
    assert_eq!(refusal(TrainSettings { offload_params: true, ..default() }), "job.train.offload_params");
    assert_eq!(refusal(TrainSettings { fsdp: Some("full".into()), ..default() }), "job.train.fsdp");
    let nf4 = Some("bnb-nf4".to_owned());
    assert_eq!(refusal(TrainSettings { base_quantization: nf4, ..default() }), "job.train.base_quantization");
}

#[test]
fn a_quantised_base_restores_one_matrix_at_a_time() {
    let model = model("llama-3.1-8b", 32);
    let lora = Some(Lora { rank: 16, targets: Targets::Named("all-linear".to_owned()) });
    let plain = TrainSettings { lora, ..TrainSettings::default() };
    let nf4 = TrainSettings { base_quantization: Some("bnb-nf4".to_owned()), ..plain.clone() };
    let (plain, nf4) = (answer(&model, &plain).expect("plain"), answer(&model, &nf4).expect("nf4"));
    let of = |l: &Ledger, id| l.term(id).map_or(0, |t| t.bytes);
    // Half a byte a weight in the layers; embedding and head stay in 16 bits.
    let saved = of(&plain, TermId::Weights) - of(&nf4, TermId::Weights);
    assert!((9 << 30..11 << 30).contains(&saved), "{saved}");
    assert_eq!(of(&plain, TermId::Gradients), of(&nf4, TermId::Gradients));
    assert_eq!(of(&plain, TermId::OptimizerStates), of(&nf4, TermId::OptimizerStates));
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

/// Accepted settings, extremes among them: answered or refused, never a panic.
mod extremes {
    use super::{Model, TrainSettings, answer};
    use oom_ledger_core::model::PRESETS;
    use oom_ledger_core::share::{Kind, field, paths};
    use proptest::prelude::*;
    use proptest::sample::Index;
    use serde_json::{Map, Value, json};

    fn value(kind: Kind, which: Index, share: f64) -> Value {
        match kind {
            Kind::Whole(low, high) => match which.index(3) {
                0 => json!(low),
                1 => json!(high),
                _ => json!(((high as f64).powf(share) as u64).clamp(low, high)),
            },
            Kind::Flag => json!(share > 0.5),
            Kind::Choice(all) => json!(which.get(all)),
            Kind::Names => json!("all-linear"),
            Kind::Object(fields) => {
                let inner = fields.iter().map(|f| (f.name.to_owned(), value(f.kind, which, share)));
                Value::Object(inner.collect())
            }
            _ => Value::Null,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn no_accepted_setting_breaks_a_step(
            preset in any::<Index>(),
            choices in prop::collection::vec((any::<Index>(), any::<Index>(), 0.0..1.0f64), 0..6),
        ) {
            let model: Model = preset.get(PRESETS).model_with(&Map::new()).unwrap();
            let mut doc = Map::new();
            let names: Vec<_> = paths().into_iter().filter(|p| p.starts_with("job.train.")).collect();
            for (name, which, share) in choices {
                let path = name.get(&names).splitn(4, '.').take(3).collect::<Vec<_>>().join(".");
                let given = value(field(&path).unwrap(), which, share);
                if !given.is_null() {
                    doc.insert(path.rsplit('.').next().unwrap().to_owned(), given);
                }
            }
            let train: TrainSettings = serde_json::from_value(Value::Object(doc)).unwrap();
            if let Ok(answer) = answer(&model, &train) {
                for term in &answer.terms {
                    prop_assert!(term.low <= term.bytes && term.bytes <= term.high, "{term:?} {train:?}");
                }
                prop_assert!(answer.peak.low <= answer.peak_bytes && answer.peak_bytes <= answer.peak.high);
            }
        }
    }
}
