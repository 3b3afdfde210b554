//! The surface: the few sums that can be the peak, ready for many points.

use super::device_map::Share;
use super::job::{Job, assistant};
use super::layout::{Asked, Lengths, Step};
use super::program::forward;
use super::select::select;
use super::steps::passes;
use super::sum::Sum;
use super::table::Table;
use super::tape::{Dims, SLOTS, Tape};
use crate::engines::{Detail, Inputs, Point, Stop, Surface};
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
    /// The choice of tokens after prefill, and after a decode step.
    chosen: [Table; 2],
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

pub(super) fn surface(inputs: &Inputs<'_>, share: &Share) -> Result<Load, Problem> {
    let job = Job::new(inputs, share)?;
    let model = job.model(inputs.model);
    let weights = job.weights(inputs, Detail::Figures)?;
    let arch = inputs.device.gpu.map(|g| g.arch);
    let (context, workspace) = (context_overhead(arch), library_workspace(arch));
    let measured = inputs.measured.non_torch_bytes;
    let others = inputs.device.other_processes_bytes;
    let drafted = assistant(inputs, share)?.map_or(0, |t| t.bytes);
    let add = |weights, context, workspace| {
        Bytes::sum([weights, drafted, context, workspace, others].map(Bytes)).map(|b| b.0)
    };
    let lengths = job.layout(&model).lengths;
    let tables = |step| std::array::from_fn(|bits| pass(&job, &model, &lengths, bits, step));
    let (prefill, decode): ([_; REGIMES], [_; REGIMES]) = (tables(Step::Prefill), tables(FIRST));
    // What the caches hold after a decode step.
    let held = |tape: &Tape| tape.last_sum(|b| matches!(b.term, TermId::KvCache | TermId::RecurrentState));
    let kv = decode[regime(lengths.masks(FIRST, 1))].as_ref().map(held);
    let chosen = [Step::Prefill, FIRST].map(|step| {
        let chooses = lengths.generates && share.embedding;
        let tape = chooses.then(|| select(&job.layout(&model), step, job.dtype, Tape::symbolic()));
        table(tape, &lengths, step)
    });
    Ok(Load {
        chosen,
        lengths,
        max_model_len: inputs.serve.max_model_len,
        prefill: prefill.map(|tape| table(tape, &lengths, Step::Prefill)),
        decode: decode.map(|tape| table(tape, &lengths, FIRST)),
        kv: kv.unwrap_or_default(),
        fixed: add(weights.bytes, measured.unwrap_or(context.point), workspace.point)?,
        fixed_high: add(weights.high, measured.unwrap_or(context.high), workspace.high)?,
        spread: job.spread(),
        scan: job.scan(1, 1),
        total: inputs.device.total_bytes,
    })
}

/// A step in a regime; none where the lengths cannot reach it.
fn pass(job: &Job<'_>, model: &Model, lengths: &Lengths, bits: usize, step: Step) -> Option<Tape> {
    let all = lengths.masks(step, 1);
    let reached = |slot: usize| {
        let bit = bits >> (slot - 1) & 1 == 1;
        bit == all[slot] || bit && lengths.windows[slot].is_some()
    };
    if !(1..SLOTS).all(reached) {
        return None;
    }
    let mut layout = job.layout(model);
    layout.masked = all;
    for slot in 1..SLOTS {
        layout.masked[slot] = bits >> (slot - 1) & 1 == 1;
    }
    Some(forward(&layout, step, job.dtype, Tape::symbolic()))
}

/// The stages of a pass that can be its peak.
fn table(tape: Option<Tape>, lengths: &Lengths, step: Step) -> Table {
    let Some(tape) = tape else { return Table::default() };
    let near = match step {
        Step::Prefill => Step::Prefill,
        Step::Decode { .. } => Step::Decode { past: 1024, first: true },
    };
    let asked = Asked { sequences: 1, prompt: 1024, new: 256, whole: 1280, longest: 2048, later: true };
    let near = lengths.dims(near, asked);
    // Without a static cache, a prefill pass sees exactly the prompt.
    let one_length = step == Step::Prefill && !lengths.fixed();
    Table::new(&tape.peaks(&near, one_length))
}

/// Any decode step: the tape of one is the tape of all.
const FIRST: Step = Step::Decode { past: 1, first: true };

impl Surface for Load {
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point {
        let prompt = prompt.max(1);
        let mut transient = 0;
        let mut last: Option<Dims> = None;
        for pass in passes(&self.lengths, prompt, new) {
            let asked = Asked::at(&pass, sequences, prompt, new, self.max_model_len);
            let dims = self.lengths.dims(pass.step, asked);
            let bits = regime(self.lengths.masks(pass.step, pass.prompt));
            let table = match (pass.phase, pass.step) {
                (PhaseId::Sampling, step) => &self.chosen[usize::from(step != Step::Prefill)],
                (_, Step::Prefill) => &self.prefill[bits],
                (_, Step::Decode { .. }) => &self.decode[bits],
            };
            transient = table.highest(&dims, transient);
            if pass.phase == PhaseId::Decode || last.is_none() {
                last = Some(dims);
            }
        }
        let kv_bytes = last.map_or(0, |dims| self.kv.bytes(&dims));
        let band = transient.saturating_sub(kv_bytes) / 100 * self.spread;
        let peak_bytes = self.fixed.saturating_add(transient);
        let scan = self.scan.saturating_mul(sequences).saturating_mul(prompt);
        let high_bytes = self.fixed_high.saturating_add(transient).saturating_add(band).saturating_add(scan);
        // Candidates are verified for one sequence at a time.
        let alone = self.lengths.verify == 0 || sequences.saturating_mul(self.lengths.rows) <= 1;
        let fits = alone && peak_bytes <= self.total;
        let stop = if alone { Stop::Device } else { Stop::Option };
        Point { peak_bytes, high_bytes, kv_bytes, fits, stop: (!fits).then_some(stop) }
    }
}
