//! The forward pass: embedding, tables and masks, the layers, the head.

use super::attention::{Geometry, Mixed, Shared};
use super::graph::{Graph, Tensor};
use super::ops::{F32, I64};
use super::pool::Kind;
use super::program::Program;
use super::rotary::Tables;
use super::settings::Checkpointing;
use super::style::Sum;
use crate::engines::AttentionImpl;
use crate::engines::transformers::class::{Placement, Rope};
use crate::model::{AttentionKind, Layer, TensorClass, TensorGroup};

/// What the forward pass leaves in the caller's hands.
pub(super) struct Outcome {
    pub(super) loss: Tensor,
    /// The logits, which the model's output object names.
    pub(super) logits: Option<Tensor>,
}

impl<'p> Program<'p> {
    /// One forward pass with its loss.
    pub(super) fn forward(&'p self, g: &Graph<'p>, ids: &Tensor) -> Outcome {
        let table =
            g.parameter(self.model.vocab_size.saturating_mul(self.model.hidden_size), self.e, self.full());
        let last = self.body(g, ids, &table);
        let outcome = self.head(g, last, &table);
        self.casts.borrow_mut().clear();
        outcome
    }

    /// Everything up to the final norm.
    fn body(&'p self, g: &Graph<'p>, ids: &Tensor, table: &Tensor) -> Tensor {
        let hidden = self.model.hidden_size;
        if let Some(shards) = &self.shards {
            shards.begin(g);
        }
        let raw = self.embedding(g, ids, table);
        let placed = if self.style.positions { self.with_positions(g, &raw) } else { raw.clone() };
        let embedded = g.dropout(&placed, self.dropout.embedding);
        drop(placed);
        let positions = g.constant("position_ids", self.s(), I64);
        let windowed = if self.class.rope_tables > 1 { self.tables(g) } else { None };
        let shared = Shared { tables: self.tables(g), windowed, masks: self.masks(g), positions };
        let mut x = embedded.clone();
        for index in 0..self.model.layers.len() {
            g.pool.layer.set(index as u64 + 1);
            if let Some(shards) = &self.shards {
                x = shards.enter(g, index, &x);
            }
            let mut out = if self.train.checkpointing == Checkpointing::Full {
                let shared = shared.clone();
                g.checkpoint(&[&x], move |g, x| {
                    let out = self.layer(g, index, &x[0], &shared);
                    if g.recomputes() {
                        // Running again has an autocast block of its own.
                        self.casts.borrow_mut().clear();
                    }
                    out
                })
            } else {
                self.layer(g, index, &x, &shared)
            };
            if let Some(shards) = &self.shards {
                out = shards.leave(g, index, &out);
            }
            x = out;
        }
        g.pool.layer.set(0);
        let out = self.norm(g, &x, 1, hidden);
        self.returned.take();
        drop((raw, embedded, shared));
        out
    }

    fn embedding(&self, g: &Graph<'p>, ids: &Tensor, table: &Tensor) -> Tensor {
        let tracked = g.records(&[table]);
        let out = self.token(g, "embedding", self.model.hidden_size);
        let embedded = if tracked {
            let kept = g.save(&ids.data);
            let (n, e) = (table.data.n, self.e);
            g.node(out, &[table], move |g, _| {
                drop(kept);
                vec![Some(g.new_data("embedding_dense_backward", n, e))]
            })
        } else {
            Tensor::plain(out)
        };
        let embedded = if self.class.scaled_embedding { g.scale("mul(scale)", &embedded) } else { embedded };
        if self.wants_input_grads() { g.requiring_grad(&embedded) } else { embedded }
    }

    /// The rows of the position table, added to every sequence.
    fn with_positions(&self, g: &Graph<'p>, embedded: &Tensor) -> Tensor {
        let rows = self.model.tensors.iter().find(|t| t.class == TensorClass::PositionEmbedding);
        let table = self.weight(g, rows.map_or(0, TensorGroup::elements));
        let tracked = g.records(&[&table]);
        let out = g.new_data("position_embedding", self.s() * self.model.hidden_size, self.e);
        let rows = if tracked {
            let (n, e) = (table.data.n, self.e);
            g.node(out, &[&table], move |g, _| vec![Some(g.new_data("embedding_dense_backward", n, e))])
        } else {
            Tensor::plain(out)
        };
        g.add("add(positions)", embedded, &rows)
    }

    /// cos and sin for every position.
    fn tables(&self, g: &Graph<'p>) -> Option<Tables> {
        if self.class.rope == Rope::None {
            return None;
        }
        let width = self.model.layers.iter().find_map(|l| match l.attention.kind {
            AttentionKind::Mla { qk_rope_head_dim, .. } => Some(qk_rope_head_dim),
            ref other => Geometry::of(other).map(|h| h.head_dim),
        })?;
        // A part of the head may stay as it is.
        let width = match self.model.rotary_dim {
            0 => width,
            turned => turned.min(width),
        };
        let (n, e) = match self.class.rope {
            Rope::HalfFp32 | Rope::Complex => (width, F32),
            Rope::Split if self.model.attention_sinks => (width / 2, self.e),
            _ => (width, self.e),
        };
        let make = |op| g.constant(op, self.s().saturating_mul(n), e);
        let cos = make("cos");
        let sin = if self.class.rope == Rope::Complex { cos.clone() } else { make("sin") };
        Some(Tables { cos, sin })
    }

    /// The masks of the slots in use: boolean for sdpa, additive in the model's dtype for eager.
    fn masks(&self, g: &Graph<'p>) -> [Option<Tensor>; 3] {
        let masked = self.layout.lengths.masks(crate::engines::transformers::layout::Step::Prefill, self.s());
        let used = |slot: usize| {
            self.model.layers.iter().any(|l| usize::from(self.layout.slot(&l.attention.kind)) == slot)
        };
        std::array::from_fn(|slot| (masked[slot] && used(slot)).then(|| self.mask(g, slot)))
    }

    fn mask(&self, g: &Graph<'p>, slot: usize) -> Tensor {
        let pairs = self.s().saturating_mul(self.s());
        let all = pairs.saturating_mul(self.b());
        let kind = Kind::Scores;
        g.as_kind(kind, || {
            let mut windowed = None;
            if self.layout.lengths.windows[slot].is_some() {
                let greater = g.constant("gt", pairs, 1);
                windowed = Some(g.constant("and", pairs, 1));
                drop(greater);
            }
            let causal = g.constant("le", pairs, 1);
            let mut whole = if windowed.is_some() { g.constant("and", pairs, 1) } else { causal.clone() };
            drop((causal, windowed));
            if self.train.padding_mask {
                whole = g.constant("and(padding)", all, 1);
            } else if self.layout.lengths.attention != AttentionImpl::Eager {
                // Expanded over the batch without a copy.
                whole = whole.viewed(all);
            }
            if self.layout.lengths.attention == AttentionImpl::Eager {
                whole = g.constant("where", all, self.e);
            }
            whole
        })
    }

    /// Layer `index` on its input.
    fn layer(&'p self, g: &Graph<'p>, index: usize, x: &Tensor, shared: &Shared) -> Tensor {
        let layer = self.model.layers[index];
        match self.class.placement {
            Placement::Parallel { norms } => self.parallel(g, index, &layer, x, norms, shared),
            _ => self.sequential(g, index, &layer, x, shared),
        }
    }

    fn sequential(
        &'p self,
        g: &Graph<'p>,
        index: usize,
        layer: &Layer,
        x: &Tensor,
        shared: &Shared,
    ) -> Tensor {
        let hidden = self.model.hidden_size;
        let before = self.class.placement != Placement::Post;
        let after = self.class.placement != Placement::Pre;
        let mut residual = x.clone();
        let mut weights = None;
        if layer.attention.kind != AttentionKind::None {
            let normed = if before { self.norm(g, x, 1, hidden) } else { x.clone() };
            let mixed = self.mixer(g, index, layer, &normed, shared);
            drop(normed);
            weights = mixed.weights;
            residual = self.join(g, mixed.output, after, &residual);
        }
        let normed = if before { self.norm(g, &residual, 1, hidden) } else { residual.clone() };
        let out = match self.feed_forward(g, index, &layer.mlp, &normed) {
            Some(out) => {
                drop(normed);
                self.join(g, out, after, &residual)
            }
            None => residual,
        };
        self.leave(g, weights);
        out
    }

    /// Attention weights that a layer returns stay until the next layer has returned its own.
    fn leave(&self, g: &Graph<'p>, weights: Option<Tensor>) {
        if self.class.returns_weights && !g.recomputes() {
            self.returned.replace(weights);
        }
    }

    /// Normalises a block's output where the class does, and adds the residual.
    fn join(&self, g: &Graph<'p>, output: Tensor, normed: bool, residual: &Tensor) -> Tensor {
        let mut output = output;
        if normed {
            output = self.norm(g, &output, 1, self.model.hidden_size);
        }
        g.add("add(residual)", residual, &output)
    }

    fn parallel(
        &'p self,
        g: &Graph<'p>,
        index: usize,
        layer: &Layer,
        x: &Tensor,
        norms: u64,
        shared: &Shared,
    ) -> Tensor {
        let hidden = self.model.hidden_size;
        let for_attention = self.norm(g, x, 1, hidden);
        let for_mlp = if norms > 1 { self.norm(g, x, 1, hidden) } else { for_attention.clone() };
        let mixed = self.mixer(g, index, layer, &for_attention, shared);
        let Some(out) = self.feed_forward(g, index, &layer.mlp, &for_mlp) else { return mixed.output };
        self.leave(g, mixed.weights);
        let (one, two) = (&mixed.output, &out);
        match self.style.sum {
            Sum::InPlace => {
                let both = g.add_in_place(two, one);
                g.add("add(residual)", &both, x)
            }
            Sum::Blocks => {
                let both = g.add("add", two, one);
                g.add("add(residual)", &both, x)
            }
            Sum::Residual => {
                let both = g.add("add(residual)", x, one);
                g.add("add", &both, two)
            }
        }
    }

    fn mixer(&'p self, g: &Graph<'p>, index: usize, layer: &Layer, x: &Tensor, shared: &Shared) -> Mixed {
        match Geometry::of(&layer.attention.kind) {
            Some(h) => self.attention(g, index, layer, h, x, shared),
            None => self.latent(g, layer, x, shared),
        }
    }
}
