//! `device_map` of the transformers engine against the maps that transformers itself makes.

use oom_ledger_core::engines::{Inputs, ServeSettings, engine};
use oom_ledger_core::hardware::Device;
use oom_ledger_core::memory::{Measured, Parallel, TermId, WeightsSpec};
use oom_ledger_core::model::{DType, preset};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    model: String,
    device_map: String,
    count: u64,
    free_bytes: u64,
    devices: Vec<u64>,
    host: u64,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../fixtures/transformers/device-map.json");
    serde_json::from_str::<Fixture>(text).expect("fixture").rows
}

fn ask<T>(row: &Row, serve: &ServeSettings, ask: impl Fn(&Inputs<'_>) -> T) -> T {
    let none = serde_json::Map::new();
    let model = preset(&row.model).expect("preset").model_with(&none).expect("model");
    let device =
        Device { gpu: None, total_bytes: row.free_bytes, count: row.count, other_processes_bytes: 0 };
    let weights = WeightsSpec { dtype: DType::Bf16, ..WeightsSpec::default() };
    // No context: all of the device is free.
    let measured = Measured { non_torch_bytes: Some(0), ..Measured::default() };
    ask(&Inputs {
        model: &model,
        device: &device,
        parallel: Parallel::default(),
        weights: &weights,
        serve,
        measured,
        draft: None,
    })
}

fn settings(row: &Row) -> ServeSettings {
    ServeSettings {
        engine: "transformers".to_owned(),
        device_map: Some(row.device_map.clone()),
        prompt_tokens: 128,
        new_tokens: 2,
        ..ServeSettings::default()
    }
}

/// Which device holds how many bytes of weights, to the byte.
#[test]
fn weights_go_where_transformers_puts_them() {
    let mut wrong = Vec::new();
    for row in rows() {
        let ledger = ask(&row, &settings(&row), |i| engine("transformers").unwrap().ledger(i).unwrap());
        let mut found = vec![0; row.devices.len()];
        for rank in &ledger.ranks {
            found[rank.first as usize] = rank.weights_bytes;
        }
        if ledger.ranks.is_empty() {
            let alone = row.devices.iter().position(|b| *b > 0).unwrap_or(0);
            found[alone] = ledger.term(TermId::Weights).expect("weights").bytes;
        }
        let host: u64 = ledger.host.iter().map(|t| t.bytes).sum();
        if (&found, host) != (&row.devices, row.host) {
            wrong.push(format!(
                "{} {} {} x {}: {found:?} {host} for {:?} {}",
                row.model, row.device_map, row.count, row.free_bytes, row.devices, row.host
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows().len(), wrong.join("\n"));
}

/// The fullest device is shown, every device has a line, and the surface says the same.
#[test]
fn the_fullest_device_is_shown() {
    for row in rows().iter().step_by(7) {
        let serve = settings(row);
        let ledger = ask(row, &serve, |i| engine("transformers").unwrap().ledger(i).unwrap());
        let highest = ledger.ranks.iter().map(|r| r.peak_bytes).max().unwrap_or(ledger.peak_bytes);
        assert_eq!(highest, ledger.peak_bytes);
        let surface = ask(row, &serve, |i| engine("transformers").unwrap().surface(i).unwrap());
        for (sequences, prompt_tokens, new_tokens) in [(1, 128, 2), (3, 2000, 30), (16, 512, 1)] {
            let serve = ServeSettings { sequences, prompt_tokens, new_tokens, ..serve.clone() };
            let ledger = ask(row, &serve, |i| engine("transformers").unwrap().ledger(i).unwrap());
            let point = surface.at(sequences, prompt_tokens, new_tokens);
            assert!(point.peak_bytes.abs_diff(ledger.peak_bytes) <= 16 << 10, "{}", row.model);
            assert!(point.high_bytes.abs_diff(ledger.peak.high) <= 16 << 10, "{}", row.model);
        }
    }
}
