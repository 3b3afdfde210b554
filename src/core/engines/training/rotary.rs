//! Rotary embedding of q and k, as each class writes it.

use super::graph::{Graph, Tensor};
use super::ops::F32;
use super::program::Program;
use crate::engines::transformers::class::Rope;

/// The tables alive through the pass.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
}

impl<'p> Program<'p> {
    /// q and k with positions rotated in.
    pub(super) fn rotate(
        &self,
        g: &Graph<'p>,
        q: &Tensor,
        k: &Tensor,
        tables: &Tables,
        head_dim: u64,
    ) -> (Tensor, Tensor) {
        let turned = self.model.rotary_dim;
        let part =
            |x: &Tensor| if turned < head_dim { x.data.n / head_dim.max(1) * turned } else { x.data.n };
        match self.class.rope {
            Rope::HalfFp32 => {
                let (e, wide_q, wide_k) = (q.data.e, g.rotate_half(q, tables), g.rotate_half(k, tables));
                let q = g.cast("to(dtype)", &wide_q, e);
                let k = g.cast("to(dtype)", &wide_k, e);
                (q, k)
            }
            Rope::HalfJoined => {
                let q = g.rotate_joined(q, tables, part(q));
                (q, g.rotate_joined(k, tables, part(k)))
            }
            Rope::Half if turned > 0 && turned < head_dim => {
                let q = g.rotate_joined(q, tables, part(q));
                (q, g.rotate_joined(k, tables, part(k)))
            }
            Rope::Split => (g.rotate_split(q, tables), g.rotate_split(k, tables)),
            Rope::Complex => g.rotate_complex(q, k, tables),
            Rope::Half | Rope::None => {
                let q = g.rotate_half(q, tables);
                (q, g.rotate_half(k, tables))
            }
        }
    }
}

impl Graph<'_> {
    /// `x * cos + rotate_half(x) * sin`.
    fn rotate_half(&self, x: &Tensor, tables: &Tables) -> Tensor {
        let cosine = self.mul("mul(cos)", x, &tables.cos);
        let sine = {
            let turned = {
                let half = x.data.n / 2;
                let first = self.slice(x, half);
                let second = self.slice(x, x.data.n - half);
                let negated = self.scale("neg", &second);
                self.cat("cat", &[&negated, &first])
            };
            self.mul("mul(sin)", &turned, &tables.sin)
        };
        self.add("add", &cosine, &sine)
    }

    /// The rotated part of `n` elements joined with the rest of the heads.
    fn rotate_joined(&self, x: &Tensor, tables: &Tables, n: u64) -> Tensor {
        let turning = self.slice(x, n);
        let rest = self.slice(x, x.data.n - n);
        let turned = self.rotate_half(&turning, tables);
        self.cat("cat", &[&turned, &rest])
    }

    /// Two halves rotated apart and joined.
    fn rotate_split(&self, x: &Tensor, tables: &Tables) -> Tensor {
        let half = x.data.n / 2;
        let [first, second] = self.split(x, [half, x.data.n - half]);
        let one = {
            let a = self.mul("mul(cos)", &first, &tables.cos);
            let b = self.mul("mul(sin)", &second, &tables.sin);
            self.add("sub", &a, &b)
        };
        let two = {
            let a = self.mul("mul(cos)", &second, &tables.cos);
            let b = self.mul("mul(sin)", &first, &tables.sin);
            self.add("add", &a, &b)
        };
        self.cat("cat", &[&one, &two])
    }

    /// A complex product in fp32.
    fn rotate_complex(&self, q: &Tensor, k: &Tensor, tables: &Tables) -> (Tensor, Tensor) {
        let (back_q, back_k) = (q.data.e, k.data.e);
        let q32 = self.cast("float", q, F32);
        let k32 = self.cast("float", k, F32);
        let q = {
            let turned = self.mul("mul(complex)", &q32, &tables.cos);
            self.cast("type_as", &turned, back_q)
        };
        let k = {
            let turned = self.mul("mul(complex)", &k32, &tables.cos);
            self.cast("type_as", &turned, back_k)
        };
        (q, k)
    }
}
