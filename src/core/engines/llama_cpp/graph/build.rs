//! The graph of one batch, layer by layer, as llama.cpp builds it (`llm_graph_context` in src/llama-graph.cpp and
//! src/models): only shapes, operands and order matter here.

use super::tensor::{Graph, Id, Op, Runs};
use crate::engines::llama_cpp::parts::{Layout, Part};
use crate::engines::llama_cpp::settings::Settings;
use crate::model::{Layer, Model};

/// F32, as every result is.
pub(super) const F32: u64 = 4;
const I32: u64 = 4;
const I64: u64 = 8;
const F16: u64 = 2;

/// What a graph is built from.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) model: &'a Model,
    pub(super) settings: &'a Settings,
    pub(super) layout: &'a Layout,
    /// Tokens of the batch, a multiple of the sequences.
    pub(super) tokens: u64,
    /// Rows of logits.
    pub(super) outputs: u64,
    /// Backends on the device side; the host comes after them.
    pub(super) host: usize,
}

/// Inputs that attention layers share: mask and where new rows go.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) cells: u64,
    pub(super) mask: Id,
    pub(super) k_at: Option<Id>,
    pub(super) v_at: Option<Id>,
}

pub(super) struct Build<'a> {
    pub(super) job: Job<'a>,
    pub(super) g: Graph,
    pub(super) position: Id,
    pub(super) full: Option<Rows>,
    pub(super) window: Option<Rows>,
    /// Which state of a recurrent layer belongs to which sequence of the batch, and the others.
    pub(super) states: Option<[Id; 2]>,
    /// Frequency factors of each backend, once used.
    pub(super) factors: Vec<Option<Id>>,
    /// Inputs that turn rows of quantised caches: keys' and values'.
    pub(super) turns: [[Option<Id>; 2]; 2],
    /// Tensors that a device keeps while it runs several operations as one.
    pub(super) keep: Vec<(Id, Vec<Id>)>,
    /// The same, until the operation after.
    pub(super) keep_after: Vec<(Id, Vec<Id>)>,
}

/// The graph of a batch.
pub(super) fn graph(job: Job<'_>) -> (Graph, Vec<(Id, Vec<Id>)>) {
    let mut g = Graph::default();
    let tokens = job.tokens;
    let d = job.model.hidden_size;
    let ids = g.input([tokens, 1, 1, 1], I32);
    let given = g.input([d, tokens, 1, 1], F32);
    let table = g.weight(job.layout.bytes(None, Part::Embedding), job.host);
    let looked_up = g.op(Op::Fresh, &[table, ids], [d, tokens, 1, 1], F32);
    g.tensors[looked_up].wanted = Some(job.host);
    g.expand(looked_up);
    if job.settings.build.selects_embedding() {
        g.expand(given);
    }
    let position = g.input([tokens, 1, 1, 1], I32);
    let mut build = Build {
        job,
        g,
        position,
        full: None,
        window: None,
        states: None,
        keep: Vec::new(),
        keep_after: Vec::new(),
        factors: vec![None; job.host + 1],
        turns: [[None; 2]; 2],
    };
    build.inputs();
    let mut current = looked_up;
    if ["gemma", "granite"].iter().any(|m| job.model.model_type.starts_with(m)) {
        current = build.g.like(&[current]);
    }
    if job.layout.bytes(None, Part::Position) > 0 {
        let table = build.g.weight(job.layout.bytes(None, Part::Position), job.host);
        let rows = build.g.op(Op::Fresh, &[table, position], [d, tokens, 1, 1], F32);
        build.g.tensors[rows].wanted = Some(job.host);
        current = build.g.like(&[current, rows]);
    }
    let chosen = build.g.input([job.outputs, 1, 1, 1], I32);
    let last = job.model.layers.len().saturating_sub(1);
    let early = !late_outputs(job.model);
    let norm_first = job.model.model_type != "gpt_oss";
    for (index, layer) in job.model.layers.iter().enumerate() {
        let rows = (early && index == last).then_some(chosen);
        current = build.layer(index, layer, current, rows);
    }
    if !early && !norm_first {
        current = build.rows_of(current, chosen);
    }
    let home = job.layout.place.output_home;
    current = build.norm(None, current, Part::FinalNorm, home, false);
    if !early && norm_first {
        current = build.rows_of(current, chosen);
    }
    let head = job.layout.bytes(None, Part::Output);
    let mut logits = build.multiply(head, home, current, [job.model.vocab_size, job.outputs, 1, 1]);
    if job.model.final_logit_softcap {
        for _ in 0..3 {
            logits = build.g.like(&[logits]);
        }
    }
    build.g.expand(logits);
    build.kept()
}

/// Architectures that pick the rows of logits after the last layer, not inside it.
fn late_outputs(model: &Model) -> bool {
    matches!(
        model.model_type.as_str(),
        "gpt_oss" | "qwen3_next" | "qwen3_5_text" | "qwen3_5_moe_text" | "nemotron_h"
    )
}

impl Build<'_> {
    /// The graph, and what is kept until which operation.
    fn kept(mut self) -> (Graph, Vec<(Id, Vec<Id>)>) {
        for (last, kept) in std::mem::take(&mut self.keep_after) {
            let at = self.g.nodes.iter().position(|id| *id == last);
            if let Some(next) = at.and_then(|at| self.g.nodes.get(at + 1)) {
                self.keep.push((*next, kept));
            }
        }
        (self.g, self.keep)
    }

    /// Masks, places of new rows, states.
    fn inputs(&mut self) {
        let (job, s) = (self.job, self.job.settings);
        if s.cells.full_layers > 0 {
            self.full = Some(self.rows(s.cells.full));
        }
        if s.cells.window_layers > 0 {
            self.window = Some(self.rows(s.cells.window));
        } else if s.cells.masked_window {
            self.window = Some(self.rows(s.cells.full));
        }
        let kinds = [s.cells.full_layers > 0, s.cells.window_layers > 0];
        for which in (0..2).filter(|which| kinds[*which]) {
            let sides = [s.turn(s.k, false), s.turn(s.v, true)];
            self.turns[which] = sides.map(|n| n.map(|n| self.g.input([n, n, 1, 1], F32)));
        }
        if job.layout.recurrent() {
            let which = self.g.input([s.seqs, 1, 1, 1], I32);
            let of_batch = self.g.view(which, [s.seqs, 1, 1, 1], [I32; 4]);
            self.states = Some([of_batch, self.g.view(which, [0, 1, 1, 1], [I32; 4])]);
        }
    }

    fn rows(&mut self, cells: u64) -> Rows {
        let (s, tokens) = (self.job.settings, self.job.tokens);
        // Older builds copy new rows into a view of the cache.
        let by_index = s.build.stores_by_index();
        let k_at = by_index.then(|| self.g.input([tokens, 1, 1, 1], I64));
        let per_token = if s.flash { 1 } else { self.job.layout.widest_value() };
        let v_at = by_index.then(|| self.g.input([tokens.saturating_mul(per_token), 1, 1, 1], I64));
        let rows = s.build.mask_rows(tokens / s.streams, s.flash);
        let shape = [cells, rows, 1, s.streams];
        let width = if s.flash && s.build.mask_is_half() { F16 } else { F32 };
        let mut mask = self.g.input(shape, width);
        if s.flash && width == F32 {
            mask = self.g.op(Op::Fresh, &[mask], shape, F16);
        }
        Rows { cells, mask, k_at, v_at }
    }

    /// A matrix on `home` times the batch.
    pub(super) fn multiply(&mut self, bytes: u64, home: usize, by: Id, ne: [u64; 4]) -> Id {
        let weight = self.g.weight(bytes, home);
        self.g.op(Op::Fresh, &[weight, by], ne, F32)
    }

    /// A vector on `home` added to, or multiplied with, the batch in place.
    pub(super) fn apply(&mut self, bytes: u64, home: usize, to: Id) -> Id {
        let weight = self.g.weight(bytes, home);
        self.g.like(&[to, weight])
    }

    /// A normalisation. The graph asks for the layer's own device where all layers are on devices.
    pub(super) fn norm(&mut self, layer: Option<usize>, of: Id, part: Part, home: usize, pinned: bool) -> Id {
        let (bytes, bias) = (self.job.layout.bytes(layer, part), self.job.layout.biased(layer, part));
        let of_rms = if bias { Op::Fresh } else { Op::InPlace };
        let (ne, width) = (self.g.tensors[of].ne, self.g.tensors[of].width);
        let mut current = self.g.op(of_rms, &[of], ne, width);
        if pinned && (self.job.layout.all_on_devices() || self.job.tokens < 32) {
            self.g.tensors[current].wanted = Some(home);
        }
        if bytes > 0 {
            current = self.apply(bytes, home, current);
        }
        if bias {
            current = self.apply(bytes, home, current);
        }
        current
    }

    /// The rows of which logits are wanted.
    pub(super) fn rows_of(&mut self, of: Id, chosen: Id) -> Id {
        let width = self.g.tensors[of].ne[0];
        self.g.op(Op::Fresh, &[of, chosen], [width, self.job.outputs, 1, 1], F32)
    }

    /// One layer.
    fn layer(&mut self, index: usize, layer: &Layer, input: Id, chosen: Option<Id>) -> Id {
        let layout = self.job.layout;
        let home = layout.home(index);
        let at = Some(index);
        let norm = |part| layout.bytes(at, part) > 0;
        let mut residual = input;
        let normed = if norm(Part::AttentionNorm) {
            self.norm(at, input, Part::AttentionNorm, home, true)
        } else {
            input
        };
        if !layout.mixes(index) {
            let out = self.feed_forward(index, layer, normed);
            return self.g.like(&[out, residual]);
        }
        let mut current = self.mixer(index, layer, normed);
        let mut parallel_input = normed;
        if norm(Part::ParallelNorm) {
            parallel_input = self.norm(at, input, Part::ParallelNorm, home, true);
        }
        if let Some(chosen) = chosen {
            current = self.rows_of(current, chosen);
            residual = self.rows_of(residual, chosen);
            if !norm(Part::FeedForwardNorm) && !norm(Part::AttentionPostNorm) && layout.feed_forward(index) {
                parallel_input = self.rows_of(parallel_input, chosen);
            }
        }
        if norm(Part::AttentionPostNorm) {
            current = self.norm(at, current, Part::AttentionPostNorm, home, true);
        }
        if !layout.feed_forward(index) {
            return self.g.like(&[current, residual]);
        }
        let parallel = !norm(Part::FeedForwardNorm) && !norm(Part::FeedForwardPostNorm);
        if parallel || norm(Part::ParallelNorm) {
            let out = self.feed_forward(index, layer, parallel_input);
            let sum = self.g.like(&[out, current]);
            return self.g.like(&[sum, residual]);
        }
        current = self.g.like(&[current, residual]);
        let middle = current;
        if norm(Part::FeedForwardNorm) {
            current = self.norm(at, current, Part::FeedForwardNorm, home, true);
        }
        current = self.feed_forward(index, layer, current);
        if norm(Part::FeedForwardPostNorm) {
            current = self.norm(at, current, Part::FeedForwardPostNorm, home, false);
        }
        // The first operand that nobody else needs gives its place.
        let phi = self.job.model.model_type.starts_with("phi3");
        self.g.like(&if phi { [middle, current] } else { [current, middle] })
    }

    /// Marks an operation for which the device has no kernel.
    pub(super) fn host_only(&mut self, id: Id) {
        self.g.tensors[id].runs = Runs::HostOnly;
    }
}
