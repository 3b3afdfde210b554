//! Collects tensor groups; sizes that leave 64 bits are remembered and reported once, at the end.

use super::{DType, Sharding, TensorClass, TensorGroup};

/// Which layers hold a tensor, and under which name prefix.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    prefix: String,
    runs: Vec<(u32, u32)>,
    count: u64,
}

impl Scope {
    /// Tensors outside the stack of layers.
    pub(crate) fn root(prefix: &str) -> Scope {
        Scope { prefix: prefix.to_owned(), runs: Vec::new(), count: 1 }
    }

    /// The layers for which `holds` answers true. `prefix` ends in a dot, as in `model.layers.*.`.
    pub(crate) fn layers(prefix: &str, layers: u64, holds: impl Fn(u64) -> bool) -> Scope {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut count = 0;
        for index in 0..layers {
            if !holds(index) {
                continue;
            }
            count += 1;
            let i = index as u32;
            match runs.last_mut() {
                Some(run) if run.1 + 1 == i => run.1 = i,
                _ => runs.push((i, i)),
            }
        }
        Scope { prefix: prefix.to_owned(), runs, count }
    }

    /// Every layer.
    pub(crate) fn all(prefix: &str, layers: u64) -> Scope {
        Scope::layers(prefix, layers, |_| true)
    }

    /// Whether no layer is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The same layers, deeper in the name.
    pub(crate) fn within(&self, suffix: &str) -> Scope {
        Scope { prefix: format!("{}{suffix}", self.prefix), runs: self.runs.clone(), count: self.count }
    }

    /// The same layers, holding `times` tensors each under one name pattern.
    pub(crate) fn times(&self, times: u64) -> Scope {
        Scope { count: self.count * times, ..self.clone() }
    }
}

/// The tensors found so far.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    pub(crate) groups: Vec<TensorGroup>,
}

impl Tensors {
    /// Adds a tensor; none where the scope holds no layer.
    pub(crate) fn add(
        &mut self,
        scope: &Scope,
        name: &str,
        shape: &[u64],
        class: TensorClass,
        sharding: Sharding,
    ) -> Option<&mut TensorGroup> {
        if scope.count == 0 {
            return None;
        }
        self.groups.push(TensorGroup {
            name: format!("{}{name}", scope.prefix),
            shape: shape.to_vec(),
            count: scope.count,
            layers: scope.runs.clone(),
            class,
            dtype: None,
            sharding,
            expert: false,
            transposed: false,
        });
        self.groups.last_mut()
    }

    /// Adds `name.weight` of shape [out, in], and `name.bias` where asked.
    pub(crate) fn linear(
        &mut self,
        scope: &Scope,
        name: &str,
        [out, input]: [u64; 2],
        bias: bool,
        class: TensorClass,
        sharding: Sharding,
    ) {
        self.add(scope, &format!("{name}.weight"), &[out, input], class, sharding);
        if bias {
            // A row-split matrix adds its bias once, after the sum: every rank holds it.
            let split = if sharding == Sharding::Row { Sharding::Replicated } else { sharding };
            self.add(scope, &format!("{name}.bias"), &[out], TensorClass::Bias, split);
        }
    }

    /// Adds a replicated norm: `name.weight`, and `name.bias` for a LayerNorm.
    pub(crate) fn norm(&mut self, scope: &Scope, name: &str, width: u64, bias: bool) {
        self.add(scope, &format!("{name}.weight"), &[width], TensorClass::Norm, Sharding::Replicated);
        if bias {
            self.add(scope, &format!("{name}.bias"), &[width], TensorClass::Norm, Sharding::Replicated);
        }
    }

    /// Adds experts stacked in one tensor, as transformers 5 holds them: [experts, out, in], or
    /// [experts, in, out] where `transposed`.
    pub(crate) fn experts(
        &mut self,
        scope: &Scope,
        name: &str,
        [experts, out, input]: [u64; 3],
        transposed: bool,
        down: bool,
    ) {
        let shape = if transposed { [experts, input, out] } else { [experts, out, input] };
        let (class, sharding) = if down {
            (TensorClass::ExpertDown, Sharding::Row)
        } else {
            (TensorClass::ExpertGateUp, Sharding::Column)
        };
        if let Some(group) = self.add(scope, name, &shape, class, sharding) {
            group.expert = true;
            group.transposed = transposed;
        }
    }

    /// Adds the biases of stacked experts: [experts, out].
    pub(crate) fn expert_bias(&mut self, scope: &Scope, name: &str, shape: [u64; 2], down: bool) {
        // As with any row-split matrix, every rank holds the whole bias of the down projection.
        let sharding = if down { Sharding::Replicated } else { Sharding::Column };
        if let Some(group) = self.add(scope, name, &shape, TensorClass::Bias, sharding) {
            group.expert = true;
        }
    }

    /// Keeps the tensor added last in fp32 whatever the model's dtype.
    pub(crate) fn last_in_fp32(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            group.dtype = Some(DType::Fp32);
        }
    }
}
