//! A model spread over devices by `device_map`: every device is a job of its own, the fullest is shown.

use super::device_map::{self, Share};
use super::job::restored_on_load;
use super::surface::Load;
use super::{ledger, surface};
use crate::engines::{Detail, Inputs, Point, Surface};
use crate::hardware::Device;
use crate::memory::context::context_overhead;
use crate::memory::{Ledger, RankShare, Residency, Term, TermId, WeightsSpec, weights};
use crate::memory::{Parallel, PhaseId, Provenance, Working};
use crate::model::{Model, TensorClass};
use crate::units::{Bytes, Message, Overflow, Problem};

/// One device: the model cut to what it stores and runs.
struct Part {
    model: Model,
    share: Share,
    device: Device,
}

/// The devices of a job under `device_map`, and the bytes that stay on the host; nothing where one device holds
/// all, or layers are not spread by that rule.
fn parts(inputs: &Inputs<'_>) -> Result<Option<(Vec<Part>, u64)>, Problem> {
    let Inputs { model, serve, weights: spec, parallel, device, .. } = *inputs;
    let Some(map) = serve.device_map.as_deref() else { return Ok(None) };
    if parallel.pipeline > 1 || parallel.tensor > 1 || spec.file.is_some() {
        return Ok(None);
    }
    let context =
        inputs.measured.non_torch_bytes.unwrap_or(context_overhead(device.gpu.map(|g| g.arch)).point);
    let free = device.total_bytes.saturating_sub(context).saturating_sub(device.other_processes_bytes);
    let five = serve.engine_version.as_deref().is_none_or(|v| !v.starts_with("4."));
    // What is restored while loading is placed, and stored, as restored.
    let plain;
    let model = if restored_on_load(model, spec).is_some() {
        plain = Model { quantization: None, ..model.clone() };
        &plain
    } else {
        model
    };
    let (mut shares, host) = device_map::shares(model, spec, map, device.count, free, !five)?;
    let stored = shares.clone();
    let mut host_bytes = 0;
    if let Some(host) = host {
        let held = cut(model, &host, &host);
        host_bytes = sized(&held, spec)?;
        // The first device runs what the host stores, one weight at a time.
        if let Some(first) = shares.first_mut() {
            first.fetched = largest(&held, spec);
            first.layers.extend(&host.layers);
            first.layers.sort_unstable();
            first.head |= host.head;
            first.norm |= host.norm;
            first.embedding = true;
        }
    }
    let device = Device { count: 1, ..*device };
    let part = |(share, own): (Share, &Share)| Part {
        model: cut(model, &share, own),
        share,
        device: device.clone(),
    };
    Ok(Some((shares.into_iter().zip(&stored).map(part).collect(), host_bytes)))
}

fn sized(model: &Model, spec: &WeightsSpec) -> Result<u64, Problem> {
    weights::weights_bytes(model, spec, Parallel::default(), weights::Layout::Transformers)
}

fn largest(model: &Model, spec: &WeightsSpec) -> u64 {
    let bytes =
        model.tensors.iter().map(|t| t.elements().saturating_mul(t.dtype.unwrap_or(spec.dtype).bytes()));
    bytes.max().unwrap_or(0)
}

/// The model with the layers that `runs` names and the tensors that `stores` names.
fn cut(model: &Model, runs: &Share, stores: &Share) -> Model {
    let mut part = model.clone();
    part.layers = runs.layers.iter().filter_map(|l| model.layers.get(*l).copied()).collect();
    part.tensors.retain_mut(|group| {
        if group.layers.is_empty() {
            let embedding = matches!(group.class, TensorClass::Embedding | TensorClass::PositionEmbedding);
            return match group.class {
                TensorClass::LmHead => stores.head,
                _ if embedding => stores.embedding,
                _ => stores.norm,
            };
        }
        let all: u64 = group.layers.iter().map(|(a, b)| u64::from(b - a) + 1).sum();
        let held = |l: &&usize| group.layers.iter().any(|(a, b)| (*a as usize..=*b as usize).contains(*l));
        let here = stores.layers.iter().filter(held).count() as u64;
        group.count = group.count / all.max(1) * here;
        // Positions in the cut model do not matter to one device: the group is on it, whole.
        group.layers = Vec::new();
        here > 0
    });
    part.parameters = part.tensors.iter().map(|t| t.elements().saturating_mul(t.count)).sum();
    part
}

/// The ledger of the fullest device, with a line for each.
pub(super) fn ledger(inputs: &Inputs<'_>, detail: Detail) -> Result<Ledger, Problem> {
    let Some((parts, host)) = parts(inputs)? else { return ledger::ledger(inputs, &Share::whole(), detail) };
    let mut ledgers = Vec::new();
    for part in &parts {
        let own = Inputs { model: &part.model, device: &part.device, ..*inputs };
        ledgers.push(ledger::ledger(&own, &part.share, detail)?);
    }
    let fullest = (0..ledgers.len()).rev().max_by_key(|i| ledgers[*i].peak_bytes).unwrap_or(0);
    let bytes = |l: &Ledger, ids: &[TermId]| -> u64 {
        l.terms.iter().filter(|t| ids.contains(&t.id)).map(|t| t.bytes).sum()
    };
    let ranks = ledgers.iter().enumerate().map(|(index, l)| RankShare {
        first: parts[index].share.device,
        count: 1,
        stage: parts[index].share.device,
        weights_bytes: bytes(l, &[TermId::Weights]),
        kv_bytes: bytes(l, &[TermId::KvCache, TermId::RecurrentState]),
        peak_bytes: l.peak_bytes,
        fullest: index == fullest,
    });
    let ranks: Vec<RankShare> = ranks.collect();
    let verdict = ledgers.iter().map(|l| l.verdict).max_by_key(|v| *v as u8);
    let mut shown = ledgers.swap_remove(fullest);
    shown.verdict = verdict.unwrap_or(shown.verdict);
    shown.warnings.push(
        Message::new("transformers.spread")
            .with("device_map", inputs.serve.device_map.as_deref().unwrap_or_default())
            .with("devices", parts.len() as u64),
    );
    if parts.len() > 1 {
        shown.ranks = ranks;
    }
    if host > 0 {
        shown.warnings.push(Message::new("transformers.spread_to_host").with("bytes", Bytes(host)));
        shown.host.push(Term {
            id: TermId::Weights,
            bytes: host,
            low: host,
            high: host,
            residency: Residency::Resident,
            phases: PhaseId::ALL.to_vec(),
            provenance: Provenance::Exact,
            source: "infer_auto_device_map",
            working: Working::new("weights - Σ devices", host),
        });
    }
    Ok(shown)
}

/// The highest of the devices at each point.
struct Highest(Vec<Load>);

impl Surface for Highest {
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point {
        let points = self.0.iter().map(|load| load.at(sequences, prompt, new));
        let pick = |a: Point, b: Point| {
            let top = if b.peak_bytes > a.peak_bytes { b } else { a };
            let stop = a.stop.or(b.stop);
            Point { fits: a.fits && b.fits, stop, ..top }
        };
        points.reduce(pick).unwrap_or_default()
    }
}

/// The surface of the fullest device at each point.
pub(super) fn surface(inputs: &Inputs<'_>) -> Result<Box<dyn Surface>, Problem> {
    let Some((parts, _)) = parts(inputs)? else {
        return Ok(Box::new(surface::surface(inputs, &Share::whole())?));
    };
    let mut loads = Vec::new();
    for part in &parts {
        let own = Inputs { model: &part.model, device: &part.device, ..*inputs };
        loads.push(surface::surface(&own, &part.share)?);
    }
    if loads.is_empty() {
        return Err(Overflow.into());
    }
    Ok(Box::new(Highest(loads)))
}
