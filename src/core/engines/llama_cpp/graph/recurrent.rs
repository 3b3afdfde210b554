//! Recurrent layers: gated delta net and Mamba 2 (src/models/delta-net-base.cpp and mamba-base.cpp).

use super::build::{Build, F32};
use super::tensor::{Id, Op};
use crate::engines::llama_cpp::parts::Part;
use crate::model::RecurrentState;

/// Sizes of a recurrent layer.
#[derive(Clone, Copy)]
struct Sizes {
    /// Channels of the convolution.
    channels: u64,
    kernel: u64,
    /// Heads of the state, and width of one.
    heads: u64,
    head: u64,
    /// Elements of the state in each of a head's rows.
    state: u64,
    inner: u64,
    seqs: u64,
    per_seq: u64,
}

impl Build<'_> {
    /// A recurrent mixer: projections, convolution, scan, output projection.
    pub(super) fn recurrent(&mut self, index: usize, state: RecurrentState, input: Id) -> Id {
        let (seqs, inner) = (self.job.settings.seqs, self.job.layout.widths(Some(index), Part::StateOut).1);
        let heads = state.state_heads.max(1);
        let head = (inner / heads).max(1);
        let sizes = Sizes {
            channels: state.conv_dim,
            kernel: state.conv_kernel,
            heads,
            head,
            state: state.state_per_head / head,
            inner,
            seqs,
            per_seq: self.job.tokens / seqs,
        };
        let mixed = if state.mechanism == "mamba2" {
            self.mamba(index, sizes, input)
        } else {
            self.delta_net(index, sizes, input)
        };
        let ne = [self.job.model.hidden_size, self.job.tokens, 1, 1];
        let out = self.project(index, Part::StateOut, mixed, ne);
        // The delta net's result is looked at in another shape, so that the residual gives its place instead.
        if state.mechanism == "mamba2" { out } else { self.g.reshape(out, ne) }
    }

    fn state_home(&self, index: usize) -> usize {
        if self.job.settings.kv_on_device { self.job.layout.home(index) } else { self.job.host }
    }

    /// The states of the batch's sequences, read by `rows` out of the cache; the rest of the cache is tidied.
    fn states(&mut self, index: usize, each: u64, rows: &dyn Fn(&mut Self, Id, Id) -> Id) -> (Id, Id) {
        let seqs = self.job.settings.seqs;
        let home = self.state_home(index);
        let line = each.saturating_mul(F32);
        let cache = self.g.cache(line.saturating_mul(seqs), home);
        let wide = |build: &mut Self, n: u64| {
            let id = build.g.view(cache, [each, n, 1, 1], [F32, line, line * n, line * n]);
            build.g.tensors[id].width = F32;
            id
        };
        let one = wide(self, 1);
        let cleared = self.g.view(one, [each, 1, 1, 1], [F32, line, line, line]);
        (self.g.tensors[cleared].op, self.g.tensors[cleared].src) = (Op::Into, vec![one]);
        self.g.expand(cleared);
        let all = wide(self, seqs);
        let [main, none] = self.states.unwrap_or([all, all]);
        let out = rows(self, all, main);
        self.g.expand(out);
        let extra = self.g.op(Op::Fresh, &[all, none], [each, 0, 1, 1], F32);
        let target = wide(self, 0);
        let copied = self.g.view(target, [each, 0, 1, 1], [F32, line, 0, 0]);
        (self.g.tensors[copied].op, self.g.tensors[copied].src) = (Op::Into, vec![extra, target]);
        self.g.expand(copied);
        (out, cache)
    }

    /// Writes something back into a cache.
    fn keep_state(&mut self, of: Id, cache: Id) {
        let ne = self.g.tensors[of].ne;
        let target = self.g.view(cache, ne, [F32; 4]);
        let copied = self.g.view(target, ne, [F32; 4]);
        (self.g.tensors[copied].op, self.g.tensors[copied].src) = (Op::Into, vec![of, target]);
        self.g.expand(copied);
    }

    /// The batch behind the last columns of each sequence, run through the convolution.
    fn convolved(&mut self, index: usize, s: Sizes, mixed: Id, bias: bool) -> Id {
        let tail = s.kernel.saturating_sub(1);
        let read = move |build: &mut Self, all: Id, main: Id| {
            let each = build.g.tensors[all].ne[0];
            build.g.op(Op::Fresh, &[all, main], [each, s.seqs, 1, 1], F32)
        };
        let (past, cache) = self.states(index, tail.saturating_mul(s.channels), &read);
        let past = self.g.reshape(past, [tail, s.channels, s.seqs, 1]);
        let turned = self.g.permute(mixed, [1, 0, 2, 3]);
        let window = [tail.saturating_add(s.per_seq), s.channels, s.seqs, 1];
        let joined = self.g.op(Op::Fresh, &[past, turned], window, F32);
        let nb = self.g.tensors[joined].nb;
        let last = self.g.view(joined, [tail, s.channels, s.seqs, 1], nb);
        self.keep_state(last, cache);
        let home = self.job.layout.home(index);
        let kernel = self.g.weight(s.kernel.saturating_mul(s.channels).saturating_mul(F32), home);
        let ne = [s.channels, s.per_seq, s.seqs, 1];
        let mut out = self.g.op(Op::Fresh, &[joined, kernel], ne, F32);
        if !s.channels.is_multiple_of(128) {
            self.host_only(out);
        }
        if bias {
            out = self.apply(s.channels.saturating_mul(F32), home, out);
        }
        self.g.like(&[out])
    }

    fn delta_net(&mut self, index: usize, s: Sizes, input: Id) -> Id {
        let (layout, home, tokens) = (self.job.layout, self.job.layout.home(index), self.job.tokens);
        self.g.expand(input);
        let at = Some(index);
        let k_dim = s.state;
        let k_heads = s.channels.saturating_sub(s.inner) / (2 * k_dim).max(1);
        // Converters store the input projection in two: q, k, v, and the gate z.
        let all = layout.bytes(at, Part::StateIn);
        let width = layout.widths(at, Part::StateIn).0.max(1);
        let share = |n: u64| (u128::from(all) * u128::from(n) / u128::from(width)) as u64;
        let own_gate = width <= s.channels;
        let qkv_bytes = if own_gate { all } else { share(s.channels) };
        let z_bytes = if own_gate { layout.bytes(at, Part::StateGates) } else { share(s.inner) };
        let mixed = self.multiply(qkv_bytes, home, input, [s.channels, tokens, 1, 1]);
        let mixed = self.g.reshape(mixed, [s.channels, s.per_seq, s.seqs, 1]);
        let z = self.multiply(z_bytes, home, input, [s.inner, tokens, 1, 1]);
        let gates = layout.bytes(at, Part::StateGates);
        let both = self.multiply(gates, home, input, [s.heads * 2, tokens, 1, 1]);
        let ratio = s.heads / k_heads.max(1);
        let both = self.g.reshape(both, [2 * ratio, k_heads, s.per_seq, s.seqs]);
        let nb = self.g.tensors[both].nb;
        let half = [ratio, k_heads, s.per_seq, s.seqs];
        let beta = self.g.view(both, half, nb);
        let beta = self.g.op(Op::Fresh, &[beta], half, F32);
        let beta = self.g.like(&[beta]);
        let alpha = self.g.view(both, half, nb);
        let alpha = self.g.op(Op::Fresh, &[alpha], [s.heads, s.per_seq, s.seqs, 1], F32);
        let alpha = self.apply(s.heads * F32, home, alpha);
        let alpha = self.g.like(&[alpha]);
        let gate = self.apply(s.heads * F32, home, alpha);
        let beta = self.g.reshape(beta, [1, s.heads, s.per_seq, s.seqs]);
        let gate = self.g.reshape(gate, [1, s.heads, s.per_seq, s.seqs]);
        let conv = self.convolved(index, s, mixed, false);
        let read = move |build: &mut Self, all: Id, main: Id| {
            let each = build.g.tensors[all].ne[0];
            build.g.op(Op::Fresh, &[all, main], [each, s.seqs, 1, 1], F32)
        };
        let each = s.head.saturating_mul(s.state).saturating_mul(s.heads);
        let (state, cache) = self.states(index, each, &read);
        let state = self.g.reshape(state, [s.head, s.head, s.heads, s.seqs]);
        let line = s.channels.saturating_mul(F32);
        let cut = |build: &mut Self, dim: u64, heads: u64| {
            let nb = [F32, dim * F32, line, line.saturating_mul(s.per_seq)];
            build.g.view(conv, [dim, heads, s.per_seq, s.seqs], nb)
        };
        let (q, k) = (cut(self, k_dim, k_heads), cut(self, k_dim, k_heads));
        let v = cut(self, s.head, s.heads);
        let spread = |build: &mut Self, of: Id| {
            let ne = build.g.tensors[of].ne;
            let normed = build.g.op(Op::InPlace, &[of], ne, F32);
            let scaled = build.g.like(&[normed]);
            if ratio <= 1 {
                return scaled;
            }
            let flat = build.g.reshape(scaled, [k_dim, 1, k_heads, tokens]);
            let wide = build.g.op(Op::Fresh, &[flat], [k_dim, ratio, k_heads, tokens], F32);
            build.g.reshape(wide, [k_dim, s.heads, s.per_seq, s.seqs])
        };
        let (q, k) = (spread(self, q), spread(self, k));
        let rows = tokens.saturating_add(s.state.saturating_mul(s.seqs));
        let ne = [s.inner, rows, 1, 1];
        let result = self.g.op(Op::Fresh, &[q, k, v, gate, beta, state], ne, F32);
        let shape = [s.head, s.heads, s.per_seq, s.seqs];
        let output = self.g.reshape(result, shape);
        let new = self.g.reshape(result, [s.head, s.state, s.heads, s.seqs]);
        self.keep_state(new, cache);
        let z = self.g.reshape(z, shape);
        let normed = self.norm(at, output, Part::StateNorm, home, true);
        let gate = self.g.op(Op::InPlace, &[z], shape, F32);
        let gated = self.g.like(&[normed, gate]);
        self.g.reshape(gated, [s.inner, s.per_seq, s.seqs, 1])
    }

    fn mamba(&mut self, index: usize, s: Sizes, input: Id) -> Id {
        let (home, tokens) = (self.job.layout.home(index), self.job.tokens);
        let width = self.job.layout.widths(Some(index), Part::StateIn).0;
        let bytes = self.job.layout.bytes(Some(index), Part::StateIn);
        // The states are read before the projection is asked for, as the engine does.
        let all = self.multiply(bytes, home, input, [width, tokens, 1, 1]);
        let all = self.g.reshape(all, [width, s.per_seq, s.seqs, 1]);
        let nb = self.g.tensors[all].nb;
        let heads = [s.head, s.heads, s.per_seq, s.seqs];
        let z = self.g.view(all, heads, [F32, s.head * F32, nb[1], nb[2]]);
        let mixed = self.g.view(all, [s.channels, s.per_seq, s.seqs, 1], nb);
        let step = self.g.view(all, [s.heads, s.per_seq, s.seqs, 1], nb);
        let conv = self.convolved(index, s, mixed, true);
        let groups = s.channels.saturating_sub(s.inner) / (2 * s.state).max(1);
        let line = s.channels.saturating_mul(F32);
        let cut = |build: &mut Self, dim: u64, n: u64| {
            let nb = [F32, dim * F32, line, line.saturating_mul(s.per_seq)];
            build.g.view(conv, [dim, n, s.per_seq, s.seqs], nb)
        };
        let x = cut(self, s.head, s.heads);
        let (b, c) = (cut(self, s.state, groups), cut(self, s.state, groups));
        let step = self.g.op(Op::Fresh, &[step], [s.heads, s.per_seq, s.seqs, 1], F32);
        let step = self.apply(s.heads * F32, home, step);
        let decay = self.g.weight(s.heads * F32, home);
        let each = s.inner.saturating_mul(s.state);
        let scanned = s.inner.saturating_mul(tokens).saturating_add(each.saturating_mul(s.seqs));
        let fits = matches!(s.state, 96 | 128 | 256) && s.head.is_multiple_of(16);
        let scan = move |build: &mut Self, all: Id, main: Id| {
            let states = build.g.reshape(all, [s.state, s.head, s.heads, s.seqs]);
            let id = build.g.op(Op::Fresh, &[states, x, step, decay, b, c, main], [scanned, 1, 1, 1], F32);
            if !fits {
                build.host_only(id);
            }
            id
        };
        let (scanned, cache) = self.states(index, each, &scan);
        let new = self.g.view(scanned, [each, s.seqs, 1, 1], [F32, each * F32, each * F32, each * F32]);
        self.keep_state(new, cache);
        let y = self.g.reshape(scanned, heads);
        let skip = self.g.weight(s.heads * F32, home);
        let skipped = self.g.like(&[x, skip]);
        let y = self.g.like(&[y, skipped]);
        let z = self.g.op(Op::Fresh, &[z], heads, F32);
        let mut y = self.g.op(Op::Fresh, &[z, y], heads, F32);
        if self.job.layout.bytes(Some(index), Part::StateNorm) > 0 {
            y = self.g.reshape(y, [s.inner / groups.max(1), groups, s.per_seq, s.seqs]);
            y = self.norm(Some(index), y, Part::StateNorm, home, true);
        }
        self.g.reshape(y, [s.inner, tokens, 1, 1])
    }
}
