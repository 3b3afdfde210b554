//! Recomputation: a part of the forward pass that keeps its inputs only, and runs again in backward.

use super::graph::Graph;
use super::pool::Kind;
use super::tensor::{Data, Tensor};
use std::cell::RefCell;
use std::rc::Rc;

impl<'a> Graph<'a> {
    /// Runs `part` on `inputs` without keeping what it saves; backward runs it again and then through it.
    ///
    /// As with `use_reentrant=False`, running again stops at the last tensor that is saved.
    pub(super) fn checkpoint(
        &self,
        inputs: &[&Tensor],
        part: impl Fn(&Graph<'a>, &[Tensor]) -> Tensor + 'a,
    ) -> Tensor {
        let detached: Vec<Tensor> = inputs.iter().map(|t| Tensor::plain(t.data.clone())).collect();
        if !self.recording.get() {
            return part(self, &detached);
        }
        let out = self.no_grad(|| part(self, &detached));
        drop(detached);
        let kept: Vec<(bool, Data)> = inputs.iter().map(|t| (t.tracked(), self.save(&t.data))).collect();
        self.node(out.data, inputs, move |graph, grad| {
            let floor = graph.len();
            let (kind, recorded) = (graph.kind.replace(Kind::Recompute), graph.recording.replace(true));
            // The inputs stay until the last saved tensor of the part is gone.
            let held = kept.clone();
            let (inner, taken): (Vec<Tensor>, Vec<_>) =
                kept.into_iter().map(|(tracked, data)| graph.entrance(tracked, data)).unzip();
            let last = graph.count_saves(&part, &inner);
            graph.saves.set(0);
            graph.stop_at.set(Some(last));
            let again = part(graph, &inner);
            graph.stop_at.set(None);
            graph.stopped.set(false);
            graph.kind.set(kind);
            graph.recording.set(recorded);
            drop(inner);
            graph.backward(&again, grad, floor);
            drop((again, held));
            taken.iter().map(|t| t.take()).collect()
        })
    }

    /// An input of a part that runs again: where its gradient arrives.
    fn entrance(&self, tracked: bool, data: Data) -> (Tensor, Rc<RefCell<Option<Data>>>) {
        let taken = Rc::new(RefCell::new(None));
        if !tracked {
            return (Tensor::plain(data), taken);
        }
        let sink = Rc::clone(&taken);
        let inner = self.node(data, &[], move |_, grad| {
            sink.replace(Some(grad));
            Vec::new()
        });
        (inner, taken)
    }

    /// Tensors that `part` saves, counted without making any.
    fn count_saves(&self, part: &impl Fn(&Graph<'a>, &[Tensor]) -> Tensor, inputs: &[Tensor]) -> u64 {
        let floor = self.len();
        self.saves.set(0);
        self.stopped.set(true);
        drop(part(self, inputs));
        self.stopped.set(false);
        self.nodes.borrow_mut().truncate(floor);
        self.saves.get()
    }
}
