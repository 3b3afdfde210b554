//! What if, of a training step: the same question as for serving, asked of the training ledger.

use super::search::{Found, Search};
use super::table::Change;
use super::training_table::{TRAINING_LEVERS, TrainingLever};
use super::{Suggestion, Suggestions, clamp, direction, people};
use crate::engines::training::{TrainInputs, TrainSettings, ledger, peak_bytes};
use crate::hardware::{Device, gpu};
use crate::memory::{Measured, Parallel, PhaseId, Verdict, highest};
use crate::units::{Bytes, bytes_human};
use serde_json::{Map, Value, json};

/// The step in which PyTorch's allocator asks the driver for memory (`kSmallBuffer` in `CUDACachingAllocator`): less
/// is not told from nothing.
const NEGLIGIBLE: i128 = 2 << 20;

/// A training job that owns what can be changed.
#[derive(Clone, Debug)]
pub struct TrainVariant {
    /// Device.
    pub device: Device,
    /// Parallelism.
    pub parallel: Parallel,
    /// Settings of the step.
    pub train: TrainSettings,
    /// Figures that replace modelled terms.
    pub measured: Measured,
}

/// What can be changed so that a training step fits, or fits with room to spare; beside it what people try that
/// frees nothing at the highest phase, with that phase.
///
/// Bytes are the training ledger's headroom after the change less that before it, nothing else.
pub fn suggest_training(inputs: &TrainInputs<'_>) -> Suggestions {
    let Ok(now) = ledger(inputs) else { return Suggestions::default() };
    let margin = now.headroom();
    let missing_bytes = clamp(-margin);
    let (Some(phase), true) = (highest(&now.phases), now.verdict != Verdict::Fits) else {
        return Suggestions { missing_bytes, ..Suggestions::default() };
    };
    let job = TrainVariant {
        device: inputs.device.clone(),
        parallel: inputs.parallel,
        train: inputs.train.clone(),
        measured: inputs.measured,
    };
    let trial = Trial { inputs, job: &job, margin, phase };
    let mut levers: Vec<Suggestion> = TRAINING_LEVERS.iter().filter_map(|lever| trial.lever(lever)).collect();
    levers.sort_by_key(|s| (!s.enough, s.no_effect.is_some(), s.cost, std::cmp::Reverse(s.frees_bytes)));
    let together = trial.together(&levers);
    Suggestions { missing_bytes, option_stops: false, levers, together }
}

impl TrainVariant {
    /// Sets every field of `set`; `None` where a value is not one of its field's.
    fn set(&mut self, set: &[Change]) -> Option<()> {
        // The settings are read once, when all are in: half an adapter is none.
        let mut train = serde_json::to_value(&self.train).ok()?;
        for (path, value) in set {
            match *path {
                "device.other_processes_bytes" => self.device.other_processes_bytes = value.as_u64()?,
                "device.count" => self.device.count = value.as_u64()?,
                "parallel.data" => self.parallel.data = value.as_u64()?,
                "device.preset" => {
                    let found = gpu(value.as_str()?)?;
                    (self.device.gpu, self.device.total_bytes) = (Some(found), found.total_bytes);
                    // What was measured on another card says nothing of this one.
                    self.measured.non_torch_bytes = None;
                    self.measured.device_used_bytes = None;
                }
                _ => insert(train.as_object_mut()?, path.strip_prefix("job.train.")?, value)?,
            }
        }
        self.train = serde_json::from_value(train).ok()?;
        Some(())
    }

    /// The value at `path`, for people; empty where there is none.
    fn shown(&self, path: &str) -> String {
        let value = match path {
            "device.other_processes_bytes" => self.device.other_processes_bytes.into(),
            "device.preset" => match self.device.gpu {
                Some(gpu) => gpu.id.into(),
                None => return bytes_human(Bytes(self.device.total_bytes)),
            },
            _ => {
                let job = json!({"job": {"train": self.train}});
                job.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default()
            }
        };
        people(path, &value)
    }
}

/// Puts `value` at a dotted path, with the objects on the way.
fn insert(into: &mut Map<String, Value>, path: &str, value: &Value) -> Option<()> {
    let Some((first, rest)) = path.split_once('.') else {
        into.insert(path.to_owned(), value.clone());
        return Some(());
    };
    let inner = into.entry(first).or_insert(Value::Null);
    if inner.is_null() {
        *inner = Value::Object(Map::new());
    }
    insert(inner.as_object_mut()?, rest, value)
}

/// A job on which levers are tried.
struct Trial<'a> {
    inputs: &'a TrainInputs<'a>,
    job: &'a TrainVariant,
    margin: i128,
    /// The highest phase as it is.
    phase: PhaseId,
}

impl Trial<'_> {
    fn lever(&self, lever: &TrainingLever) -> Option<Suggestion> {
        let found = self.best(lever.field, (lever.steps)(self.job))?;
        let gain = found.margin - self.margin;
        let none = gain < NEGLIGIBLE && !found.enough;
        if none && !lever.tried {
            return None;
        }
        let value = found.set.first()?.1.clone();
        let from = self.job.shown(lever.field);
        let bytes = |n: i128| u64::try_from(n).unwrap_or(0);
        Some(Suggestion {
            id: lever.id,
            option: lever.field,
            to: people(lever.field, &value),
            direction: direction(lever.id, &from, &value),
            from,
            cost: lever.cost,
            frees_bytes: bytes(gain),
            margin_bytes: clamp(found.margin),
            enough: found.enough,
            set: found.set,
            no_effect: none.then_some(self.phase),
            adds_bytes: bytes(-gain),
        })
    }
}

impl Search for Trial<'_> {
    fn now(&self) -> i128 {
        self.margin
    }

    fn ask(&self, set: Vec<Change>) -> Option<Found> {
        let mut job = self.job.clone();
        job.set(&set)?;
        let inputs = TrainInputs {
            device: &job.device,
            parallel: job.parallel,
            train: &job.train,
            measured: job.measured,
            ..*self.inputs
        };
        let total = i128::from(job.device.total_bytes);
        // Where bytes are missing the point estimate decides, and it is the cheaper question.
        let (margin, enough) = if self.margin < 0 {
            let margin = total - i128::from(peak_bytes(&inputs).ok()?);
            (margin, margin >= 0)
        } else {
            let ledger = ledger(&inputs).ok()?;
            (ledger.headroom(), ledger.verdict == Verdict::Fits)
        };
        Some(Found { set, margin, enough })
    }
}
