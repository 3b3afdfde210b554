//! Vision towers and projectors of multimodal wrappers. Serving engines split their linear layers like those
//! of the language model (vLLM's default `mm_encoder_tp_mode`, "weights"); embeddings and norms are replicated.

use crate::model::fields::{Fields, MAX_SIZE};
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Sharding, TensorClass, TensorGroup, VisionEncoder};
use crate::units::Problem;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The fields of a part of a wrapper config; a missing part has its class's defaults.
pub(crate) fn part<'a>(f: Fields<'a>, name: &'static str) -> Result<Fields<'a>, Problem> {
    let path = match name {
        "text_config" => "text_config.",
        _ => "vision_config.",
    };
    match f.value(name) {
        None => Ok(Fields::new(&EMPTY, path)),
        Some((_, Value::Object(map))) => Ok(Fields::new(map, path)),
        Some((_, other)) => Err(f.problem(name, other, "{ … }")),
    }
}

/// Adds tensors of a tower.
pub(crate) struct Tower<'t> {
    pub t: &'t mut Tensors,
}

impl Tower<'_> {
    pub(crate) fn add(&mut self, on: &Scope, name: &str, shape: &[u64]) {
        self.t.add(on, name, shape, TensorClass::Encoder, Sharding::Replicated);
    }

    /// A projection into the heads or the inner width, split along its output.
    pub(crate) fn column(&mut self, on: &Scope, name: &str, shape: [u64; 2], bias: bool) {
        self.linear(on, name, shape, bias, Sharding::Column);
    }

    /// A projection back to the stream, split along its input.
    pub(crate) fn row(&mut self, on: &Scope, name: &str, shape: [u64; 2], bias: bool) {
        self.linear(on, name, shape, bias, Sharding::Row);
    }

    fn linear(&mut self, on: &Scope, name: &str, [out, input]: [u64; 2], bias: bool, sharding: Sharding) {
        let class = TensorClass::Encoder;
        self.t.add(on, &format!("{name}.weight"), &[out, input], class, sharding);
        if bias {
            let split = if sharding == Sharding::Row { Sharding::Replicated } else { sharding };
            self.t.add(on, &format!("{name}.bias"), &[out], class, split);
        }
    }

    pub(crate) fn norm(&mut self, on: &Scope, name: &str, width: u64) {
        self.add(on, &format!("{name}.weight"), &[width]);
        self.add(on, &format!("{name}.bias"), &[width]);
    }
}

/// Sizes that the towers share.
struct Vit {
    hidden: u64,
    inner: u64,
    layers: u64,
    channels: u64,
    patch: u64,
    patches: u64,
}

impl Vit {
    fn read(f: Fields<'_>, [hidden, inner, layers, image, patch]: [u64; 5]) -> Result<Vit, Problem> {
        let image = f.whole("image_size", 1, 1 << 16)?.unwrap_or(image);
        let patch = f.whole("patch_size", 1, image)?.unwrap_or(patch.min(image));
        Ok(Vit {
            hidden: f.size("hidden_size", hidden)?,
            inner: f.size("intermediate_size", inner)?,
            layers: f.layers("num_hidden_layers", layers)?,
            channels: f.heads("num_channels", 3)?,
            patch,
            patches: (image / patch) * (image / patch),
        })
    }

    fn encoder(&self, tokens_per_image: u64) -> VisionEncoder {
        VisionEncoder {
            hidden_size: self.hidden,
            intermediate_size: self.inner,
            layers: self.layers,
            patches: self.patches,
            tokens_per_image,
        }
    }

    /// Layers as CLIP and SigLIP name them.
    fn clip_layers(&self, tower: &mut Tower<'_>, prefix: &str) {
        let on = Scope::all(&format!("{prefix}encoder.layers.*."), self.layers);
        tower.norm(&on, "layer_norm1", self.hidden);
        for name in ["k_proj", "v_proj", "q_proj"] {
            tower.column(&on.within("self_attn."), name, [self.hidden, self.hidden], true);
        }
        tower.row(&on.within("self_attn."), "out_proj", [self.hidden, self.hidden], true);
        tower.norm(&on, "layer_norm2", self.hidden);
        tower.column(&on.within("mlp."), "fc1", [self.inner, self.hidden], true);
        tower.row(&on.within("mlp."), "fc2", [self.hidden, self.inner], true);
    }

    fn patch_shape(&self) -> [u64; 4] {
        [self.hidden, self.channels, self.patch, self.patch]
    }
}

/// A tower and what it costs to run.
pub(crate) type Built = (Vec<TensorGroup>, VisionEncoder);

/// SigLIP (`siglip_vision_model`).
pub(crate) fn siglip(
    f: Fields<'_>,
    prefix: &str,
    tokens: Option<u64>,
) -> Result<(Tensors, VisionEncoder), Problem> {
    let v = Vit::read(f, [768, 3072, 12, 224, 16])?;
    let mut t = Tensors::default();
    let mut tower = Tower { t: &mut t };
    let root = Scope::root(prefix);
    tower.add(&root, "embeddings.patch_embedding.weight", &v.patch_shape());
    tower.add(&root, "embeddings.patch_embedding.bias", &[v.hidden]);
    tower.add(&root, "embeddings.position_embedding.weight", &[v.patches, v.hidden]);
    v.clip_layers(&mut tower, prefix);
    tower.norm(&root, "post_layernorm", v.hidden);
    if f.flag("vision_use_head", true)? {
        let head = root.within("head.");
        tower.add(&head, "probe", &[1, 1, v.hidden]);
        tower.add(&head, "attention.in_proj_weight", &[3 * v.hidden, v.hidden]);
        tower.add(&head, "attention.in_proj_bias", &[3 * v.hidden]);
        tower.row(&head, "attention.out_proj", [v.hidden, v.hidden], true);
        tower.norm(&head, "layernorm", v.hidden);
        tower.column(&head, "mlp.fc1", [v.inner, v.hidden], true);
        tower.row(&head, "mlp.fc2", [v.hidden, v.inner], true);
    }
    Ok((t, v.encoder(tokens.unwrap_or(v.patches))))
}

/// CLIP (`clip_vision_model`).
pub(crate) fn clip(f: Fields<'_>, prefix: &str) -> Result<(Tensors, VisionEncoder), Problem> {
    // The wrapper's default tower, CLIP ViT-L/14 at 336 pixels; a written part defaults to CLIP's own sizes.
    let sizes = if f.is_empty() { [1024, 4096, 24, 336, 14] } else { [768, 3072, 12, 224, 32] };
    let v = Vit::read(f, sizes)?;
    let mut t = Tensors::default();
    let mut tower = Tower { t: &mut t };
    let root = Scope::root(prefix);
    tower.add(&root, "embeddings.class_embedding", &[v.hidden]);
    tower.add(&root, "embeddings.patch_embedding.weight", &v.patch_shape());
    tower.add(&root, "embeddings.position_embedding.weight", &[v.patches + 1, v.hidden]);
    tower.norm(&root, "pre_layrnorm", v.hidden);
    v.clip_layers(&mut tower, prefix);
    tower.norm(&root, "post_layernorm", v.hidden);
    Ok((t, v.encoder(v.patches)))
}

/// Pixtral: gated feed-forward, RMSNorms, no biases.
pub(crate) fn pixtral(f: Fields<'_>, prefix: &str) -> Result<(Tensors, VisionEncoder), Problem> {
    // The wrapper's default tower differs from the tower's own defaults.
    let v = Vit::read(f, if f.is_empty() { [1024, 4096, 24, 1540, 14] } else { [1024, 4096, 24, 1024, 16] })?;
    let mut t = Tensors::default();
    let mut tower = Tower { t: &mut t };
    let root = Scope::root(prefix);
    tower.add(&root, "patch_conv.weight", &v.patch_shape());
    tower.add(&root, "ln_pre.weight", &[v.hidden]);
    let on = Scope::all(&format!("{prefix}transformer.layers.*."), v.layers);
    tower.add(&on, "attention_norm.weight", &[v.hidden]);
    tower.column(&on.within("feed_forward."), "gate_proj", [v.inner, v.hidden], false);
    tower.column(&on.within("feed_forward."), "up_proj", [v.inner, v.hidden], false);
    tower.row(&on.within("feed_forward."), "down_proj", [v.hidden, v.inner], false);
    for name in ["k_proj", "v_proj", "q_proj"] {
        tower.column(&on.within("attention."), name, [v.hidden, v.hidden], false);
    }
    tower.row(&on.within("attention."), "o_proj", [v.hidden, v.hidden], false);
    tower.add(&on, "ffn_norm.weight", &[v.hidden]);
    Ok((t, v.encoder(v.patches)))
}

/// Llama 4's tower, pixel shuffle and projector.
pub(crate) fn llama4(f: Fields<'_>, text_hidden: u64) -> Result<Built, Problem> {
    let v = Vit::read(f, [768, 5632, 34, 448, 14])?;
    let mut t = Tensors::default();
    let mut tower = Tower { t: &mut t };
    let root = Scope::root("vision_model.");
    tower.add(&root, "class_embedding", &[v.hidden]);
    tower.add(&root, "positional_embedding_vlm", &[v.patches + 1, v.hidden]);
    tower.column(&root, "patch_embedding.linear", [v.hidden, v.channels * v.patch * v.patch], false);
    tower.norm(&root, "layernorm_pre", v.hidden);
    tower.norm(&root, "layernorm_post", v.hidden);
    let on = Scope::all("vision_model.model.layers.*.", v.layers);
    for name in ["q_proj", "k_proj", "v_proj"] {
        tower.column(&on.within("self_attn."), name, [v.hidden, v.hidden], true);
    }
    tower.row(&on.within("self_attn."), "o_proj", [v.hidden, v.hidden], true);
    tower.column(&on.within("mlp."), "fc1", [v.inner, v.hidden], true);
    tower.row(&on.within("mlp."), "fc2", [v.hidden, v.inner], true);
    tower.norm(&on, "input_layernorm", v.hidden);
    tower.norm(&on, "post_attention_layernorm", v.hidden);
    let (input, output) = (f.size("projector_input_dim", 4096)?, f.size("projector_output_dim", 4096)?);
    tower.column(&root, "vision_adapter.mlp.fc1", [input, v.inner], false);
    tower.row(&root, "vision_adapter.mlp.fc2", [output, output], false);
    let out = f.size("vision_output_dim", 7680)?;
    let bias = f.flag("multi_modal_projector_bias", false)?;
    tower.column(&Scope::root("multi_modal_projector."), "linear_1", [text_hidden, out], bias);
    // Pixel shuffle merges patches by the square of its ratio.
    let ratio = f.value("pixel_shuffle_ratio").and_then(|(_, v)| v.as_f64()).unwrap_or(0.5).clamp(0.0, 1.0);
    let tokens = (v.patches as f64 * ratio * ratio) as u64;
    Ok((t.groups, v.encoder(tokens)))
}

/// Qwen 2.5 VL's tower and merger.
pub(crate) fn qwen2_5(f: Fields<'_>) -> Result<Built, Problem> {
    let hidden = f.size("hidden_size", 3584)?;
    let inner = f.size("intermediate_size", 3420)?;
    let layers = f.layers("depth", 32)?;
    let patch = f.whole("patch_size", 1, 1 << 12)?.unwrap_or(14);
    let frames = f.heads("temporal_patch_size", 2)?;
    let channels = f.heads("in_channels|in_chans", 3)?;
    let merge = f.whole("spatial_merge_size", 1, 256)?.unwrap_or(2);
    let out = f.whole("out_hidden_size", 1, MAX_SIZE)?.unwrap_or(3584);
    let mut t = Tensors::default();
    let mut tower = Tower { t: &mut t };
    let root = Scope::root("model.visual.");
    tower.add(&root, "patch_embed.proj.weight", &[hidden, channels, frames, patch, patch]);
    let on = Scope::all("model.visual.blocks.*.", layers);
    for norm in ["norm1.weight", "norm2.weight"] {
        tower.add(&on, norm, &[hidden]);
    }
    tower.column(&on.within("attn."), "qkv", [3 * hidden, hidden], true);
    tower.row(&on.within("attn."), "proj", [hidden, hidden], true);
    tower.column(&on.within("mlp."), "gate_proj", [inner, hidden], true);
    tower.column(&on.within("mlp."), "up_proj", [inner, hidden], true);
    tower.row(&on.within("mlp."), "down_proj", [hidden, inner], true);
    let merged = hidden * merge * merge;
    let merger = root.within("merger.");
    tower.add(&merger, "ln_q.weight", &[hidden]);
    tower.column(&merger, "mlp.*", [merged, merged], true);
    tower.row(&merger, "mlp.*", [out, merged], true);
    // Patches depend on the image: none is fixed.
    let encoder = VisionEncoder {
        hidden_size: hidden,
        intermediate_size: inner,
        layers,
        patches: 0,
        tokens_per_image: 0,
    };
    Ok((t.groups, encoder))
}

/// The tower of Qwen 3 VL and 3.5, with a merger for each layer whose features go deep into the stack.
pub(crate) fn qwen3(f: Fields<'_>, deepstack: u64) -> Result<Built, Problem> {
    let hidden = f.size("hidden_size", 1152)?;
    let inner = f.size("intermediate_size", 4304)?;
    let layers = f.layers("depth", 27)?;
    let patch = f.whole("patch_size", 1, 1 << 12)?.unwrap_or(16);
    let frames = f.heads("temporal_patch_size", 2)?;
    let channels = f.heads("in_channels", 3)?;
    let merge = f.whole("spatial_merge_size", 1, 256)?.unwrap_or(2);
    let out = f.size("out_hidden_size", 3584)?;
    let rows = f.size("num_position_embeddings", 2304)?;
    let mut t = Tensors::default();
    let mut tower = Tower { t: &mut t };
    let root = Scope::root("model.visual.");
    tower.add(&root, "patch_embed.proj.weight", &[hidden, channels, frames, patch, patch]);
    tower.add(&root, "patch_embed.proj.bias", &[hidden]);
    tower.add(&root, "pos_embed.weight", &[rows, hidden]);
    let on = Scope::all("model.visual.blocks.*.", layers);
    tower.norm(&on, "norm1", hidden);
    tower.norm(&on, "norm2", hidden);
    tower.column(&on.within("attn."), "qkv", [3 * hidden, hidden], true);
    tower.row(&on.within("attn."), "proj", [hidden, hidden], true);
    tower.column(&on.within("mlp."), "linear_fc1", [inner, hidden], true);
    tower.row(&on.within("mlp."), "linear_fc2", [hidden, inner], true);
    let merged = hidden * merge * merge;
    let deep = Scope::all("model.visual.deepstack_merger_list.*.", deepstack);
    for (merger, norm) in [(root.within("merger."), hidden), (deep, merged)] {
        tower.norm(&merger, "norm", norm);
        tower.column(&merger, "linear_fc1", [merged, merged], true);
        tower.row(&merger, "linear_fc2", [out, merged], true);
    }
    let encoder = VisionEncoder {
        hidden_size: hidden,
        intermediate_size: inner,
        layers,
        patches: 0,
        tokens_per_image: 0,
    };
    Ok((t.groups, encoder))
}
