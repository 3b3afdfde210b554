//! Pre-norm decoders with separate projections and a gated feed-forward: Llama, Mistral, Qwen 2 and 3.

use super::parts::{
    Gqa, QkNorm, Root, blank, dense, embedding, gated, head, layer, layer_types, positions, window,
};
use crate::model::fields::Fields;
use crate::model::tensors::Tensors;
use crate::model::{Attention, Layer, Model};
use crate::units::Problem;

/// Class defaults of a family.
pub(crate) struct Defaults {
    pub model_type: &'static str,
    pub vocab: u64,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub heads: u64,
    pub kv_heads: Option<u64>,
    pub head_dim: Option<u64>,
    pub positions: u64,
    pub tied: bool,
}

pub(crate) const LLAMA: Defaults = Defaults {
    model_type: "llama",
    vocab: 32000,
    hidden: 4096,
    intermediate: 11008,
    layers: 32,
    heads: 32,
    kv_heads: None,
    head_dim: None,
    positions: 2048,
    tied: false,
};

pub(crate) const MISTRAL: Defaults =
    Defaults { model_type: "mistral", intermediate: 14336, kv_heads: Some(8), positions: 131_072, ..LLAMA };

pub(crate) const QWEN2: Defaults = Defaults {
    model_type: "qwen2",
    vocab: 151_936,
    intermediate: 22016,
    kv_heads: Some(32),
    positions: 32768,
    ..LLAMA
};

pub(crate) const QWEN3: Defaults = Defaults { model_type: "qwen3", head_dim: Some(128), ..QWEN2 };

/// What every dense family of this shape reads first.
pub(crate) struct Sizes {
    pub vocab: u64,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub tied: bool,
    pub gqa: Gqa,
    pub positions: u64,
    pub model_type: &'static str,
}

impl Sizes {
    pub(crate) fn read(f: Fields<'_>, d: &Defaults) -> Result<Sizes, Problem> {
        let hidden = f.size("hidden_size", d.hidden)?;
        Ok(Sizes {
            vocab: f.size("vocab_size", d.vocab)?,
            hidden,
            intermediate: f.size("intermediate_size", d.intermediate)?,
            layers: f.layers("num_hidden_layers", d.layers)?,
            tied: f.flag("tie_word_embeddings", d.tied)?,
            gqa: Gqa::read(f, hidden, d.heads, d.kv_heads, d.head_dim)?,
            positions: positions(f, "max_position_embeddings", d.positions)?,
            model_type: d.model_type,
        })
    }

    /// A model of these sizes, without layers and tensors.
    pub(crate) fn model(&self) -> Model {
        let mut model = blank(self.model_type, self.hidden, self.vocab);
        model.tied_embeddings = self.tied;
        model.max_position_embeddings = self.positions;
        model
    }

    /// The whole model: embedding, what `parts` adds, `norms` of the hidden size in each layer, final norm, head.
    pub(crate) fn assemble(
        &self,
        root: Root,
        norms: &[&str],
        layers: Vec<Layer>,
        parts: impl FnOnce(&mut Tensors),
    ) -> Model {
        let mut t = Tensors::default();
        embedding(&mut t, &root.outside(), "embed_tokens", self.vocab, self.hidden);
        parts(&mut t);
        for norm in norms {
            t.norm(&root.all("", self.layers), norm, self.hidden, false);
        }
        t.norm(&root.outside(), "norm", self.hidden, false);
        head(&mut t, root.head, self.vocab, self.hidden, self.tied, false);
        let mut model = self.model();
        model.layers = layers;
        model.tensors = t.groups;
        model
    }

    /// A dense model with a gated feed-forward in every layer.
    pub(crate) fn build(
        &self,
        root: Root,
        norms: &[&str],
        mlp_bias: bool,
        attention: impl Fn(u64) -> Attention,
    ) -> Model {
        let layers = (0..self.layers).map(|i| layer(attention(i), dense(self.intermediate))).collect();
        self.assemble(root, norms, layers, |t| {
            self.gqa.tensors(t, &root.all("self_attn.", self.layers), self.hidden);
            gated(t, &root.all("mlp.", self.layers), self.hidden, self.intermediate, mlp_bias);
        })
    }
}

/// The two norms of a pre-norm layer.
pub(crate) const PRE_NORMS: &[&str] = &["input_layernorm", "post_attention_layernorm"];

/// A wrapper passes whether its own config ties the embeddings.
pub(crate) fn llama_in(f: Fields<'_>, root: Root, tied: Option<bool>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &LLAMA)?;
    s.tied = tied.unwrap_or(s.tied);
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let mlp_bias = f.flag("mlp_bias", false)?;
    Ok(s.build(root, PRE_NORMS, mlp_bias, |_| s.gqa.full()))
}

pub(crate) fn llama(f: Fields<'_>) -> Result<Model, Problem> {
    llama_in(f, Root::PLAIN, None)
}

/// InternLM 3 is a Llama whose biases go by other names.
pub(crate) fn internlm3(f: Fields<'_>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &Defaults { model_type: "internlm3", ..LLAMA })?;
    s.gqa.qkv_bias = f.flag("qkv_bias", false)?;
    s.gqa.out_bias = f.flag("bias", false)?;
    let bias = s.gqa.out_bias;
    Ok(s.build(Root::PLAIN, PRE_NORMS, bias, |_| s.gqa.full()))
}

pub(crate) fn mistral_in(f: Fields<'_>, root: Root, tied: Option<bool>) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, &MISTRAL)?;
    s.tied = tied.unwrap_or(s.tied);
    let window = window(f, Some(4096))?;
    Ok(s.build(root, PRE_NORMS, false, |_| s.gqa.windowed(window)))
}

pub(crate) fn mistral(f: Fields<'_>) -> Result<Model, Problem> {
    mistral_in(f, Root::PLAIN, None)
}

/// Which layers of a Qwen 2 or 3 see a window: those from `max_window_layers` on, if it is switched on.
pub(crate) fn qwen_windows(f: Fields<'_>, layers: u64) -> Result<Vec<Option<u64>>, Problem> {
    let window = if f.flag("use_sliding_window", false)? { window(f, Some(4096))? } else { None };
    let first = f.whole("max_window_layers", 0, 1 << 40)?.unwrap_or(28);
    let kinds = layer_types(f, "layer_types", layers, |i| {
        if window.is_some() && i >= first { "sliding_attention" } else { "full_attention" }
    })?;
    Ok(kinds.iter().map(|kind| window.filter(|_| *kind == "sliding_attention")).collect())
}

pub(crate) fn qwen2_in(
    f: Fields<'_>,
    root: Root,
    defaults: &Defaults,
    tied: Option<bool>,
) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.tied = tied.unwrap_or(s.tied);
    s.gqa.qkv_bias = true;
    let windows = qwen_windows(f, s.layers)?;
    Ok(s.build(root, PRE_NORMS, false, |i| s.gqa.windowed(windows[i as usize])))
}

pub(crate) fn qwen2(f: Fields<'_>) -> Result<Model, Problem> {
    qwen2_in(f, Root::PLAIN, &QWEN2, None)
}

pub(crate) fn qwen3(f: Fields<'_>) -> Result<Model, Problem> {
    qwen3_in(f, Root::PLAIN, &QWEN3, None)
}

pub(crate) fn qwen3_in(
    f: Fields<'_>,
    root: Root,
    defaults: &Defaults,
    tied: Option<bool>,
) -> Result<Model, Problem> {
    let mut s = Sizes::read(f, defaults)?;
    s.tied = tied.unwrap_or(s.tied);
    s.gqa.qk_norm = QkNorm::PerHead;
    s.gqa.qkv_bias = f.flag("attention_bias", false)?;
    s.gqa.out_bias = s.gqa.qkv_bias;
    let windows = qwen_windows(f, s.layers)?;
    Ok(s.build(root, PRE_NORMS, false, |i| s.gqa.windowed(windows[i as usize])))
}
