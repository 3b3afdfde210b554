//! State-space mixers shared by hybrids: Mamba 1 (Jamba) and Mamba 2 (Granite 4, Nemotron-H).

use super::parts::positions;
use crate::model::fields::Fields;
use crate::model::tensors::{Scope, Tensors};
use crate::model::{Attention, AttentionKind, DType, Model, RecurrentState, Sharding, TensorClass};
use crate::units::Problem;

/// Geometry of a Mamba 2 mixer.
#[derive(Clone, Copy)]
pub(crate) struct Mamba2 {
    pub heads: u64,
    pub head_dim: u64,
    pub state: u64,
    pub groups: u64,
    pub kernel: u64,
    pub conv_bias: bool,
    pub bias: bool,
}

impl Mamba2 {
    fn inner(self) -> u64 {
        self.heads * self.head_dim
    }

    fn conv_dim(self) -> u64 {
        self.inner() + 2 * self.groups * self.state
    }

    pub(crate) fn attention(self) -> Attention {
        recurrent(RecurrentState {
            mechanism: "mamba2",
            conv_dim: self.conv_dim(),
            conv_kernel: self.kernel,
            state_heads: self.heads,
            state_per_head: self.head_dim * self.state,
            // transformers accumulates the state in fp32 whatever the model's dtype.
            state_dtype: Some(DType::Fp32),
        })
    }

    /// The mixer's tensors in `on`.
    pub(crate) fn tensors(self, t: &mut Tensors, on: &Scope, hidden: u64) {
        for name in ["dt_bias", "A_log", "D"] {
            t.add(on, name, &[self.heads], TensorClass::RecurrentSmall, Sharding::Column);
        }
        conv(t, on, self.conv_dim(), self.kernel, self.conv_bias);
        let projection = self.inner() + self.conv_dim() + self.heads;
        let class = TensorClass::RecurrentProjection;
        t.linear(on, "in_proj", [projection, hidden], self.bias, class, Sharding::Column);
        t.add(on, "norm.weight", &[self.inner()], TensorClass::Norm, Sharding::Column);
        t.linear(on, "out_proj", [hidden, self.inner()], self.bias, class, Sharding::Row);
    }
}

/// A mixer with a constant state.
pub(crate) fn recurrent(state: RecurrentState) -> Attention {
    Attention { kind: AttentionKind::Recurrent(state), qk_norm: false, rope: false }
}

/// A depthwise convolution over time.
pub(crate) fn conv(t: &mut Tensors, on: &Scope, channels: u64, kernel: u64, bias: bool) {
    let class = TensorClass::RecurrentSmall;
    t.add(on, "conv1d.weight", &[channels, 1, kernel], class, Sharding::Column);
    if bias {
        t.add(on, "conv1d.bias", &[channels], class, Sharding::Column);
    }
}

/// Geometry of a Mamba 1 mixer.
#[derive(Clone, Copy)]
pub(crate) struct Mamba1 {
    pub inner: u64,
    pub state: u64,
    pub rank: u64,
    pub kernel: u64,
    pub conv_bias: bool,
    pub bias: bool,
}

impl Mamba1 {
    pub(crate) fn attention(self) -> Attention {
        recurrent(RecurrentState {
            mechanism: "mamba1",
            conv_dim: self.inner,
            conv_kernel: self.kernel,
            // Mamba 1 has no heads: each channel keeps its own state.
            state_heads: self.inner,
            state_per_head: self.state,
            state_dtype: Some(DType::Fp32),
        })
    }

    /// The mixer's tensors in `on`; Jamba also normalises dt, B and C.
    pub(crate) fn tensors(self, t: &mut Tensors, on: &Scope, hidden: u64) {
        let (small, class) = (TensorClass::RecurrentSmall, TensorClass::RecurrentProjection);
        t.add(on, "A_log", &[self.inner, self.state], small, Sharding::Column);
        t.add(on, "D", &[self.inner], small, Sharding::Column);
        conv(t, on, self.inner, self.kernel, self.conv_bias);
        t.linear(on, "in_proj", [2 * self.inner, hidden], self.bias, class, Sharding::Column);
        t.linear(on, "x_proj", [self.rank + 2 * self.state, self.inner], false, class, Sharding::Row);
        t.linear(on, "dt_proj", [self.inner, self.rank], true, class, Sharding::Column);
        t.linear(on, "out_proj", [hidden, self.inner], self.bias, class, Sharding::Row);
        t.norm(on, "dt_layernorm", self.rank, false);
        t.norm(on, "b_layernorm", self.state, false);
        t.norm(on, "c_layernorm", self.state, false);
    }
}

/// `model` with its positions read.
pub(crate) fn with_positions(mut model: Model, f: Fields<'_>, default: u64) -> Result<Model, Problem> {
    model.max_position_embeddings = positions(f, "max_position_embeddings", default)?;
    Ok(model)
}
