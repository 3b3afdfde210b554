//! Feed-forward layers: dense, and experts.

use super::build::{Build, F32};
use super::tensor::{Id, Op};
use crate::engines::llama_cpp::parts::Part;
use crate::model::{Layer, MlpKind};

const I32: u64 = 4;
/// Results of more experts are not added in one operation on a device.
const MOST_FUSED: u64 = 15;

impl Build<'_> {
    /// The feed-forward of a layer.
    pub(super) fn feed_forward(&mut self, index: usize, layer: &Layer, input: Id) -> Id {
        match layer.mlp.kind {
            MlpKind::Dense { intermediate } => {
                let parts = [Part::Gate, Part::Up, Part::Down];
                self.dense(index, input, intermediate, layer.mlp.gated, parts)
            }
            MlpKind::Moe { experts, top_k, intermediate, shared_intermediate, .. } => {
                let routed = self.experts(index, input, [experts, top_k, intermediate], layer.mlp.gated);
                if shared_intermediate == 0 {
                    return routed;
                }
                let parts = [Part::SharedGate, Part::SharedUp, Part::SharedDown];
                let mut shared = self.dense(index, input, shared_intermediate, layer.mlp.gated, parts);
                let (layout, home) = (self.job.layout, self.job.layout.home(index));
                let gate = layout.bytes(Some(index), Part::SharedRouter);
                if gate > 0 {
                    let rows = self.g.tensors[input].ne[1];
                    let gate = self.multiply(gate, home, input, [1, rows, 1, 1]);
                    let gate = self.g.like(&[gate]);
                    shared = self.g.like(&[shared, gate]);
                }
                self.g.like(&[routed, shared])
            }
            MlpKind::None => input,
        }
    }

    fn dense(&mut self, index: usize, input: Id, inner: u64, gated: bool, parts: [Part; 3]) -> Id {
        let rows = self.g.tensors[input].ne[1];
        let (layout, at) = (self.job.layout, Some(index));
        let [gate, up, down] = parts;
        let ne = [inner, rows, 1, 1];
        let fused = self.job.model.layers[index].mlp.fused_gate_up && layout.bytes(at, up) == 0;
        let active = if !gated {
            let up = if layout.bytes(at, up) > 0 { up } else { gate };
            let wide = self.project(index, up, input, ne);
            let mut out = self.g.like(&[wide]);
            if self.job.model.model_type == "nemotron_h" {
                out = self.g.like(&[out]);
            }
            out
        } else if fused && gate == Part::Gate {
            let both = self.project(index, gate, input, [inner.saturating_mul(2), rows, 1, 1]);
            self.g.op(Op::Fresh, &[both], ne, F32)
        } else {
            // A fused shared expert is stored as two matrices.
            let up = if layout.bytes(at, up) > 0 { up } else { gate };
            let up = self.project(index, up, input, ne);
            let gate = self.project(index, gate, input, ne);
            self.gate_and_up(gate, up)
        };
        let d = self.job.model.hidden_size;
        self.project(index, down, active, [d, rows, 1, 1])
    }

    /// Gate and up meet: in one operation with a result of its own, in older builds in place.
    fn gate_and_up(&mut self, gate: Id, up: Id) -> Id {
        if self.job.settings.build.fused_gate() {
            let ne = self.g.tensors[gate].ne;
            return self.g.op(Op::Fresh, &[gate, up], ne, F32);
        }
        let gate = self.g.like(&[gate]);
        self.g.like(&[gate, up])
    }

    fn experts(&mut self, index: usize, input: Id, [experts, top_k, inner]: [u64; 3], gated: bool) -> Id {
        let (layout, at) = (self.job.layout, Some(index));
        let far = layout.experts_home(index);
        let (d, tokens) = (self.job.model.hidden_size, self.g.tensors[input].ne[1]);
        let (picked, weights) = self.route(index, input, experts, top_k);
        self.g.expand(weights);
        let wide = self.g.reshape(input, [d, 1, tokens, 1]);
        let half = layout.bytes(at, Part::ExpertGateUp) / if gated { 2 } else { 1 };
        let half_bias = layout.bias(at, Part::ExpertGateUp) / if gated { 2 } else { 1 };
        let product = |build: &mut Self, bytes: u64, bias: u64, by: Id, out: u64| {
            let weight = build.g.weight(bytes, far);
            let mut id = build.g.op(Op::Fresh, &[weight, by, picked], [out, top_k, tokens, 1], F32);
            if bias > 0 {
                let bias = build.g.weight(bias, far);
                id = build.g.like(&[id, bias, picked]);
            }
            id
        };
        let up = product(self, half, half_bias, wide, inner);
        let active = if gated {
            let gate = product(self, half, half_bias, wide, inner);
            self.gate_and_up(gate, up)
        } else {
            let once = self.g.like(&[up]);
            self.g.like(&[once])
        };
        let (down, bias) = (layout.bytes(at, Part::ExpertDown), layout.bias(at, Part::ExpertDown));
        let raw = product(self, down, bias, active, d);
        let scaled = self.g.like(&[raw, weights]);
        self.g.expand(scaled);
        let nb = self.g.tensors[scaled].nb;
        let mut views = Vec::new();
        for _ in 0..top_k {
            let view = self.g.view(scaled, [d, tokens, 1, 1], [F32, nb[2], nb[3], nb[3]]);
            self.g.expand(view);
            views.push(view);
        }
        let Some((first, rest)) = views.split_first() else { return input };
        let mut sum = *first;
        for view in rest {
            sum = self.g.like(&[sum, *view]);
            let (ne, width) = (self.g.tensors[sum].ne, self.g.tensors[sum].width);
            self.g.tensors[sum].nb = super::tensor::contiguous(ne, width);
            self.g.expand(sum);
        }
        if rest.is_empty() {
            return self.g.op(Op::Fresh, &[sum], [d, tokens, 1, 1], F32);
        }
        if self.job.settings.build.fuses_experts() && top_k <= MOST_FUSED {
            self.keep.push((sum, vec![raw, weights]));
        }
        sum
    }

    /// Scores of all experts, the best of them, their weights; and what a device keeps while it does this as one.
    fn route(&mut self, index: usize, input: Id, experts: u64, top_k: u64) -> (Id, Id) {
        let tokens = self.g.tensors[input].ne[1];
        let late = self.job.model.model_type == "gpt_oss";
        let scores = self.project(index, Part::Router, input, [experts, tokens, 1, 1]);
        let probs = if late { scores } else { self.g.like(&[scores]) };
        let of_sigmoid = ["deepseek_v3", "glm4_moe", "nemotron_h", "minimax_m2"];
        let biased = of_sigmoid.contains(&self.job.model.model_type.as_str());
        let home = self.job.layout.home(index);
        let chosen_by = if biased { self.apply(experts.saturating_mul(F32), home, probs) } else { probs };
        let sorted = self.g.op(Op::Fresh, &[chosen_by], [experts, tokens, 1, 1], I32);
        let nb = self.g.tensors[sorted].nb;
        let picked = self.g.view(sorted, [top_k, tokens, 1, 1], nb);
        let shaped = self.g.reshape(probs, [1, experts, tokens, 1]);
        let looked_up = self.g.op(Op::Fresh, &[shaped, picked], [1, top_k, tokens, 1], F32);
        if late {
            let flat = self.g.reshape(looked_up, [top_k, tokens, 1, 1]);
            let soft = self.g.like(&[flat]);
            return (picked, self.g.reshape(soft, [1, top_k, tokens, 1]));
        }
        let mut fused = vec![probs, shaped, chosen_by, sorted, picked, looked_up];
        let mut weights = looked_up;
        if !matches!(self.job.model.model_type.as_str(), "deepseek_v2" | "llama4_text") {
            let flat = self.g.reshape(looked_up, [top_k, tokens, 1, 1]);
            let total = self.g.op(Op::Fresh, &[flat], [1, tokens, 1, 1], F32);
            let clamped = self.g.like(&[total]);
            let ratio = self.g.like(&[flat, clamped]);
            weights = self.g.reshape(ratio, [1, top_k, tokens, 1]);
            fused.extend([flat, total, clamped, ratio, weights]);
        }
        if matches!(self.job.model.model_type.as_str(), "deepseek_v3" | "nemotron_h") {
            weights = self.g.like(&[weights]);
            fused.push(weights);
        }
        let sized = experts.is_power_of_two() && experts <= 512 || experts == 288 || experts == 576;
        if self.job.settings.build.fuses_experts() && sized {
            let mut kept = fused.clone();
            for id in fused {
                kept.extend(self.g.tensors[id].src.iter().copied());
            }
            kept.sort_unstable();
            kept.dedup();
            self.keep_after.push((weights, kept));
        }
        (picked, weights)
    }
}
