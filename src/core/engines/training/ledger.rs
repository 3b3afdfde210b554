//! From a step's highest moments to the ledger: terms of each phase, range and verdict.

use super::graph::Rules;
use super::job::{Job, TrainInputs};
use super::pool::{ByKind, Kind, Moment};
use super::settings::Precision;
use super::states::{States, states};
use super::step::{Step, run};
use crate::engines::transformers::{other_processes, total};
use crate::memory::context::{Observed, context_overhead, library_workspace};
use crate::memory::{
    DeviceBudget, Ledger, Phase, PhaseId, Provenance, Range, Residency, Term, TermId, Verdict, Working,
};
use crate::units::{Message, Overflow, Problem};

/// Phases of a step, in time order.
const PHASES: [PhaseId; 4] = [PhaseId::Load, PhaseId::Forward, PhaseId::Backward, PhaseId::OptimizerStep];

/// The terms of a step, with the kinds of tensors each is made of.
const TERMS: &[(TermId, &[Kind], &str)] = &[
    (TermId::Weights, &[Kind::Weights], "Σ tensors ⌈n · e / 512⌉ · 512"),
    (TermId::Gradients, &[Kind::Gradients], "Σ tensors with a gradient ⌈n · e / 512⌉ · 512"),
    (TermId::MasterWeights, &[Kind::Master], "Σ tensors with a gradient ⌈n · 4 / 512⌉ · 512"),
    (TermId::OptimizerStates, &[Kind::States], "Σ states of tensors with a gradient"),
    (TermId::OptimizerTransient, &[Kind::OptimizerTransient], "temporaries of the optimizer's widest moment"),
    (TermId::ZeroBuffers, &[Kind::Gathered], ALIVE),
    (TermId::SavedActivations, &[Kind::Saved], ALIVE),
    (TermId::RecomputeTransient, &[Kind::Recompute], ALIVE),
    (TermId::Activations, &[Kind::Activations], ALIVE),
    (TermId::AttentionScores, &[Kind::Scores], ALIVE),
    (TermId::Logits, &[Kind::Logits], ALIVE),
    (TermId::Loss, &[Kind::Loss], ALIVE),
];

const ALIVE: &str = "Σ tensors alive at the peak, each ⌈bytes / 512⌉ · 512";

fn of(by: &ByKind, kinds: &[Kind]) -> u64 {
    kinds.iter().map(|k| by[*k as usize]).sum()
}

/// A step with its states: the last forward and backward of an accumulation, where there are several.
///
/// `counted`: as a dispatch mode sees it, which keeps autograd from adding gradients in place and the fused dropout
/// kernel from running. A device does both; that is the low end.
fn simulate(job: &Job<'_>, states: &States, counted: bool) -> Result<Step, Problem> {
    let train = job.program.train;
    // fp32 gradients beside bf16 parameters stay: each step adds to them.
    // So do the shares of ZeRO 2, into which each bucket is reduced.
    let shared = states.ranks > 1 && train.stage() == 2;
    let gathered = states.ranks > 1 && train.shards_parameters();
    let accumulated =
        !gathered && (train.gradient_accumulation > 1 || train.precision == Precision::Bf16Master || shared);
    run(
        &job.program,
        states,
        Rules { accumulated, in_place_sums: !counted, scattered: gathered, fused_dropout: !counted },
    )
}

/// Peak of a job in bytes, for searches: what [`ledger`] answers as `peak_bytes`.
///
/// Errors: as the ledger.
pub fn peak_bytes(inputs: &TrainInputs<'_>) -> Result<u64, Problem> {
    let job = Job::new(inputs)?;
    let step = simulate(&job, &states(inputs.model, inputs.train, inputs.parallel.data)?, true)?;
    let outside = Outside::new(inputs);
    let highest = step.forward.bytes.max(step.backward.bytes).max(step.optimizer.bytes);
    Ok(total(&[highest, outside.context.bytes, outside.workspace.bytes, outside.others])?)
}

/// Bytes outside the framework's allocator, and its library workspace.
struct Outside {
    context: Term,
    workspace: Term,
    others: u64,
}

impl Outside {
    fn new(inputs: &TrainInputs<'_>) -> Outside {
        let arch = inputs.device.gpu.map(|g| g.arch);
        let mut context = context_overhead(arch).term(TermId::ContextOverhead);
        let mut workspace = library_workspace(arch).term(TermId::Workspace);
        context.phases = PHASES.to_vec();
        if let Some(measured) = inputs.measured.non_torch_bytes {
            let Observed { point, .. } = context_overhead(arch);
            (context.bytes, context.low, context.high) = (measured, measured, measured);
            context.provenance = Provenance::Measured;
            context.working = Working::new("measured", measured).with("modelled", point, "B");
        }
        workspace.residency = Residency::Resident;
        // The workspace is there from the first matrix product on.
        workspace.phases = PHASES[1..].to_vec();
        Outside { context, workspace, others: inputs.device.other_processes_bytes }
    }
}

/// The ledger of one training step.
///
/// Errors: what is not modelled, with the field.
pub fn ledger(inputs: &TrainInputs<'_>) -> Result<Ledger, Problem> {
    let job = Job::new(inputs)?;
    let states = states(inputs.model, inputs.train, inputs.parallel.data)?;
    let step = simulate(&job, &states, true)?;
    let low = simulate(&job, &states, false)?;
    let outside = Outside::new(inputs);
    let moments = [step.load, step.forward, step.backward, step.optimizer];
    let lows = [low.load, low.forward, low.backward, low.optimizer];
    let mut phases = Vec::new();
    for (id, moment) in PHASES.into_iter().zip(&moments) {
        let workspace = if id == PhaseId::Load { 0 } else { outside.workspace.bytes };
        phases.push(Phase {
            id,
            allocated_bytes: moment.bytes,
            peak_bytes: total(&[moment.bytes, workspace, outside.context.bytes, outside.others])?,
        });
    }
    let mut terms = Vec::new();
    for (id, kinds, formula) in TERMS {
        terms.extend(rows(*id, kinds, formula, [&moments, &lows], inputs, &job, &states));
    }
    terms.extend([outside.workspace, outside.context]);
    if outside.others > 0 {
        terms.push(other_processes(outside.others));
    }
    let top = crate::memory::highest(&phases).ok_or(Overflow)?;
    let alive = || terms.iter().filter(|t| t.phases.contains(&top));
    let sum = |of: fn(&Term) -> u64| total(&alive().map(of).collect::<Vec<_>>());
    let peak_bytes = sum(|t| t.bytes)?;
    let range = Range { low: sum(|t| t.low)?, high: sum(|t| t.high)? };
    let device_total = inputs.device.total_bytes;
    let verdict = if range.high <= device_total {
        Verdict::Fits
    } else if peak_bytes <= device_total {
        Verdict::Tight
    } else {
        Verdict::DoesNotFit
    };
    let mut warnings = job.warnings;
    if states.ranks > 1 {
        warnings.push(Message::new("training.data_parallel").with("ranks", states.ranks));
    }
    warnings.push(Message::new("training.reserved"));
    Ok(Ledger {
        terms,
        phases,
        device: DeviceBudget {
            total_bytes: device_total,
            budget_bytes: device_total.saturating_sub(outside.others),
        },
        kv: None,
        peak: range,
        peak_bytes,
        verdict,
        refusal: None,
        warnings,
        ranks: Vec::new(),
        host: Vec::new(),
    })
}

/// The rows of one term: one for each size it has in some phases, the largest first.
fn rows(
    id: TermId,
    kinds: &[Kind],
    formula: &'static str,
    [moments, lows]: [&[Moment; 4]; 2],
    inputs: &TrainInputs<'_>,
    job: &Job<'_>,
    states: &States,
) -> Vec<Term> {
    let mut sizes: Vec<(u64, Vec<PhaseId>, Moment, u64)> = Vec::new();
    for ((phase, moment), low) in PHASES.into_iter().zip(moments).zip(lows) {
        let bytes = of(&moment.by, kinds);
        let low = of(&low.by, kinds).min(bytes);
        if bytes == 0 {
            continue;
        }
        match sizes.iter_mut().find(|(b, ..)| *b == bytes) {
            Some((_, phases, _, least)) => {
                phases.push(phase);
                *least = low.min(*least);
            }
            None => sizes.push((bytes, vec![phase], *moment, low)),
        }
    }
    sizes.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    let row = |(bytes, phases, moment, low): (u64, Vec<PhaseId>, Moment, u64)| {
        let stays = matches!(
            id,
            TermId::Weights | TermId::MasterWeights | TermId::OptimizerStates | TermId::Gradients
        );
        let band = if stays { 0 } else { bytes / 100 * job.spread };
        // DeepSpeed gathers parameters until so many are alive; counted is one layer and the next.
        let gathers = id == TermId::ZeroBuffers && states.ranks > 1 && inputs.train.zero_stage == 3;
        let live = if gathers && inputs.train.fsdp.is_none() { live_parameters(states, inputs) } else { 0 };
        let t = inputs.train;
        let mut working = Working::new(formula, bytes);
        if stays {
            working = working
                .with("N", states.parameters, "parameters")
                .with("N_grad", states.trained_parameters, "parameters")
                .with("precision", t.precision.id(), "");
        } else {
            working = working
                .with("B", t.micro_batch, "sequences")
                .with("S", t.seq_len, "tokens")
                .with("operator", moment.op, "");
            if moment.layer > 0 {
                working = working.with("layer", moment.layer - 1, "");
            }
        }
        Term {
            id,
            bytes,
            low: low.saturating_sub(band),
            high: bytes.saturating_add(band).max(live),
            residency: if stays { Residency::Resident } else { Residency::Transient },
            phases,
            provenance: if band == 0 && low == bytes && live <= bytes {
                Provenance::Exact
            } else {
                Provenance::Bounded
            },
            source: "torch 2.15 autograd, transformers 5.24 modelling code",
            working,
        }
    };
    sizes.into_iter().map(row).collect()
}

/// Bytes of as many gathered parameters as ZeRO 3 keeps alive by default (`stage3_max_live_parameters`, 1e9).
fn live_parameters(states: &States, inputs: &TrainInputs<'_>) -> u64 {
    states.parameters.min(1_000_000_000).saturating_mul(inputs.train.precision.parameter_bytes())
}
