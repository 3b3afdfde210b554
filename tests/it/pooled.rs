//! What the tests of engines with a reserved pool share: rows of printed figures, their comparison, and what holds
//! for every ledger.

use oom_ledger_core::engines::{Inputs, ServeSettings, engine};
use oom_ledger_core::hardware::{Device, gpu};
use oom_ledger_core::memory::{Ledger, Measured, Parallel, TermId, Verdict, WeightsSpec};
use oom_ledger_core::model::{AttentionKind, DType, Model, Quantization, preset};
use oom_ledger_core::text;
use oom_ledger_core::units::{Message, Problem, Value};
use serde::Deserialize;

const GIB: f64 = (1u64 << 30) as f64;

#[derive(Deserialize)]
struct Logs {
    rows: Vec<Row>,
}

fn one() -> u64 {
    1
}

/// Layers of one kind, for models that have no preset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    count: u64,
    kv_heads: u64,
    head_dim: u64,
    v_head_dim: u64,
    window: Option<u64>,
}

/// What a log says of a run, and what it printed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub id: String,
    pub source: String,
    #[serde(default)]
    pub note: String,
    preset: Option<String>,
    config: Option<serde_json::Value>,
    layers: Option<Vec<Kind>>,
    model_type: Option<String>,
    gpu: Option<String>,
    total_gib: Option<f64>,
    #[serde(default = "one")]
    tensor: u64,
    #[serde(default = "one")]
    pipeline: u64,
    #[serde(default)]
    dtype: DType,
    quantization: Option<Quantization>,
    serve: ServeSettings,
    /// Figures in GiB, as logs print them.
    #[serde(default)]
    measured_gib: MeasuredGib,
    pub expect: Vec<Expect>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MeasuredGib {
    weights: Option<f64>,
    pool: Option<f64>,
    activations: Option<f64>,
    before: Option<f64>,
    graphs: Option<f64>,
}

#[derive(Deserialize)]
pub struct Expect {
    pub what: String,
    pub value: f64,
    pub rel_tol: f64,
}

/// A job that can be asked.
pub struct Job {
    pub model: Model,
    pub draft: Option<Model>,
    pub device: Device,
    pub parallel: Parallel,
    pub weights: WeightsSpec,
    pub serve: ServeSettings,
    pub measured: Measured,
}

impl Job {
    pub fn new(engine: &str, id: &str, total_bytes: u64, serve: ServeSettings) -> Job {
        Job {
            model: preset(id).unwrap().model().unwrap(),
            draft: None,
            device: Device { gpu: None, total_bytes, count: 8, other_processes_bytes: 0 },
            parallel: Parallel::default(),
            weights: WeightsSpec::default(),
            serve: ServeSettings { engine: engine.to_owned(), ..serve },
            measured: Measured::default(),
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            model: &self.model,
            device: &self.device,
            parallel: self.parallel,
            weights: &self.weights,
            serve: &self.serve,
            measured: self.measured,
            draft: self.draft.as_ref(),
        }
    }

    pub fn ledger(&self) -> Result<Ledger, Problem> {
        engine(&self.serve.engine).unwrap().ledger(&self.inputs())
    }
}

fn model(row: &Row) -> Model {
    let mut model = match (&row.preset, &row.config) {
        (Some(id), None) => preset(id).unwrap_or_else(|| panic!("{id}")).model().unwrap(),
        (None, Some(config)) => Model::from_config(&row.id, config).unwrap(),
        _ => panic!("{}: either a preset or a config", row.id),
    };
    if let Some(kinds) = &row.layers {
        let layer = model.layers[0];
        let of = |k: &Kind| {
            let (kv_heads, head_dim, v_head_dim) = (k.kv_heads, k.head_dim, k.v_head_dim);
            let heads = 64;
            let kind = match k.window {
                Some(window) => AttentionKind::Sliding { heads, kv_heads, head_dim, v_head_dim, window },
                None => AttentionKind::Full { heads, kv_heads, head_dim, v_head_dim },
            };
            let mut layer = layer;
            layer.attention.kind = kind;
            (layer, k.count as usize)
        };
        model.layers = kinds.iter().map(of).flat_map(|(l, n)| std::iter::repeat_n(l, n)).collect();
    }
    model.model_type = row.model_type.clone().unwrap_or(model.model_type);
    model
}

fn bytes(gib: Option<f64>) -> Option<u64> {
    gib.map(|g| (g * GIB) as u64)
}

pub fn job(engine: &str, row: &Row) -> Job {
    let named = row.gpu.as_deref().map(|id| gpu(id).unwrap_or_else(|| panic!("{id}")));
    let total = bytes(row.total_gib).or(named.map(|g| g.total_bytes)).unwrap_or(80 << 30);
    Job {
        model: model(row),
        draft: None,
        device: Device { gpu: named, total_bytes: total, count: 64, other_processes_bytes: 0 },
        parallel: Parallel { tensor: row.tensor, pipeline: row.pipeline, ..Parallel::default() },
        weights: WeightsSpec { dtype: row.dtype, quantization: row.quantization.clone(), file: None },
        serve: ServeSettings { engine: engine.to_owned(), ..row.serve.clone() },
        measured: Measured {
            weights_bytes: bytes(row.measured_gib.weights),
            kv_available_bytes: bytes(row.measured_gib.pool),
            activation_peak_bytes: bytes(row.measured_gib.activations),
            non_torch_bytes: bytes(row.measured_gib.before),
            cuda_graph_bytes: bytes(row.measured_gib.graphs),
            ..Measured::default()
        },
    }
}

pub fn rows(text: &str) -> Vec<Row> {
    serde_json::from_str::<Logs>(text).unwrap().rows
}

pub fn argument(message: &Message, name: &str) -> Option<f64> {
    message.args.iter().find(|(n, _)| *n == name).and_then(|(_, v)| match v {
        Value::Int(n) => Some(*n as f64),
        Value::Bytes(b) => Some(b.0 as f64),
        Value::Real(x) => Some(*x),
        Value::Text(_) => None,
    })
}

/// The figure of that name in a ledger.
fn figure(ledger: &Ledger, what: &str) -> Option<f64> {
    let term = |id| ledger.term(id).map_or(0.0, |t| t.bytes as f64);
    let kv = ledger.kv.as_ref()?;
    if let Some((id, symbol)) =
        what.split_once('.').filter(|(id, _)| TermId::ALL.iter().any(|t| t.id() == *id))
    {
        let term = ledger.terms.iter().find(|t| t.id.id() == id)?;
        return match symbol {
            "gib" => Some(term.bytes as f64 / GIB),
            _ => term.working.symbols.iter().find(|s| s.name == symbol).and_then(|s| match s.value {
                Value::Int(n) => Some(n as f64),
                Value::Bytes(b) => Some(b.0 as f64),
                Value::Real(x) => Some(x),
                Value::Text(_) => None,
            }),
        };
    }
    Some(match what {
        "kv.token_line" => kv.token_line as f64,
        "kv.tokens" => kv.tokens as f64,
        "kv.blocks" => kv.blocks as f64,
        "kv.block_bytes" => kv.block_bytes as f64,
        "kv.bytes_per_token" => kv.bytes_per_token,
        "pool_gib" => (term(TermId::KvCache) + term(TermId::RecurrentState)) / GIB,
        other => panic!("no figure {other}"),
    })
}

/// Every printed figure of the rows against the ledger; the errors, smallest first.
pub fn compare(engine: &str, rows: &[Row]) -> Vec<f64> {
    let (mut faults, mut errors) = (Vec::new(), Vec::new());
    for row in rows {
        let ledger = match job(engine, row).ledger() {
            Ok(ledger) => ledger,
            Err(problem) => {
                faults.push(format!("{} ({}): {problem:?}", row.id, row.source));
                continue;
            }
        };
        for e in &row.expect {
            let got = figure(&ledger, &e.what).unwrap_or(f64::NAN);
            let error = (got - e.value).abs() / e.value;
            println!(
                "{} {}: {got} for {} ({:+.4} %)",
                row.id,
                e.what,
                e.value,
                (got / e.value - 1.0) * 100.0
            );
            errors.push(error);
            if error.is_nan() || error > e.rel_tol + 1e-12 {
                faults.push(format!("{} {}: {got} for {} {}", row.id, e.what, e.value, row.note));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?} of {}", errors.len());
    errors.sort_by(f64::total_cmp);
    errors
}

/// What holds for every ledger: rows in their ranges, phases as sums, messages with texts.
pub fn consistent(id: &str, ledger: &Ledger) {
    for t in &ledger.terms {
        assert!(t.low <= t.bytes && t.bytes <= t.high, "{id} {t:?}");
        assert_eq!(t.working.result, t.bytes, "{id} {:?}", t.id);
    }
    for phase in &ledger.phases {
        let alive: u64 = ledger.terms.iter().filter(|t| t.phases.contains(&phase.id)).map(|t| t.bytes).sum();
        assert_eq!(alive, phase.peak_bytes, "{id} {:?}", phase.id);
        assert!(phase.allocated_bytes <= phase.peak_bytes, "{id}");
    }
    let peak = ledger.phases.iter().map(|p| p.peak_bytes).max().unwrap();
    assert_eq!(peak, ledger.peak_bytes, "{id}");
    assert!(ledger.peak.low <= peak && peak <= ledger.peak.high, "{id}");
    for message in ledger.warnings.iter().chain(&ledger.refusal) {
        for lang in [text::Lang::En, text::Lang::Zh] {
            let sentence = text::message(lang, message);
            assert!(text::has(message.id) && !sentence.contains('{'), "{sentence}");
        }
    }
}

/// The surface says what the ledger says, at the job's own load.
pub fn surface_agrees(job: &Job) {
    let serve = &job.serve;
    let engine = engine(&serve.engine).unwrap();
    let Ok(surface) = engine.surface(&job.inputs()) else {
        assert!(job.ledger().is_err());
        return;
    };
    let ledger = job.ledger().unwrap();
    let figures = engine.figures(&job.inputs()).unwrap();
    assert_eq!((figures.peak_bytes, figures.verdict), (ledger.peak_bytes, ledger.verdict));
    let point = surface.at(serve.sequences, serve.prompt_tokens, serve.new_tokens);
    assert_eq!(point.fits, ledger.verdict != Verdict::DoesNotFit, "{:?} {:?}", ledger.warnings, point);
    assert_eq!(point.peak_bytes, ledger.peak_bytes);
    assert_eq!(point.high_bytes, ledger.peak.high);
    if point.fits {
        let pools: u64 = [TermId::KvCache, TermId::RecurrentState]
            .iter()
            .filter_map(|id| ledger.term(*id))
            .map(|t| t.bytes)
            .sum();
        assert!(point.kv_bytes <= pools, "{} of {pools}", point.kv_bytes);
    }
}
