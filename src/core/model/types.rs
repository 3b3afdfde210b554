//! The model as the accounting sees it: layers by kind, tensors by shape.

use super::{DType, Quantization};
use crate::units::Message;

/// A model read from its `config.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Preset id, or the name given with a dropped config; for people only.
    pub name: String,
    /// HF class, e.g. `LlamaForCausalLM`.
    pub class: String,
    /// HF `model_type` of the language model part.
    pub model_type: String,
    /// d: width of the residual stream.
    pub hidden_size: u64,
    /// V: vocabulary rows of the embedding.
    pub vocab_size: u64,
    /// `max_position_embeddings`, where the config states one (0 where it does not).
    pub max_position_embeddings: u64,
    /// Layers of the decoder (of the language model), in order.
    pub layers: Vec<Layer>,
    /// Layers of the encoder of an encoder-decoder model; empty otherwise.
    pub encoder_layers: Vec<Layer>,
    /// Every parameter tensor, grouped by name pattern, in checkpoint order. Tied tensors appear once.
    pub tensors: Vec<TensorGroup>,
    /// Whether `lm_head` shares the embedding's storage.
    pub tied_embeddings: bool,
    /// Exact parameter count: sum of elements over `tensors`.
    pub parameters: u64,
    /// Parameters touched per token (mixture of experts counts its top-k only).
    pub active_parameters: u64,
    /// dtype the checkpoint declares (`torch_dtype`/`dtype`), if any.
    pub dtype: Option<DType>,
    /// Quantization the checkpoint declares (`quantization_config`), if any.
    pub quantization: Option<Quantization>,
    /// Vision tower geometry, where the model has one.
    pub vision: Option<VisionEncoder>,
    /// The logits are soft-capped before sampling (Gemma 2): costs a second copy.
    pub final_logit_softcap: bool,
    /// Attention scores are soft-capped (Gemma 2): eager only.
    pub attention_softcap: bool,
    /// Attention has a learned sink column (gpt-oss).
    pub attention_sinks: bool,
    /// MTP / next-token-prediction layers declared but not instantiated by the HF class.
    pub mtp_layers: u64,
    /// Elements of the cos/sin tables that serving engines keep for every position of the model.
    pub rotary_table_elements: u64,
    /// The longest length that the config allows: its positions, stretched as its `rope_scaling` says (0 where it
    /// states none).
    pub longest_positions: u64,
    /// Tables of frequency factors that a GGUF file of the model holds: one for Llama 3, a short and a long one for
    /// longrope.
    pub rotary_factor_tables: u64,
    /// transformers repeats K and V to all query heads before caching them (Falcon's new decoder).
    pub hf_caches_all_heads: bool,
    /// Elements of a head of q and k that rotary embedding turns; 0 without one.
    pub rotary_dim: u64,
    /// Activation of the feed-forward.
    pub activation: Activation,
    /// Where training drops activations at random.
    pub dropout: Dropout,
    /// What a person should know about how the config was read: sizes taken from class defaults, parts that
    /// are declared but not counted.
    pub notes: Vec<Message>,
}

/// An activation by what it keeps for backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// One kernel that keeps its input (SiLU, GELU, its tanh form).
    #[default]
    Fused,
    /// `gelu_new`: written out in eight operators.
    GeluNew,
    /// ReLU keeps its output.
    Relu,
    /// The square of a ReLU.
    ReluSquared,
}

/// Where a model drops activations at random while training: probabilities that are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropout {
    /// Attention weights.
    pub attention: bool,
    /// Outputs of attention and feed-forward.
    pub residual: bool,
    /// The embedding.
    pub embedding: bool,
}

/// One decoder or encoder layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    /// What mixes tokens.
    pub attention: Attention,
    /// Whether a cross-attention to the encoder follows.
    pub cross_attention: bool,
    /// What follows it.
    pub mlp: Mlp,
}

/// The token mixer of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Which mechanism, with its geometry.
    pub kind: AttentionKind,
    /// RMSNorm/LayerNorm on q and k per head (Qwen3, Gemma 3) or over the full width (OLMo 2).
    pub qk_norm: bool,
    /// Rotary embedding applies in this layer.
    pub rope: bool,
}

/// How a layer mixes tokens and what it must remember.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttentionKind {
    /// Every token is kept.
    Full {
        /// H: query heads.
        heads: u64,
        /// H_kv: key/value heads.
        kv_heads: u64,
        /// D: head dim of q and k.
        head_dim: u64,
        /// Head dim of v (equals `head_dim` in most models).
        v_head_dim: u64,
    },
    /// Only the last `window` tokens are kept.
    Sliding {
        /// H: query heads.
        heads: u64,
        /// H_kv: key/value heads.
        kv_heads: u64,
        /// D: head dim of q and k.
        head_dim: u64,
        /// Head dim of v.
        v_head_dim: u64,
        /// Tokens seen, this one included.
        window: u64,
    },
    /// Attends inside chunks of `chunk` tokens (Llama 4).
    Chunked {
        /// H: query heads.
        heads: u64,
        /// H_kv: key/value heads.
        kv_heads: u64,
        /// D: head dim.
        head_dim: u64,
        /// Chunk length in tokens.
        chunk: u64,
    },
    /// Multi-head latent attention (DeepSeek V2/V3): caches one latent row per token.
    Mla {
        /// H: query heads.
        heads: u64,
        /// Rank of the query compression, 0 where q is projected directly.
        q_lora_rank: u64,
        /// Width of the cached latent.
        kv_lora_rank: u64,
        /// Head dim without position.
        qk_nope_head_dim: u64,
        /// Head dim with rotary position, shared by all heads.
        qk_rope_head_dim: u64,
        /// Head dim of v after expansion.
        v_head_dim: u64,
    },
    /// A constant state per sequence (Mamba, Gated DeltaNet, lightning attention).
    Recurrent(RecurrentState),
    /// No token mixer in this layer (Nemotron-H MLP and MoE layers).
    None,
}

/// Constant state of one layer and one sequence, before tensor parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentState {
    /// `mamba1`, `mamba2`, `gated_delta_net`, `lightning`.
    pub mechanism: &'static str,
    /// Channels of the convolution state.
    pub conv_dim: u64,
    /// Convolution kernel width (`d_conv`); HF keeps this many columns, vLLM one less.
    pub conv_kernel: u64,
    /// Heads of the recurrent state (tensor parallel splits these).
    pub state_heads: u64,
    /// Elements of the recurrent state per head.
    pub state_per_head: u64,
    /// dtype in which transformers keeps the recurrent state, where it is not the model's.
    pub state_dtype: Option<DType>,
}

/// The feed-forward part of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mlp {
    /// Dense, mixture of experts, or absent.
    pub kind: MlpKind,
    /// Gated (SwiGLU/GeGLU: gate, up, down) or plain (fc1, fc2).
    pub gated: bool,
    /// gate and up are one fused matrix (Phi-3).
    pub fused_gate_up: bool,
}

/// Feed-forward variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlpKind {
    /// One feed-forward of width `intermediate`.
    Dense {
        /// d_ff.
        intermediate: u64,
    },
    /// Routed experts, with optional always-on shared ones.
    Moe {
        /// Experts in the layer.
        experts: u64,
        /// Experts per token.
        top_k: u64,
        /// d_ff of one expert.
        intermediate: u64,
        /// d_ff of the shared experts together, 0 where there are none.
        shared_intermediate: u64,
        /// Routing weights and combination run in fp32 (DeepSeek).
        fp32_router: bool,
    },
    /// No feed-forward in this layer.
    None,
}

/// Where a tensor belongs; quantisation schemes and the GGUF recipes decide by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TensorClass {
    /// Token embedding.
    Embedding,
    /// Learned position embedding.
    PositionEmbedding,
    /// Output projection to the vocabulary, where not tied.
    LmHead,
    /// Query projection (fused qkv counts here).
    AttentionQ,
    /// Key projection.
    AttentionK,
    /// Value projection.
    AttentionV,
    /// Fused q, k, v projection.
    AttentionQkv,
    /// Output projection of attention.
    AttentionOut,
    /// MLA down and up projections of q and kv.
    AttentionLatent,
    /// Feed-forward gate (and fused gate+up).
    MlpGate,
    /// Feed-forward up (fc1).
    MlpUp,
    /// Feed-forward down (fc2).
    MlpDown,
    /// Routed experts' matrices, gate or gate+up.
    ExpertGateUp,
    /// Routed experts' down matrices.
    ExpertDown,
    /// Shared expert's matrices.
    SharedExpert,
    /// Router / gate of a mixture of experts.
    Router,
    /// Any normalisation weight or bias vector.
    Norm,
    /// Bias of a linear layer.
    Bias,
    /// Projections of a recurrent layer (in_proj, out_proj, …).
    RecurrentProjection,
    /// Small tensors of a recurrent layer (A_log, D, dt_bias, conv1d).
    RecurrentSmall,
    /// Vision or audio encoder, projector.
    Encoder,
    /// Anything else (relative position buckets, sinks, scalars).
    Other,
}

/// How tensor parallelism splits a tensor over t ranks in serving engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// Every rank holds all of it.
    Replicated,
    /// Split along the output dimension (dim 0).
    Column,
    /// Split along the input dimension (last dim).
    Row,
    /// Split by KV head; replicated when t exceeds the KV heads. `kv_heads` heads along dim 0.
    KvHeads {
        /// KV heads along dim 0.
        kv_heads: u64,
    },
    /// Fused qkv: q rows split by t, k and v rows by KV head.
    Qkv {
        /// Query heads.
        heads: u64,
        /// KV heads.
        kv_heads: u64,
        /// Rows per head.
        head_dim: u64,
    },
    /// Split along the vocabulary, padded to a multiple of 64 rows by vLLM and SGLang.
    Vocab,
}

/// Tensors of one name pattern and one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorGroup {
    /// HF name with `*` for layer and expert indices, e.g. `model.layers.*.self_attn.q_proj.weight`.
    pub name: String,
    /// Shape of one tensor.
    pub shape: Vec<u64>,
    /// Tensors of this name in all (layers times experts).
    pub count: u64,
    /// Index of the layers that hold it, as inclusive runs; empty for tensors outside the stack.
    pub layers: Vec<(u32, u32)>,
    /// Role.
    pub class: TensorClass,
    /// Stays in this dtype whatever the model's (fp32 router bias, …).
    pub dtype: Option<DType>,
    /// Tensor-parallel split.
    pub sharding: Sharding,
    /// One of the experts' tensors: split by expert parallelism. Routed experts are stacked, as transformers
    /// 5 holds them: the first dimension counts the experts, a matrix (or bias vector) per expert follows.
    pub expert: bool,
    /// The matrix is stored [in, out] (GPT-2's Conv1D, the experts of gpt-oss and Llama 4), not [out, in].
    pub transposed: bool,
}

impl TensorGroup {
    /// Elements of one tensor.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// One tensor as a stack of matrices: how many, output rows, input columns. A vector is one column; a
    /// convolution kernel counts its window as input.
    pub fn matrix(&self) -> (u64, u64, u64) {
        let (stack, rest) = match self.shape.split_first() {
            Some((first, rest)) if self.expert => (*first, rest),
            _ => (1, self.shape.as_slice()),
        };
        let (first, others) = match rest.split_first() {
            Some((first, others)) => (*first, others.iter().product()),
            None => (1, 1),
        };
        if self.transposed { (stack, others, first) } else { (stack, first, others) }
    }
}

/// Vision tower, as far as memory needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisionEncoder {
    /// Width of the tower.
    pub hidden_size: u64,
    /// Width of its feed-forward.
    pub intermediate_size: u64,
    /// Its layers.
    pub layers: u64,
    /// Patches of one full-size image.
    pub patches: u64,
    /// Tokens one image becomes in the language model, where fixed.
    pub tokens_per_image: u64,
}
