//! The surface: the few sums that can be the peak, ready for many points.

use super::job::{Job, longest, steps};
use super::layout::{Lengths, Step};
use super::program::forward;
use super::sum::Sum;
use super::table::Table;
use super::tape::{Dims, SLOTS, Tape};
use crate::engines::{CacheImpl, Inputs, Point, Stop, Surface};
use crate::memory::context::{context_overhead, library_workspace};
use crate::memory::{PhaseId, TermId};
use crate::model::Model;
use crate::units::{Bytes, Problem};

/// Mask regimes: one bit for each slot with a window.
const REGIMES: usize = 1 << (SLOTS - 1);

/// Everything of a job but its load.
pub(super) struct Load {
    lengths: Lengths,
    max_model_len: Option<u64>,
    prefill: [Table; REGIMES],
    decode: [Table; REGIMES],
    kv: Sum,
    /// Weights, context, workspace, neighbours.
    fixed: u64,
    fixed_high: u64,
    /// High end of the transients over their point, in percent.
    spread: u64,
    /// Bytes per prompt token that recurrent scans may add at the high end.
    scan: u64,
    total: u64,
}

fn regime(masked: [bool; SLOTS]) -> usize {
    masked[1..].iter().enumerate().map(|(bit, m)| usize::from(*m) << bit).sum()
}

pub(super) fn surface(inputs: &Inputs<'_>) -> Result<Load, Problem> {
    let job = Job::new(inputs)?;
    let model = job.model(inputs.model);
    let weights = job.weights(inputs)?;
    let arch = inputs.device.gpu.map(|g| g.arch);
    let (context, workspace) = (context_overhead(arch), library_workspace(arch));
    let measured = inputs.measured.non_torch_bytes;
    let others = inputs.device.other_processes_bytes;
    let add = |weights, context, workspace| {
        Bytes::sum([weights, context, workspace, others].map(Bytes)).map(|b| b.0)
    };
    let lengths = job.layout(&model).lengths;
    let tables = |decode| std::array::from_fn(|bits| table(&job, &model, &lengths, bits, decode));
    Ok(Load {
        lengths,
        max_model_len: inputs.serve.max_model_len,
        prefill: tables(false),
        decode: tables(true),
        kv: cache(&job, &model, &lengths),
        fixed: add(weights.bytes, measured.unwrap_or(context.point), workspace.point)?,
        fixed_high: add(weights.high, measured.unwrap_or(context.high), workspace.high)?,
        spread: job.spread(),
        scan: job.scan(1, 1),
        total: inputs.device.total_bytes,
    })
}

/// A step of each kind for a regime that the lengths can reach; empty where they cannot.
fn table(job: &Job<'_>, model: &Model, lengths: &Lengths, bits: usize, decode: bool) -> Table {
    let all = lengths.masks(if decode { FIRST } else { Step::Prefill }, 1);
    let reached = |slot: usize| {
        let bit = bits >> (slot - 1) & 1 == 1;
        bit == all[slot] || bit && lengths.windows[slot].is_some()
    };
    if !(1..SLOTS).all(reached) {
        return Table::default();
    }
    let mut layout = job.layout(model);
    layout.masked = all;
    for slot in 1..SLOTS {
        layout.masked[slot] = bits >> (slot - 1) & 1 == 1;
    }
    let step = if decode { FIRST } else { Step::Prefill };
    let tape = forward(&layout, step, job.dtype, Tape::symbolic());
    let near = match step {
        Step::Prefill => lengths.dims(step, 1, 1024, 2048),
        Step::Decode { .. } => lengths.dims(Step::Decode { past: 1024, first: true }, 1, 1024, 2048),
    };
    // Without a static cache, a prefill pass sees exactly the prompt.
    Table::new(&tape.peaks(&near, !decode && lengths.cache != CacheImpl::Static))
}

/// Any decode step: the tape of one is the tape of all.
const FIRST: Step = Step::Decode { past: 1, first: true };

/// What the caches hold after a decode step.
fn cache(job: &Job<'_>, model: &Model, lengths: &Lengths) -> Sum {
    let mut layout = job.layout(model);
    layout.masked = lengths.masks(FIRST, 1);
    let tape = forward(&layout, FIRST, job.dtype, Tape::symbolic());
    let held = |term| matches!(term, TermId::KvCache | TermId::RecurrentState);
    tape.last_sum(|block| held(block.term))
}

impl Surface for Load {
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point {
        let prompt = prompt.max(1);
        let needed = prompt.saturating_add(new);
        let longest = longest(self.max_model_len, needed);
        let mut transient = 0;
        let mut last: Option<Dims> = None;
        for (phase, step, prompt) in steps(&self.lengths, prompt, new).into_iter().flatten() {
            let dims = self.lengths.dims(step, sequences, prompt, longest);
            let bits = regime(self.lengths.masks(step, prompt));
            let table = if step == Step::Prefill { &self.prefill[bits] } else { &self.decode[bits] };
            transient = table.highest(&dims, transient);
            if phase == PhaseId::Decode || last.is_none() {
                last = Some(dims);
            }
        }
        let kv_bytes = last.map_or(0, |dims| self.kv.bytes(&dims));
        let band = transient.saturating_sub(kv_bytes) / 100 * self.spread;
        let peak_bytes = self.fixed.saturating_add(transient);
        let scan = self.scan.saturating_mul(sequences).saturating_mul(prompt);
        let high_bytes = self.fixed_high.saturating_add(transient).saturating_add(band).saturating_add(scan);
        let fits = peak_bytes <= self.total;
        Point { peak_bytes, high_bytes, kv_bytes, fits, stop: (!fits).then_some(Stop::Device) }
    }
}
