//! KV cache groups: which layers share a block table, how large a page is, what a request needs of each.

use super::settings::Settings;
use crate::engines::Inputs;
use crate::engines::pooled::stages;
use crate::memory::kv_cache::{bytes_per_token, heads_per_rank};
use crate::memory::recurrent::{StateLayout, state_bytes};
use crate::model::{AttentionKind, DType, Model, RecurrentState};
use crate::units::{Bytes, Message, Problem};

/// Frames that Whisper's encoder emits for its 30 seconds.
const WHISPER_FRAMES: u64 = 1500;

/// What a request needs of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Every token.
    All,
    /// The window and the tokens in flight.
    Window(u64),
    /// The chunk and the tokens in flight.
    Chunk(u64),
    /// States: this many blocks whatever the length.
    States(u64),
    /// The encoder's output.
    Encoder(u64),
}

/// Layers that share a block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) need: Need,
    /// Tokens of a block in this group.
    pub(super) block: u64,
}

impl Group {
    /// Blocks of one request of `len` tokens, with `in_flight` tokens scheduled at once over `ranks` context ranks.
    pub(super) fn blocks(self, len: u64, in_flight: u64, ranks: u64) -> u64 {
        match self.need {
            Need::All => len.div_ceil(ranks).div_ceil(self.block),
            Need::Window(w) => {
                w.saturating_sub(1).saturating_add(in_flight).min(len).div_ceil(self.block).saturating_add(1)
            }
            Need::Chunk(c) => c.saturating_add(in_flight).min(len).div_ceil(self.block),
            Need::States(n) => n,
            Need::Encoder(tokens) => tokens.div_ceil(self.block),
        }
    }
}

/// One layer's demand, before pages are unified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Demand {
    need: Need,
    /// Bytes per token, or of a whole state.
    bytes: u64,
}

/// How the pool is divided.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) groups: Vec<Group>,
    /// Bytes of a block over the layers of the fullest pipeline stage.
    pub(super) block_bytes: u64,
    /// The same on every stage.
    by_stage: Vec<u64>,
    /// Tokens of an attention block.
    pub(super) block_tokens: u64,
    /// Ranks over which the tokens of a sequence are spread.
    pub(super) ranks: u64,
    /// Layers that exist only to make groups equal.
    pub(super) padding_layers: u64,
    /// Bytes of a page and of what it really holds, where they differ (the state of a recurrent layer).
    pub(super) padded_state: Option<(u64, u64)>,
    /// Sliding or chunked layers hold every token here, since this version does not group them.
    pub(super) window_ignored: bool,
}

impl Layout {
    /// Blocks of one request of `len` tokens.
    pub(super) fn blocks(&self, len: u64, in_flight: u64) -> u64 {
        let sum = |n: u64, g: &Group| n.saturating_add(g.blocks(len, in_flight, self.ranks));
        self.groups.iter().fold(0, sum)
    }

    /// Bytes of a block over the layers of a pipeline stage.
    pub(super) fn stage_block(&self, stage: usize) -> u64 {
        self.by_stage.get(stage).copied().unwrap_or(0)
    }

    /// Blocks of one request that hold recurrent state.
    pub(super) fn state_blocks(&self) -> u64 {
        self.groups.iter().map(|g| if let Need::States(n) = g.need { n } else { 0 }).sum()
    }

    /// Divides the cache of `model` as this version does.
    ///
    /// Errors: a kind of layer whose accounting in this version is not known.
    pub(super) fn new(inputs: &Inputs<'_>, s: &Settings) -> Result<Layout, Problem> {
        let stages = stages(inputs.model.layers.len(), inputs.parallel.pipeline.max(1) as usize);
        let mut demands = demands(inputs, s)?;
        let mut window_ignored = false;
        if !mixes(&demands) {
            return uniform(&demands, s, inputs.parallel.context, &stages);
        }
        let chunked = demands.iter().any(|(_, d)| matches!(d.need, Need::Chunk(_)));
        if !s.version.groups_layers() || (chunked && !s.version.groups_chunked()) {
            for (_, d) in &mut demands {
                if matches!(d.need, Need::Window(_) | Need::Chunk(_)) {
                    d.need = Need::All;
                    window_ignored = true;
                }
            }
        }
        let layout = if mixes(&demands) {
            grouped(&demands, s, inputs.parallel.context, &stages)?
        } else {
            uniform(&demands, s, inputs.parallel.context, &stages)?
        };
        Ok(Layout { window_ignored, ..layout })
    }
}

fn mixes(demands: &[(usize, Demand)]) -> bool {
    demands.iter().any(|(_, d)| d.need != demands[0].1.need)
}

/// What every caching layer asks for, with the index of its layer; a layer with cross-attention asks twice.
fn demands(inputs: &Inputs<'_>, s: &Settings) -> Result<Vec<(usize, Demand)>, Problem> {
    let (model, tensor) = (inputs.model, inputs.parallel.tensor);
    let not_modelled =
        |what: &'static str| Problem::new("model", Message::new("vllm.not_modelled").with("what", what));
    if s.kv.id == "fp8_ds_mla"
        && !model.layers.iter().all(|l| matches!(l.attention.kind, AttentionKind::Mla { .. }))
    {
        let accepted = "auto, bf16, fp16, fp8, fp8_e4m3, fp8_e5m2";
        return Err(Problem::not_accepted("job.serve.kv_cache_dtype", s.kv.id, accepted));
    }
    let mut out = Vec::with_capacity(model.layers.len());
    // Layers of a draft model live on the last stage.
    let last = model.layers.len().saturating_sub(1);
    let draft = inputs.draft.map_or(&[][..], |d| &d.layers[..]);
    let all = model.layers.iter().enumerate().chain(draft.iter().map(|layer| (last, layer)));
    for (i, layer) in all {
        let kind = layer.attention.kind;
        let token = token_bytes(&kind, s, tensor)?;
        let need = match kind {
            AttentionKind::Sliding { window, .. } if s.version.v1 => Need::Window(window),
            AttentionKind::Chunked { chunk, .. } if s.version.v1 => Need::Chunk(chunk),
            // V0 gave windowed layers, too, a block table for all tokens.
            AttentionKind::Full { .. }
            | AttentionKind::Mla { .. }
            | AttentionKind::Sliding { .. }
            | AttentionKind::Chunked { .. } => Need::All,
            AttentionKind::Recurrent(_) if !s.version.v1 => {
                return Err(not_modelled("recurrent layers under V0"));
            }
            AttentionKind::Recurrent(state) => {
                let bytes = state_page(model, &state, s, inputs)?;
                out.push((i, Demand { need: Need::States(states_per_request(s)), bytes }));
                continue;
            }
            AttentionKind::None => continue,
        };
        out.push((i, Demand { need, bytes: token }));
        if layer.cross_attention {
            if model.model_type != "whisper" {
                return Err(not_modelled("encoder-decoder models other than Whisper"));
            }
            out.push((i, Demand { need: Need::Encoder(WHISPER_FRAMES), bytes: token }));
        }
    }
    if s.speculative > 0 && inputs.draft.is_none() {
        // Layers of the model's own draft head live on the last stage and cache like its last attention layer.
        let last = out.iter().rev().find(|(_, d)| d.need == Need::All).map(|(_, d)| *d);
        if let Some(demand) = last {
            let draft = model.mtp_layers.min(64);
            out.extend((0..draft).map(|_| (model.layers.len().saturating_sub(1), demand)));
        }
    }
    if out.is_empty() {
        return Err(not_modelled("models without any cache"));
    }
    Ok(out)
}

/// Bytes of one token in one layer on one rank, as this version caches it.
fn token_bytes(kind: &AttentionKind, s: &Settings, tensor: u64) -> Result<u64, Problem> {
    if let AttentionKind::Mla { heads, .. } = *kind
        && !s.version.caches_latents()
    {
        const PADDED: u64 = 256;
        let element = s.kv.bytes;
        return Ok(Bytes::product(&[2, heads_per_rank(heads, tensor), PADDED, element])?.0);
    }
    Ok(bytes_per_token(kind, s.kv, tensor)?)
}

/// Bytes of one layer's state. The dtype of the recurrent part follows the architecture: fp32 for the Qwen3.5
/// generation of Gated DeltaNet and for Kimi's, the model's dtype (`--mamba-ssm-cache-dtype auto`) elsewhere.
fn state_page(
    model: &Model,
    state: &RecurrentState,
    s: &Settings,
    inputs: &Inputs<'_>,
) -> Result<u64, Problem> {
    let element = inputs.weights.dtype.bytes();
    let delta_net = state.mechanism.contains("delta") && model.model_type != "qwen3_next";
    let of_state = if delta_net { DType::Fp32.bytes() } else { element };
    let layout = StateLayout::vllm(state.conv_kernel, s.speculative, element, of_state);
    Ok(state_bytes(state, layout, inputs.parallel.tensor)?)
}

/// State blocks of one request and group: one, one more where prefix caching keeps an aligned copy, one per
/// speculative token.
fn states_per_request(s: &Settings) -> u64 {
    let copies = if s.prefix_caching && s.version.aligns_states() { 2 } else { 1 };
    s.speculative.saturating_add(copies)
}

/// One group: every layer asks for the same tokens; page sizes may differ.
fn uniform(
    demands: &[(usize, Demand)],
    s: &Settings,
    ranks: u64,
    stages: &[usize],
) -> Result<Layout, Problem> {
    let need = demands[0].1.need;
    let block = s.block;
    let mut per_stage = vec![0u64; stages.last().map_or(1, |last| last + 1)];
    for (layer, d) in demands {
        let page =
            if matches!(need, Need::States(_)) { d.bytes } else { Bytes::product(&[d.bytes, block])?.0 };
        let stage = stages.get(*layer).copied().unwrap_or(0);
        per_stage[stage] = Bytes(per_stage[stage]).add(Bytes(page))?.0;
    }
    Ok(Layout {
        groups: vec![Group { need, block }],
        block_bytes: per_stage.iter().copied().max().unwrap_or(0).max(1),
        by_stage: per_stage,
        block_tokens: block,
        ranks,
        padding_layers: 0,
        padded_state: None,
        window_ignored: false,
    })
}

/// Several groups of equally many layers with one page size (`_get_kv_cache_groups_uniform_page_size`).
fn grouped(
    demands: &[(usize, Demand)],
    s: &Settings,
    ranks: u64,
    stages: &[usize],
) -> Result<Layout, Problem> {
    // Kinds in order of first appearance, each with its layers.
    let mut kinds: Vec<(Demand, Vec<usize>)> = Vec::new();
    for (layer, demand) in demands {
        match kinds.iter_mut().find(|(d, _)| d == demand) {
            Some((_, layers)) => layers.push(*layer),
            None => kinds.push((*demand, vec![*layer])),
        }
    }
    let pages = Pages::unify(&kinds, s)?;
    let fewest = kinds.iter().map(|(_, l)| l.len()).min().unwrap_or(1);
    let most = kinds.iter().map(|(_, l)| l.len()).max().unwrap_or(1);
    // Rather pad the smaller kind than split the larger where they are close.
    let size = if 2 * most < 3 * fewest { most } else { fewest };
    let mut groups = Vec::new();
    let mut padding_layers = 0;
    let mut per_stage = vec![0u64; stages.last().map_or(1, |last| last + 1)];
    for (demand, layers) in &kinds {
        let count = layers.len().div_ceil(size);
        padding_layers += (count * size - layers.len()) as u64;
        for i in 0..count {
            groups.push(Group { need: demand.need, block: pages.block(demand) });
            // Each stage holds the layers of the group that fall into it.
            let mut here = vec![0u64; per_stage.len()];
            for layer in layers.iter().skip(i).step_by(count) {
                here[stages.get(*layer).copied().unwrap_or(0)] += 1;
            }
            for (most, own) in per_stage.iter_mut().zip(here) {
                *most = own.max(*most);
            }
        }
    }
    let by_stage: Vec<u64> = per_stage
        .iter()
        .map(|layers| Ok(Bytes::product(&[pages.page, *layers])?.0))
        .collect::<Result<_, Problem>>()?;
    Ok(Layout {
        groups,
        block_bytes: by_stage.iter().copied().max().unwrap_or(0).max(1),
        by_stage,
        block_tokens: pages.block_tokens,
        ranks,
        padding_layers,
        padded_state: pages.padded_state,
        window_ignored: false,
    })
}

/// The one page size of all groups.
struct Pages {
    page: u64,
    block_tokens: u64,
    base: u64,
    padded_state: Option<(u64, u64)>,
}

impl Pages {
    /// With recurrent states: attention blocks grow in steps of the kernel's (16 tokens, 64 for latents) until a page holds a state. Otherwise:
    /// the largest page of a block; kinds with smaller pages take more tokens per block.
    fn unify(kinds: &[(Demand, Vec<usize>)], s: &Settings) -> Result<Pages, Problem> {
        let tokens = |d: &&Demand| !matches!(d.need, Need::States(_));
        let demands = || kinds.iter().map(|(d, _)| d);
        let state = demands().filter(|d| !tokens(d)).map(|d| d.bytes).max();
        let widest = demands().filter(tokens).map(|d| d.bytes).max().unwrap_or(1).max(1);
        let Some(state) = state else {
            let page = Bytes::product(&[widest, s.block])?.0;
            return Ok(Pages { page, block_tokens: s.block, base: s.block, padded_state: None });
        };
        let step = Bytes::product(&[s.kernel_block, widest])?.0;
        let aligned = Bytes::product(&[s.kernel_block, state.div_ceil(step)])?.0;
        let block = aligned.max(s.block);
        let page = Bytes::product(&[widest, block])?.0;
        Ok(Pages { page, block_tokens: block, base: block, padded_state: Some((page, state)) })
    }

    /// Tokens of a block of a kind.
    fn block(&self, demand: &Demand) -> u64 {
        if matches!(demand.need, Need::States(_)) || demand.bytes == 0 {
            return self.base;
        }
        let own = demand.bytes.saturating_mul(self.base).max(1);
        self.base * (self.page / own).max(1)
    }
}
