//! Which tensor of a GGUF file gets which type: the mixes of llama.cpp's quantize tool
//! (`llama_tensor_get_type_impl` in src/llama-quant.cpp), as rules.

use super::super::split::{Shape, product};
use super::super::stored::Stored;
use super::files::file_type;
use crate::model::ggml as t;
use crate::model::ggml::Type;
use crate::model::{AttentionKind, Mlp, MlpKind, Model, TensorClass, TensorGroup};
use crate::units::Problem;

/// What the rules of a mix look at.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    file: &'static str,
    base: Type,
    layers: u64,
    experts: u64,
    /// Query heads per KV head.
    gqa: u64,
    falcon: bool,
    /// 80 layers with grouped queries: V gets more bits.
    seventy_b: bool,
    tied: bool,
    /// Layers that hold a V projection (or a fused one), in order.
    v_layers: Vec<u64>,
}

/// Role of a tensor in the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Embedding,
    Output,
    Q,
    K,
    V,
    Qkv,
    AttentionOut,
    GateUp,
    Down,
    Other,
    /// Never quantised: stays as converted.
    Kept,
}

impl Recipe {
    /// The rules of file type `name` for `model`.
    ///
    /// Errors: names the accepted types.
    pub(crate) fn new(name: &str, model: &Model) -> Result<Recipe, Problem> {
        let (file, base) = file_type(name)?;
        let heads = model.layers.iter().find_map(|l| match l.attention.kind {
            AttentionKind::Full { heads, kv_heads, .. }
            | AttentionKind::Sliding { heads, kv_heads, .. }
            | AttentionKind::Chunked { heads, kv_heads, .. } => Some((heads, kv_heads)),
            // One latent head serves all: llama.cpp counts it as one KV head.
            AttentionKind::Mla { heads, .. } => Some((heads, 1)),
            _ => None,
        });
        let gqa = heads.map_or(1, |(h, kv)| h / kv.max(1));
        let experts = |mlp: &Mlp| match mlp.kind {
            MlpKind::Moe { experts, .. } => experts,
            _ => 0,
        };
        let layers = model.layers.len() as u64;
        let mut v_layers: Vec<u64> = model
            .tensors
            .iter()
            .filter(|g| matches!(role(g), Role::V | Role::Qkv))
            .flat_map(|g| g.layers.iter().flat_map(|(a, b)| u64::from(*a)..=u64::from(*b)))
            .collect();
        v_layers.sort_unstable();
        v_layers.dedup();
        Ok(Recipe {
            file,
            base,
            layers,
            experts: model.layers.iter().map(|l| experts(&l.mlp)).max().unwrap_or(0),
            gqa,
            falcon: model.model_type == "falcon",
            seventy_b: layers == 80 && gqa > 1 && matches!(model.model_type.as_str(), "llama" | "qwen2"),
            tied: model.tied_embeddings,
            v_layers,
        })
    }

    /// Bytes of one tensor in layer `layer`. The range spans files made with and without an importance matrix,
    /// and the two rules that llama.cpp had for fused q, k, v.
    pub(crate) fn stored(
        &self,
        group: &TensorGroup,
        shape: Shape,
        layer: Option<u64>,
    ) -> Result<Stored, Problem> {
        let role = role(group);
        let one = |role, imatrix| -> Result<(u64, &'static str), Problem> {
            let kind = self.kind(role, group, shape, layer.unwrap_or(0), imatrix).for_row(shape.cols);
            let blocks = product(&[shape.batch, shape.rows, shape.cols / kind.weights])?;
            Ok((product(&[blocks, kind.bytes])?, kind.name))
        };
        if group.class == TensorClass::AttentionLatent && group.name.ends_with("kv_b_proj.weight") {
            return self.split_kv_b(shape);
        }
        let (bytes, format) = one(role, self.needs_imatrix())?;
        // Newer tools treat a fused projection like V.
        let (other, _) = one(if role == Role::Qkv { Role::V } else { role }, true)?;
        Ok(Stored { bytes, low: bytes.min(other), high: bytes.max(other), main: bytes, side: 0, format })
    }

    /// Types that the quantize tool refuses to make without an importance matrix.
    pub(super) fn needs_imatrix(&self) -> bool {
        self.file.starts_with("IQ1")
            || self.file.starts_with("IQ2")
            || self.file == "IQ3_XXS"
            || self.file == "Q2_K_S"
    }

    /// Converters store `kv_b_proj` as two stacks of per-head matrices. The K one is transposed, with rows of
    /// `qk_nope_head_dim` (128 in public models), too short for blocks of 256; halves are taken as equal.
    fn split_kv_b(&self, shape: Shape) -> Result<Stored, Problem> {
        let half = shape.rows / 2;
        let mut bytes = 0u64;
        for (rows, cols) in [(product(&[half / 128, shape.cols])?, 128), (shape.rows - half, shape.cols)] {
            let kind = self.base.for_row(cols);
            bytes = bytes.saturating_add(product(&[rows, cols / kind.weights, kind.bytes])?);
        }
        Ok(Stored::exact(bytes, self.base.name))
    }

    pub(super) fn kind(
        &self,
        role: Role,
        group: &TensorGroup,
        shape: Shape,
        layer: u64,
        imatrix: bool,
    ) -> Type {
        // Vectors, and the small tensors kept beside them, are converted to F32.
        if role == Role::Kept || shape.cols == 1 {
            return t::F32;
        }
        if matches!(self.base, t::F32 | t::F16 | t::BF16) {
            return if group.class == TensorClass::Encoder { t::F16 } else { self.base };
        }
        if group.class == TensorClass::Encoder {
            return t::F16;
        }
        let output = role == Role::Output || (role == Role::Embedding && self.tied);
        if output {
            return self.output(shape);
        }
        if self.file == "MXFP4_MOE" {
            return if group.expert { t::MXFP4 } else { t::Q8_0 };
        }
        match role {
            Role::Embedding => self.embedding(),
            _ if self.two_bit() => self.two_bit_kind(role, layer),
            Role::V => self.value(layer),
            Role::Qkv => self.fused(),
            Role::K if self.experts == 8 => t::Q8_0,
            Role::K | Role::Q => match self.file {
                "IQ3_XS" => t::IQ3_XXS,
                "IQ3_XXS" => t::IQ2_S,
                _ => self.base,
            },
            Role::Down => self.down(layer, imatrix),
            Role::AttentionOut => self.attention_out(),
            Role::GateUp
                if self.file == "IQ3_XS" && layer >= self.layers / 8 && layer < 7 * self.layers / 8 =>
            {
                t::IQ3_XXS
            }
            _ => self.base,
        }
    }

    fn output(&self, shape: Shape) -> Type {
        if self.falcon || !shape.cols.is_multiple_of(self.base.weights) || self.file == "MXFP4_MOE" {
            return t::Q8_0;
        }
        match self.file {
            "IQ2_XXS" | "IQ2_XS" | "IQ3_XXS" | "IQ1_S" | "IQ2_S" | "IQ2_M" | "IQ1_M" => t::Q5_K,
            "Q8_0" => t::Q8_0,
            _ => t::Q6_K,
        }
    }

    fn embedding(&self) -> Type {
        match self.file {
            "IQ2_XXS" | "IQ2_XS" | "IQ1_S" | "IQ1_M" => t::Q2_K,
            "IQ2_S" | "IQ2_M" | "IQ3_XXS" => t::IQ3_S,
            "TQ1_0" | "TQ2_0" => t::Q4_K,
            _ => self.base,
        }
    }

    fn two_bit(&self) -> bool {
        self.file.starts_with("IQ1") || self.file.starts_with("IQ2")
    }

    fn two_bit_kind(&self, role: Role, layer: u64) -> Type {
        let richer = matches!(self.file, "IQ2_S" | "IQ2_M");
        let more = if richer { t::IQ3_S } else { t::Q2_K };
        match role {
            Role::V if self.gqa >= 4 || self.experts >= 4 => t::Q4_K,
            Role::V => more,
            Role::K if self.experts == 8 => t::Q4_K,
            Role::Down if layer < self.layers / 8 => more,
            Role::AttentionOut if self.experts == 8 => t::Q5_K,
            Role::AttentionOut if self.file.starts_with("IQ1") => t::IQ2_XXS,
            Role::AttentionOut if richer => t::IQ3_S,
            _ => self.base,
        }
    }

    /// Fused q, k, v, as published files have it.
    fn fused(&self) -> Type {
        match self.file {
            "Q3_K_M" | "Q3_K_L" | "IQ3_M" => t::Q4_K,
            "Q4_K_M" => t::Q5_K,
            "Q5_K_M" => t::Q6_K,
            _ => self.base,
        }
    }

    fn value(&self, layer: u64) -> Type {
        let index = self.v_layers.iter().position(|l| *l == layer).unwrap_or(0) as u64;
        let grouped = self.gqa >= 4;
        let kind = match self.file {
            "Q2_K" => {
                if grouped {
                    t::Q4_K
                } else {
                    t::Q3_K
                }
            }
            "Q2_K_S" | "IQ3_XXS" | "IQ3_XS" | "IQ3_S" if grouped => t::Q4_K,
            "IQ3_M" => t::Q4_K,
            "Q3_K_M" => {
                if index < 2 {
                    t::Q5_K
                } else {
                    t::Q4_K
                }
            }
            "Q3_K_L" => t::Q5_K,
            "IQ4_NL" | "IQ4_XS" if grouped => t::Q5_K,
            "Q4_K_M" | "Q5_K_M" if more_bits(index, self.v_layers.len() as u64) => t::Q6_K,
            "Q4_K_S" if index < 4 => t::Q5_K,
            _ => self.base,
        };
        if self.experts == 8 {
            t::Q8_0
        } else if self.seventy_b && matches!(kind, t::Q3_K | t::Q4_K) {
            t::Q5_K
        } else {
            kind
        }
    }

    fn down(&self, layer: u64, imatrix: bool) -> Type {
        let (first_eighth, more) = (layer < self.layers / 8, more_bits(layer, self.layers));
        match self.file {
            "Q2_K" => t::Q3_K,
            "Q2_K_S" if first_eighth => t::Q4_K,
            "IQ3_XXS" if !imatrix => {
                if first_eighth {
                    t::Q4_K
                } else {
                    t::Q3_K
                }
            }
            "Q3_K_M" if layer < self.layers / 16 => t::Q5_K,
            "Q3_K_M" if !self.falcon || more => t::Q4_K,
            "IQ3_M" if first_eighth || (self.experts == 8 && more) => t::Q4_K,
            "Q3_K_L" => {
                if self.falcon {
                    t::Q4_K
                } else {
                    t::Q5_K
                }
            }
            "Q4_K_M" if self.falcon => {
                if layer < self.layers / 16 {
                    t::Q6_K
                } else if more {
                    t::Q5_K
                } else {
                    t::Q4_K
                }
            }
            "Q4_K_M" | "Q5_K_M" if more => t::Q6_K,
            "IQ4_NL" | "IQ4_XS" if first_eighth && !imatrix => t::Q5_K,
            "Q4_K_S" if first_eighth && !self.falcon => t::Q5_K,
            "Q4_0" if imatrix && first_eighth => t::Q4_1,
            "Q5_0" if imatrix && first_eighth => t::Q5_1,
            _ => self.base,
        }
    }

    fn attention_out(&self) -> Type {
        if self.falcon {
            return if self.file == "Q3_K_L" { t::Q4_K } else { self.base };
        }
        match self.file {
            "Q2_K" | "IQ3_XS" | "IQ3_XXS" | "Q3_K_S" | "Q3_K_M" | "IQ4_NL" | "Q4_K_S" | "Q4_K_M"
            | "IQ3_S" | "IQ3_M" | "IQ4_XS"
                if self.experts == 8 =>
            {
                t::Q5_K
            }
            _ if self.experts == 8 => self.base,
            "Q2_K" => t::Q3_K,
            "IQ3_XXS" => t::IQ3_S,
            "Q3_K_M" | "IQ3_M" => t::Q4_K,
            "Q3_K_L" => t::Q5_K,
            _ => self.base,
        }
    }
}

/// Layers whose V and down projections get more bits: the first and last eighth, and every third between.
fn more_bits(layer: u64, layers: u64) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

pub(super) fn role(group: &TensorGroup) -> Role {
    use TensorClass as C;
    match group.class {
        C::Embedding => Role::Embedding,
        C::LmHead => Role::Output,
        C::AttentionQ => Role::Q,
        C::AttentionK => Role::K,
        C::AttentionV => Role::V,
        C::AttentionQkv => Role::Qkv,
        C::AttentionOut => Role::AttentionOut,
        C::AttentionLatent | C::RecurrentProjection | C::Encoder => Role::Other,
        C::MlpDown | C::ExpertDown => Role::Down,
        C::SharedExpert if group.name.contains("down") || group.name.contains("output") => Role::Down,
        C::MlpGate | C::MlpUp | C::ExpertGateUp | C::SharedExpert => Role::GateUp,
        C::PositionEmbedding | C::Router | C::Norm | C::Bias | C::RecurrentSmall | C::Other => Role::Kept,
    }
}
