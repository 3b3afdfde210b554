//! Releases of Ollama: defaults, and the llama.cpp that it carries.

use crate::engines::pooled::release;
use crate::engines::{AttentionImpl, Inputs};
use crate::model::Model;

const GIB: u64 = 1 << 30;

/// A release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release(u32, u32, u32);

/// Builds of llama.cpp vendored about then, by the dates of the releases: what matters is which rules they have.
const BUILDS: &[(Release, &str)] = &[
    (Release(0, 24, 0), "b9500"),
    (Release(0, 15, 0), "b7900"),
    (Release(0, 13, 0), "b7000"),
    (Release(0, 12, 0), "b6500"),
    (Release(0, 11, 0), "b6100"),
    (Release(0, 9, 0), "b5600"),
    (Release(0, 6, 0), "b4900"),
    (Release(0, 5, 0), "b4400"),
    (Release(0, 3, 0), "b3500"),
    (Release(0, 1, 33), "b2780"),
    (Release(0, 0, 0), "b1900"),
];

impl Release {
    /// The release that a text names; none: the newest known here.
    pub(super) fn read(text: Option<&str>) -> Release {
        let found = text.and_then(release);
        found.map_or(Release(0, 30, 0), |(major, minor, patch)| Release(major, minor, patch))
    }

    /// The vendored build.
    pub(super) fn build(self) -> &'static str {
        BUILDS.iter().find(|(since, _)| self >= *since).map_or("b1900", |(_, build)| build)
    }

    /// `num_ctx` where none is given: by device from 0.15.5, 4096 from 0.7 (ollama/ollama#12315), 2048 before.
    pub(super) fn default_context(self, inputs: &Inputs<'_>) -> u64 {
        let own = match inputs.model.max_position_embeddings {
            0 => u64::MAX,
            n => n,
        };
        let total = inputs.device.total_bytes.saturating_mul(inputs.device.count.max(1));
        let wanted = if self < Release(0, 7, 0) {
            2048
        } else if self < Release(0, 15, 5) || total < 23 * GIB {
            4096
        } else if total < 47 * GIB {
            32_768
        } else {
            262_144
        };
        wanted.min(own)
    }

    /// Four slots are tried first (before 0.7).
    pub(super) fn four_slots(self) -> bool {
        self < Release(0, 7, 0)
    }

    /// The layers that fit are found by the estimate of llm/memory.go; replaced by #16031, after which the server of
    /// llama.cpp fits itself.
    pub(super) fn estimates(self) -> bool {
        self < Release(0, 24, 0)
    }

    /// Flash attention where nothing is asked: llama.cpp's choice, before that by model, before that off.
    pub(super) fn attention(self, model: &Model) -> Option<AttentionImpl> {
        let listed = ["gemma3", "gpt_oss", "qwen3", "mistral3", "olmo3"];
        let on = self >= Release(0, 12, 4) && listed.iter().any(|m| model.model_type.starts_with(m));
        match (self >= Release(0, 24, 0), on) {
            (true, _) => None,
            (false, true) => Some(AttentionImpl::Flash),
            (false, false) => Some(AttentionImpl::Eager),
        }
    }
}
