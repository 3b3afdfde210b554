//! What if: the levers of a job, the bytes each of them frees, and what it costs.
//!
//! Nothing here knows an engine: a lever moves one setting, the engine's own accounting tells the rest. A start-up
//! refusal and a run-time OOM need opposite moves of one option; both are tried, and only what helps is said.

mod search;
mod table;
mod training;
mod training_table;

pub use table::{Cost, LEVERS, Lever, Steps};
pub use training::{TrainVariant, suggest_training};
pub use training_table::{TRAINING_LEVERS, TrainingLever};

use crate::engines::{Engine, Inputs, ServeSettings};
use crate::hardware::{Device, gpu};
use crate::memory::{Ledger, Measured, Parallel, PhaseId, Residency, Verdict, WeightsSpec};
use crate::model::Quantization;
use crate::units::{Bytes, bytes_human};
use search::{Found, Search};
use serde::Serialize;
use serde_json::Value;
use std::cmp::Ordering;
use table::{Change, Context};

/// Fields of the load; every engine takes them.
const LOAD: &[&str] = &["sequences", "prompt_tokens", "new_tokens"];

/// A job that owns what can be changed.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Device.
    pub device: Device,
    /// Parallelism.
    pub parallel: Parallel,
    /// Storage of weights.
    pub weights: WeightsSpec,
    /// Engine options.
    pub serve: ServeSettings,
    /// Figures that replace modelled terms.
    pub measured: Measured,
}

/// Which way a setting moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Up.
    Raise,
    /// Down.
    Lower,
    /// Another choice.
    Switch,
}

/// One change of one setting that frees bytes, or that people try although it frees none here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suggestion {
    /// The lever: `lever.<id>` is its text, `lever.<id>.cost` its cost in words.
    pub id: &'static str,
    /// The engine's own name of the option; the Scenario path where the engine has none.
    pub option: &'static str,
    /// The value before, for people; empty where it was left to the engine.
    pub from: String,
    /// The value after, for people.
    pub to: String,
    /// Fields of the Scenario to set, by path.
    pub set: Vec<(&'static str, Value)>,
    /// Which way.
    pub direction: Direction,
    /// What it costs.
    pub cost: Cost,
    /// Bytes that this alone gains at the tightest place (see [`Engine::margin`]); where the job fits but for the
    /// high end of its range, at that end.
    pub frees_bytes: u64,
    /// Bytes to spare there afterwards; negative: still missing.
    pub margin_bytes: i64,
    /// This alone suffices.
    pub enough: bool,
    /// It frees nothing that counts: the peak is in this phase, and at its highest moment this changes next to
    /// nothing, or adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<PhaseId>,
    /// Bytes that it adds to the peak where it frees none.
    #[serde(skip_serializing_if = "is_zero")]
    pub adds_bytes: u64,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Every lever that helps, those that suffice first, the cheapest of them at the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Suggestions {
    /// Bytes missing at the tightest place now; negative: to spare.
    pub missing_bytes: i64,
    /// It is not memory: an option forbids the load.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub option_stops: bool,
    /// Levers, one value each: the mildest that suffices, or else the strongest.
    pub levers: Vec<Suggestion>,
    /// Where none of the cheap ones suffices alone: indices of `levers` that do together, as few as found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<usize>,
}

/// What can be changed so that the job fits, or fits with room to spare.
///
/// Bytes are the engine's own accounting before and after, nothing else. A measured figure that a change would
/// make untrue is not used for it; a printed pool moves by what the modelled one moves.
pub fn suggest(engine: &dyn Engine, inputs: &Inputs<'_>) -> Suggestions {
    let job = Variant::of(inputs);
    let Ok(margin) = engine.margin(inputs) else { return Suggestions::default() };
    let missing_bytes = clamp(-margin);
    // Where even the high end of the range fits there is nothing to change.
    let Ok(ledger) = engine.figures(inputs) else { return Suggestions::default() };
    if ledger.verdict == Verdict::Fits {
        return Suggestions { missing_bytes, ..Suggestions::default() };
    }
    let modelled = job.modelled_pool(engine, inputs);
    let option_stops = margin >= 0 && ledger.verdict == Verdict::DoesNotFit;
    // A tight answer may be tight only at the high end of the device; what makes it safe is then measured there.
    let at_high = margin >= 0 && !option_stops && high_margin(&ledger) < 0;
    let margin = if at_high { high_margin(&ledger) } else { margin };
    let share = Share::of(&ledger);
    let trial = Trial { engine, inputs, job: &job, margin, modelled, option_stops, at_high, share };
    let mut levers: Vec<Suggestion> = LEVERS.iter().filter_map(|lever| trial.lever(lever)).collect();
    levers.sort_by_key(|s| (!s.enough, s.cost, std::cmp::Reverse(s.frees_bytes)));
    let together = trial.together(&levers);
    Suggestions { missing_bytes, option_stops, levers, together }
}

impl Variant {
    fn of(inputs: &Inputs<'_>) -> Variant {
        Variant {
            device: inputs.device.clone(),
            parallel: inputs.parallel,
            weights: inputs.weights.clone(),
            serve: inputs.serve.clone(),
            measured: inputs.measured,
        }
    }

    fn inputs<'a>(&'a self, of: &Inputs<'a>) -> Inputs<'a> {
        Inputs {
            device: &self.device,
            parallel: self.parallel,
            weights: &self.weights,
            serve: &self.serve,
            measured: self.measured,
            ..*of
        }
    }

    /// Bytes of the pool that the engine's rules give, where a printed one replaces them.
    fn modelled_pool(&self, engine: &dyn Engine, of: &Inputs<'_>) -> Option<i128> {
        self.measured.kv_available_bytes?;
        let measured = Measured { kv_available_bytes: None, ..self.measured };
        let ledger = engine.figures(&Inputs { measured, ..self.inputs(of) }).ok()?;
        let pool = ledger.terms.iter().filter(|t| t.residency == Residency::ReservedPool);
        Some(pool.map(|t| i128::from(t.bytes)).sum())
    }

    /// Sets the field at `path`; `None` where the value is not one of its.
    fn set(&mut self, path: &str, value: &Value) -> Option<()> {
        match path {
            "device.other_processes_bytes" => self.device.other_processes_bytes = value.as_u64()?,
            "device.count" => self.device.count = value.as_u64()?,
            "device.preset" => {
                self.measured.device_used_bytes = None;
                let found = gpu(value.as_str()?)?;
                (self.device.gpu, self.device.total_bytes) = (Some(found), found.total_bytes);
                self.measured.non_torch_bytes = None;
                self.measured.cuda_graph_bytes = None;
            }
            "parallel.tensor" => {
                self.parallel.tensor = value.as_u64()?;
                self.measured = Measured::default();
            }
            "weights.quantization" => {
                self.weights.quantization = Some(Quantization::from_id(value.as_str()?)?);
                self.measured.weights_bytes = None;
            }
            // What was measured is left out by the change that makes it untrue.
            _ if path.starts_with("measured.") => {}
            _ => {
                let name = path.strip_prefix("job.serve.")?;
                let mut document = serde_json::to_value(&self.serve).ok()?;
                *document.get_mut(name)? = value.clone();
                self.serve = serde_json::from_value(document).ok()?;
                // What was measured with the old batch or graphs says nothing of the new.
                match name {
                    "max_num_batched_tokens" | "max_num_seqs" | "images_per_prompt" => {
                        self.measured.activation_peak_bytes = None;
                    }
                    "enforce_eager" | "max_cudagraph_capture_size" => self.measured.cuda_graph_bytes = None,
                    _ => {}
                }
            }
        }
        Some(())
    }

    /// The value at `path`, for people; empty where it was left out.
    fn shown(&self, path: &str) -> String {
        let value = match path {
            "device.other_processes_bytes" => self.device.other_processes_bytes.into(),
            "device.count" => self.device.count.into(),
            "device.preset" => match self.device.gpu {
                Some(gpu) => gpu.id.into(),
                None => return bytes_human(Bytes(self.device.total_bytes)),
            },
            "parallel.tensor" => self.parallel.tensor.into(),
            "weights.quantization" => match &self.weights.quantization {
                Some(scheme) => scheme.id().into(),
                None => self.weights.dtype.id().into(),
            },
            _ => {
                let serve = serde_json::to_value(&self.serve).unwrap_or_default();
                path.strip_prefix("job.serve.").and_then(|name| serve.get(name)).cloned().unwrap_or_default()
            }
        };
        people(path, &value)
    }
}

fn people(path: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(n) if path.ends_with("_bytes") => bytes_human(Bytes(n.as_u64().unwrap_or(0))),
        other => other.to_string(),
    }
}

/// A job on which levers are tried.
struct Trial<'a> {
    engine: &'a dyn Engine,
    inputs: &'a Inputs<'a>,
    job: &'a Variant,
    margin: i128,
    /// The pool as modelled, where a printed one replaces it.
    modelled: Option<i128>,
    /// It is not memory that stands in the way.
    option_stops: bool,
    /// Bytes are told at the high end of the device.
    at_high: bool,
    /// What the engine takes for itself now.
    share: Share,
}

/// Device total less the high end of the peak.
fn high_margin(ledger: &Ledger) -> i128 {
    i128::from(ledger.device.total_bytes) - i128::from(ledger.peak.high)
}

/// What grows when an engine gets a larger share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    pool: u64,
    budget: u64,
}

impl Share {
    fn of(ledger: &Ledger) -> Share {
        let pool = ledger.terms.iter().filter(|t| t.residency == Residency::ReservedPool);
        Share { pool: pool.map(|t| t.bytes).sum(), budget: ledger.device.budget_bytes }
    }
}

/// Gains below this that do not suffice are not worth a row.
const LEAST_GAIN: i128 = 1 << 20;

impl Trial<'_> {
    fn lever(&self, lever: &Lever) -> Option<Suggestion> {
        if let Some(name) = lever.field.strip_prefix("job.serve.")
            && !LOAD.contains(&name)
            && !self.engine.options().iter().any(|o| o.field == name)
        {
            return None;
        }
        let model = self.inputs.model;
        let steps = (lever.steps)(&Context { job: self.job, model, engine: self.engine });
        // A share is raised or lowered against what the engine takes now, be that given or its own choice.
        let steps = match (steps, lever.id) {
            (Steps::Each(all), id) if id.ends_with("_up") || id.ends_with("_down") => {
                let wanted = if id.ends_with("_up") { Ordering::Greater } else { Ordering::Less };
                let moves =
                    |set: &Vec<Change>| self.share_of(set).is_some_and(|s| s.cmp(&self.share) == wanted);
                Steps::Each(all.into_iter().filter(moves).collect())
            }
            (steps, _) => steps,
        };
        let mut found = self.best(lever.field, steps)?;
        found.set.extend(self.dropped(&found.set));
        let gain = found.margin - self.margin;
        let value = found.set.first()?.1.clone();
        let option =
            self.engine.options().iter().find(|o| lever.field.strip_prefix("job.serve.") == Some(o.field));
        let worth =
            if self.option_stops { found.enough } else { gain > 0 && (found.enough || gain >= LEAST_GAIN) };
        worth.then(|| Suggestion {
            id: lever.id,
            option: option.map_or(lever.field, |o| o.flag),
            from: self.job.shown(lever.field),
            to: people(lever.field, &value),
            direction: direction(lever.id, &self.job.shown(lever.field), &value),
            cost: lever.cost,
            frees_bytes: u64::try_from(gain.max(0)).unwrap_or(u64::MAX),
            margin_bytes: clamp(found.margin),
            enough: found.enough,
            set: found.set,
            no_effect: None,
            adds_bytes: 0,
        })
    }
}

impl Trial<'_> {
    fn variant(&self, set: &[Change]) -> Option<Variant> {
        let mut job = self.job.clone();
        set.iter().try_for_each(|(path, value)| job.set(path, value))?;
        Some(job)
    }

    fn share_of(&self, set: &[Change]) -> Option<Share> {
        let job = self.variant(set)?;
        self.engine.figures(&job.inputs(self.inputs)).ok().map(|ledger| Share::of(&ledger))
    }

    /// Measured figures that the changes make untrue: they are left out together with them.
    fn dropped(&self, set: &[Change]) -> Vec<Change> {
        let (was, now) = (self.job.measured, self.variant(set).map(|job| job.measured).unwrap_or_default());
        [
            ("measured.weights_bytes", was.weights_bytes, now.weights_bytes),
            ("measured.kv_available_bytes", was.kv_available_bytes, now.kv_available_bytes),
            ("measured.activation_peak_bytes", was.activation_peak_bytes, now.activation_peak_bytes),
            ("measured.non_torch_bytes", was.non_torch_bytes, now.non_torch_bytes),
            ("measured.cuda_graph_bytes", was.cuda_graph_bytes, now.cuda_graph_bytes),
            ("measured.device_used_bytes", was.device_used_bytes, now.device_used_bytes),
        ]
        .into_iter()
        .filter(|(_, was, now)| was.is_some() && now.is_none())
        .map(|(path, ..)| (path, Value::Null))
        .collect()
    }
}

impl Search for Trial<'_> {
    fn now(&self) -> i128 {
        self.margin
    }

    /// What `set` comes to; `None` where the engine does not take it.
    fn ask(&self, set: Vec<Change>) -> Option<Found> {
        let mut job = self.variant(&set)?;
        // A printed pool holds for the run it was printed in; a change moves it by what it moves the modelled one.
        if let (Some(printed), Some(before)) = (job.measured.kv_available_bytes, self.modelled) {
            let moved = i128::from(printed) + job.modelled_pool(self.engine, self.inputs)? - before;
            job.measured.kv_available_bytes = Some(u64::try_from(moved).unwrap_or(0));
        }
        let inputs = job.inputs(self.inputs);
        let ledger = self.engine.figures(&inputs).ok()?;
        let verdict = ledger.verdict;
        let margin = if self.at_high { high_margin(&ledger) } else { self.engine.margin(&inputs).ok()? };
        let short = (self.margin < 0 && !self.at_high) || self.option_stops;
        let enough =
            if short { margin >= 0 && verdict != Verdict::DoesNotFit } else { verdict == Verdict::Fits };
        Some(Found { set, margin, enough })
    }
}

/// Which way: by the figures, or by the lever's own name where the value before was left to the engine.
fn direction(id: &str, from: &str, to: &Value) -> Direction {
    if id.ends_with("_up") {
        return Direction::Raise;
    }
    if id.ends_with("_down") {
        return Direction::Lower;
    }
    match (from.parse::<f64>(), to.as_f64()) {
        (Ok(before), Some(after)) if after > before => Direction::Raise,
        (Ok(_), Some(_)) => Direction::Lower,
        (Err(_), Some(_)) if from.is_empty() => Direction::Lower,
        _ => Direction::Switch,
    }
}

fn clamp(n: i128) -> i64 {
    i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}
