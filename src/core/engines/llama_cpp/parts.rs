//! Which tensor is which part of a layer, and on which backend each part lies.

use super::place::Placement;
use crate::memory::WeightsSpec;
use crate::memory::weights::{FileTensor, file_tensors};
use crate::model::{AttentionKind, Layer, MlpKind, Model, TensorClass};
use crate::units::Problem;

/// Part of a layer, or of what surrounds the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Embedding,
    Position,
    Output,
    FinalNorm,
    AttentionNorm,
    AttentionPostNorm,
    FeedForwardNorm,
    FeedForwardPostNorm,
    /// Of a feed-forward beside the attention, over the same input.
    ParallelNorm,
    Q,
    K,
    V,
    Qkv,
    AttentionOut,
    QNorm,
    KNorm,
    QDown,
    QDownNorm,
    QUp,
    KvDown,
    KvDownNorm,
    KvUp,
    Sinks,
    Gate,
    Up,
    Down,
    Router,
    SharedRouter,
    ExpertGateUp,
    ExpertDown,
    SharedGate,
    SharedUp,
    SharedDown,
    StateIn,
    StateGates,
    StateStep,
    StateOut,
    StateNorm,
    StateSmall,
}

/// The part that a tensor belongs to; whether it is a bias is a matter of its name's end.
fn part(class: TensorClass, name: &str, outside: bool, after_feed_forward: bool) -> Part {
    use TensorClass as C;
    let has = |text: &str| name.contains(text);
    match class {
        C::Embedding => Part::Embedding,
        C::PositionEmbedding => Part::Position,
        C::LmHead => Part::Output,
        C::AttentionQ => Part::Q,
        C::AttentionK => Part::K,
        C::AttentionV => Part::V,
        C::AttentionQkv => Part::Qkv,
        C::AttentionOut => Part::AttentionOut,
        C::AttentionLatent if has("q_a_proj") => Part::QDown,
        C::AttentionLatent if has("q_b_proj") => Part::QUp,
        C::AttentionLatent if has("kv_a_proj") => Part::KvDown,
        C::AttentionLatent => Part::KvUp,
        C::MlpGate => Part::Gate,
        C::MlpUp => Part::Up,
        C::MlpDown => Part::Down,
        C::ExpertGateUp => Part::ExpertGateUp,
        C::ExpertDown => Part::ExpertDown,
        C::SharedExpert if has("down") || has("output") => Part::SharedDown,
        C::SharedExpert if has("gate") || has("input") => Part::SharedGate,
        C::SharedExpert => Part::SharedUp,
        C::Router if has("shared_expert_gate") => Part::SharedRouter,
        C::Router => Part::Router,
        C::RecurrentProjection if has("out_proj") => Part::StateOut,
        C::RecurrentProjection if has("in_proj_z") || has("in_proj_ba") => Part::StateGates,
        C::RecurrentProjection if has("x_proj") || has("dt_proj") => Part::StateStep,
        C::RecurrentProjection => Part::StateIn,
        C::Bias => bias_of(name),
        C::Norm if outside => Part::FinalNorm,
        C::Norm => norm(name, after_feed_forward),
        C::Other if has("sinks") => Part::Sinks,
        C::Other | C::RecurrentSmall | C::Encoder => Part::StateSmall,
    }
}

fn bias_of(name: &str) -> Part {
    let pairs = [
        ("q_proj", Part::Q),
        ("k_proj", Part::K),
        ("v_proj", Part::V),
        ("qkv", Part::Qkv),
        ("query_key_value", Part::Qkv),
        ("c_attn", Part::Qkv),
        ("o_proj", Part::AttentionOut),
        ("self_attention.dense", Part::AttentionOut),
        ("attn.c_proj", Part::AttentionOut),
        ("experts.down", Part::ExpertDown),
        ("experts.gate_up", Part::ExpertGateUp),
        ("router", Part::Router),
        ("gate.", Part::Router),
        ("gate_proj", Part::Gate),
        ("c_fc", Part::Up),
        ("fc1", Part::Up),
        ("up_proj", Part::Up),
        ("h_to_4h", Part::Up),
        ("dt_proj", Part::StateStep),
    ];
    pairs.iter().find(|(text, _)| name.contains(text)).map_or(Part::Down, |(_, part)| *part)
}

fn norm(name: &str, after_feed_forward: bool) -> Part {
    let pairs = [
        ("q_norm", Part::QNorm),
        ("k_norm", Part::KNorm),
        ("q_layernorm", Part::QNorm),
        ("k_layernorm", Part::KNorm),
        ("q_a_layernorm", Part::QDownNorm),
        ("kv_a_layernorm", Part::KvDownNorm),
        ("linear_attn", Part::StateNorm),
        ("mamba", Part::StateNorm),
        ("mixer", Part::StateNorm),
        ("self_attn.norm", Part::StateNorm),
        ("pre_feedforward", Part::FeedForwardNorm),
        ("pre_ff", Part::FeedForwardNorm),
        ("post_feedforward", Part::FeedForwardPostNorm),
        ("post_mlp", Part::FeedForwardPostNorm),
        ("post_self_attn", Part::AttentionPostNorm),
        ("ln_mlp", Part::ParallelNorm),
        ("ln_2", Part::FeedForwardNorm),
        ("norm_2", Part::FeedForwardNorm),
    ];
    if let Some((_, part)) = pairs.iter().find(|(text, _)| name.contains(text)) {
        return *part;
    }
    match (name.contains("post_attention"), after_feed_forward) {
        (true, true) => Part::AttentionPostNorm,
        (true, false) => Part::FeedForwardNorm,
        (false, _) => Part::AttentionNorm,
    }
}

/// A tensor and the part that it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) part: Part,
    pub(super) bias: bool,
    pub(super) layer: Option<usize>,
    /// Index of its group among the model's tensors.
    pub(super) group: usize,
    pub(super) bytes: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    /// What a device holds beyond the bytes.
    pub(super) padding: u64,
    pub(super) format: &'static str,
    /// Output and input width.
    pub(super) widths: (u64, u64),
}

/// What the graph asks of a layer.
#[derive(Clone, Copy, Debug)]
struct Kind {
    feed_forward: bool,
    mixes: bool,
    recurrent: bool,
    value: u64,
}

/// A model's tensors by part, and where the layers lie.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) pieces: Vec<Piece>,
    /// Pieces of each layer, and last those outside the stack.
    by_layer: Vec<Vec<usize>>,
    kinds: Vec<Kind>,
    pub(super) place: Placement,
}

impl Layout {
    /// The layout of a model's file.
    ///
    /// Errors: as [`file_tensors`].
    pub(super) fn new(model: &Model, spec: &WeightsSpec, place: Placement) -> Result<Layout, Problem> {
        // Where a norm follows the feed-forward, the one called after attention follows that.
        let after = model.tensors.iter().any(|g| g.name.contains("post_feedforward_layernorm"));
        let piece = |tensor: FileTensor| {
            let group = &model.tensors[tensor.group];
            let (_, rows, cols) = group.matrix();
            Piece {
                part: part(group.class, &group.name, tensor.layer.is_none(), after),
                bias: group.name.ends_with("bias"),
                layer: tensor.layer,
                group: tensor.group,
                bytes: tensor.bytes,
                low: tensor.low,
                high: tensor.high,
                padding: tensor.padding,
                format: tensor.format,
                widths: (rows, cols),
            }
        };
        let pieces: Vec<Piece> = file_tensors(model, spec)?.into_iter().map(piece).collect();
        let mut by_layer = vec![Vec::new(); model.layers.len() + 1];
        for (i, piece) in pieces.iter().enumerate() {
            if let Some(list) = by_layer.get_mut(piece.layer.unwrap_or(model.layers.len())) {
                list.push(i);
            }
        }
        let kinds = model.layers.iter().map(kind).collect();
        Ok(Layout { pieces, by_layer, kinds, place })
    }

    fn of(&self, layer: Option<usize>, part: Part) -> impl Iterator<Item = &Piece> {
        let list = self.by_layer.get(layer.unwrap_or(self.kinds.len())).map_or(&[][..], Vec::as_slice);
        list.iter().map(|i| &self.pieces[*i]).filter(move |p| p.part == part)
    }

    /// Bytes of the matrix (or norm) of a part; zero where there is none. A tied head is the embedding.
    pub(super) fn bytes(&self, layer: Option<usize>, part: Part) -> u64 {
        let own: u64 = self.of(layer, part).filter(|p| !p.bias).map(|p| p.bytes).sum();
        match part {
            Part::Output if own == 0 => self.bytes(None, Part::Embedding),
            _ => own,
        }
    }

    /// Output and input width of a part's matrix; zero where there is none.
    pub(super) fn widths(&self, layer: Option<usize>, part: Part) -> (u64, u64) {
        let of = self.of(layer, part).filter(|p| !p.bias);
        of.fold((0, 0), |(out, _), p| (out + p.widths.0, p.widths.1))
    }

    /// Bytes of a part's bias.
    pub(super) fn bias(&self, layer: Option<usize>, part: Part) -> u64 {
        self.of(layer, part).filter(|p| p.bias).map(|p| p.bytes).sum()
    }

    /// Whether a part has a bias; a norm with one subtracts the mean first.
    pub(super) fn biased(&self, layer: Option<usize>, part: Part) -> bool {
        self.bias(layer, part) > 0
    }

    /// The backend of a layer.
    pub(super) fn home(&self, layer: usize) -> usize {
        self.place.homes.get(layer).copied().unwrap_or(self.place.host)
    }

    /// The backend of a layer's experts.
    pub(super) fn experts_home(&self, layer: usize) -> usize {
        if (layer as u64) < self.place.experts_on_host { self.place.host } else { self.home(layer) }
    }

    /// The backend of a tensor.
    pub(super) fn home_of(&self, piece: &Piece) -> usize {
        match (piece.layer, piece.part) {
            (Some(layer), Part::ExpertGateUp | Part::ExpertDown) => self.experts_home(layer),
            (Some(layer), _) => self.home(layer),
            (None, Part::Embedding | Part::Position) => self.place.host,
            (None, _) => self.place.output_home,
        }
    }

    pub(super) fn feed_forward(&self, layer: usize) -> bool {
        self.kinds.get(layer).is_some_and(|k| k.feed_forward)
    }

    pub(super) fn mixes(&self, layer: usize) -> bool {
        self.kinds.get(layer).is_some_and(|k| k.mixes)
    }

    pub(super) fn recurrent(&self) -> bool {
        self.kinds.iter().any(|k| k.recurrent)
    }

    /// Output and all layers on devices.
    pub(super) fn all_on_devices(&self) -> bool {
        let host = self.place.host;
        self.place.output_home != host && self.place.homes.iter().all(|h| *h != host)
    }

    /// Elements of V of a token in the layer that has most.
    pub(super) fn widest_value(&self) -> u64 {
        self.kinds.iter().map(|k| k.value).max().unwrap_or(0)
    }
}

fn kind(layer: &Layer) -> Kind {
    let value = match layer.attention.kind {
        AttentionKind::Full { kv_heads, v_head_dim, .. }
        | AttentionKind::Sliding { kv_heads, v_head_dim, .. } => kv_heads.saturating_mul(v_head_dim),
        AttentionKind::Chunked { kv_heads, head_dim, .. } => kv_heads.saturating_mul(head_dim),
        AttentionKind::Mla { kv_lora_rank, .. } => kv_lora_rank,
        AttentionKind::Recurrent(_) | AttentionKind::None => 0,
    };
    Kind {
        feed_forward: layer.mlp.kind != MlpKind::None,
        mixes: layer.attention.kind != AttentionKind::None,
        recurrent: matches!(layer.attention.kind, AttentionKind::Recurrent(_)),
        value,
    }
}
