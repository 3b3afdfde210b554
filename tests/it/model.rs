//! Configs become tensors: counts and shapes equal those of the Hugging Face classes.
//!
//! `fixtures/model/params.json` lists the parameters of each class, instantiated without data (transformers
//! 5.24.0 on the meta device, bf16); `parameters` and `groups` of 57 rows equal an independent listing.

use oom_ledger_core::model::{AttentionKind, DType, Layer, Model, PRESETS, TensorGroup, preset};
use oom_ledger_core::units::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Row {
    id: String,
    class: String,
    parameters: u64,
    groups: Vec<String>,
    /// What transformers' cache keeps of each layer, in runs, as `SlidingWindow4096*3`.
    kinds: Option<Vec<String>>,
    /// The config, where it is not that of the preset `id`.
    config: Option<Value>,
}

fn rows(text: &str) -> Vec<Row> {
    serde_json::from_str(text).unwrap()
}

fn model_of(row: &Row) -> Result<Model, Problem> {
    match &row.config {
        Some(config) => Model::from_config(&row.id, config),
        None => preset(&row.id).unwrap().model(),
    }
}

/// `name shape count` of every group, counts of equal names and shapes summed, as the fixture writes them.
fn listing(tensors: &[TensorGroup]) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for t in tensors {
        let shape: Vec<_> = t.shape.iter().map(u64::to_string).collect();
        let fp32 = if t.dtype == Some(DType::Fp32) { " fp32" } else { "" };
        *out.entry(format!("{} {}{fp32}", t.name, shape.join("x"))).or_default() += t.count;
    }
    out
}

fn expected(row: &Row) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for group in &row.groups {
        let parts: Vec<_> = group.split(' ').collect();
        let fp32 = if parts.len() > 3 { " fp32" } else { "" };
        *out.entry(format!("{} {}{fp32}", parts[0], parts[1])).or_default() +=
            parts[2].parse::<u64>().unwrap();
    }
    out
}

/// The layers in runs, as the fixture writes them.
fn kinds(layers: &[Layer]) -> Vec<String> {
    let name = |layer: &Layer| match layer.attention.kind {
        AttentionKind::Full { .. } | AttentionKind::Mla { .. } => String::new(),
        AttentionKind::Sliding { window, .. } => format!("SlidingWindow{window}"),
        AttentionKind::Chunked { chunk, .. } => format!("SlidingWindow{chunk}"),
        AttentionKind::Recurrent(_) => "LinearAttention".to_owned(),
        AttentionKind::None => "Dummy".to_owned(),
    };
    layers.chunk_by(|a, b| name(a) == name(b)).map(|run| format!("{}*{}", name(&run[0]), run.len())).collect()
}

fn check(row: &Row, model: &Model, wrong: &mut Vec<String>) {
    let (have, want) = (listing(&model.tensors), expected(row));
    for (group, count) in &want {
        if have.get(group) != Some(count) {
            wrong.push(format!("{}: want {group} {count}, have {:?}", row.id, have.get(group)));
        }
    }
    for (group, count) in &have {
        if !want.contains_key(group) {
            wrong.push(format!("{}: unexpected {group} {count}", row.id));
        }
    }
    if let Some(want) = &row.kinds
        && kinds(&model.layers) != *want
    {
        wrong.push(format!("{}: layers {:?}, want {want:?}", row.id, kinds(&model.layers)));
    }
    if model.parameters != row.parameters {
        wrong.push(format!("{}: {} parameters, want {}", row.id, model.parameters, row.parameters));
    }
}

#[test]
fn every_tensor_of_every_preset_is_that_of_the_class() {
    let rows = rows(include_str!("../fixtures/model/params.json"));
    assert_eq!(rows.len(), PRESETS.len());
    let mut wrong = Vec::new();
    for row in &rows {
        match model_of(row) {
            Ok(model) => check(row, &model, &mut wrong),
            Err(problem) => wrong.push(format!("{} ({}): {problem:?}", row.id, row.class)),
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// More rows of the same shape, each with its config, from a file outside the project.
#[test]
fn every_tensor_of_further_configs_is_that_of_the_class() {
    let Ok(path) = std::env::var("OOM_LEDGER_MODEL_ROWS") else { return };
    let rows = rows(&std::fs::read_to_string(path).unwrap());
    let mut wrong = Vec::new();
    for row in &rows {
        match model_of(row) {
            Ok(model) => check(row, &model, &mut wrong),
            Err(problem) => wrong.push(format!("{} ({}): {problem:?}", row.id, row.class)),
        }
    }
    assert!(wrong.is_empty(), "{} rows, {} differences:\n{}", rows.len(), wrong.len(), wrong.join("\n"));
}
