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

/// A preset's config with one field set or left out, or a whole config of another model.
#[derive(Deserialize)]
struct Variant {
    base: String,
    #[serde(default)]
    at: String,
    #[serde(default)]
    field: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    drop: bool,
    config: Option<Value>,
    parameters: u64,
    /// FNV-1a of the sorted listing and of the kinds of layers.
    digest: String,
}

fn fnv(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// `fixtures/model/variants.json`: biases, ties, head counts, missing fields, whole class defaults and the
/// like, counted in the instantiated classes as the presets are.
#[test]
fn configs_one_field_away_from_a_preset_follow_the_class_too() {
    let variants: Vec<Variant> =
        serde_json::from_str(include_str!("../fixtures/model/variants.json")).unwrap();
    assert!(variants.len() > 500);
    let mut wrong = Vec::new();
    for v in variants {
        let what = format!("{} {} {}={:?}", v.base, v.at, v.field, v.value);
        let config = v.config.unwrap_or_else(|| {
            let mut config = preset(&v.base).unwrap().document().unwrap()["config"].take();
            let part = if v.at.is_empty() { &mut config } else { &mut config[&v.at] };
            if v.drop {
                part.as_object_mut().unwrap().remove(&v.field);
            } else {
                part[&v.field] = v.value;
            }
            config
        });
        match Model::from_config("x", &config) {
            Ok(model) => {
                let lines: Vec<_> = listing(&model.tensors).iter().map(|(k, n)| format!("{k} {n}")).collect();
                let digest = fnv(&format!("{}\n{}", lines.join("\n"), kinds(&model.layers).join(" ")));
                if model.parameters != v.parameters || digest != v.digest {
                    wrong.push(format!("{what}: {} parameters, want {}", model.parameters, v.parameters));
                }
            }
            Err(problem) => wrong.push(format!("{what}: {problem:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks against the shared material itself, where a checkout has it beside the project.
#[test]
fn shared_configs_parse_and_equal_the_shared_listing() {
    let Ok(folder) = std::env::var("OOM_LEDGER_SHARED") else { return };
    let mut wrong = Vec::new();
    let config = |id: &str| std::fs::read_to_string(format!("{folder}/model-configs/{id}.json")).unwrap();
    for entry in std::fs::read_dir(format!("{folder}/model-configs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let id = name.trim_end_matches(".json");
        match (Model::from_config_text(id, &config(id)), preset(id)) {
            (Err(problem), _) => wrong.push(format!("{id}: {problem:?}")),
            (Ok(model), Some(row)) if model.parameters != row.parameters => {
                wrong.push(format!("{id}: not its preset"));
            }
            _ => {}
        }
    }
    let listing_file = std::fs::read_to_string(format!("{folder}/groundtruth/oracle-params.jsonl")).unwrap();
    for line in listing_file.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let id = row["id"].as_str().unwrap();
        let model = Model::from_config_text(id, &config(id)).unwrap();
        let mut have: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in listing(&model.tensors) {
            *have.entry(name.trim_end_matches(" fp32").to_owned()).or_default() += count;
        }
        let want = row["groups"].as_array().unwrap().iter().map(|g| {
            let shape: Vec<_> = g["shape"].as_array().unwrap().iter().map(Value::to_string).collect();
            (format!("{} {}", g["name"].as_str().unwrap(), shape.join("x")), g["count"].as_u64().unwrap())
        });
        let fp32: u64 = model
            .tensors
            .iter()
            .filter(|t| t.dtype == Some(DType::Fp32))
            .map(|t| t.elements() * t.count)
            .sum();
        let active = row["active_params_incl_embed"].as_u64().unwrap_or(model.active_parameters);
        if have != want.collect()
            || row["params"] != model.parameters
            || fp32 != row["params_by_dtype"]["float32"].as_u64().unwrap_or(0)
            || model.active_parameters != active
            || row["tied"] != model.tied_embeddings
        {
            wrong.push(format!("{id}: {} parameters, {} active", model.parameters, model.active_parameters));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
