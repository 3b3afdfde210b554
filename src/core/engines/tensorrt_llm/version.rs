//! Which rules a version of TensorRT-LLM follows: defaults as its release notes and arguments state them.

use crate::engines::pooled::release;

/// The newest version whose rules are modelled.
pub(super) const NEWEST_TEXT: &str = "1.2";

/// A version, reduced to what decides the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    release: (u32, u32, u32),
    /// Built engines instead of the PyTorch backend.
    pub(super) engines: bool,
    /// The text named no release: the newest modelled rules are taken.
    pub(super) assumed: bool,
}

impl Version {
    /// From what a log or a person wrote. The words "pytorch" and "engine" name the backend where it is not the
    /// version's own.
    pub(super) fn parse(text: Option<&str>) -> Version {
        let text = text.unwrap_or("").to_ascii_lowercase();
        let found = release(&text).filter(|r| *r >= (0, 5, 0));
        let release = found.unwrap_or((1, 2, 0));
        let named = |word| text.contains(word);
        let engines = !named("pytorch") && (named("engine") || release < (1, 0, 0));
        Version { release, engines, assumed: found.is_none() }
    }

    fn from(self, minor: u32) -> bool {
        self.release >= (0, minor, 0)
    }

    /// Tokens of a block by default: `tokens_per_block` of the plugin configuration, later of `KvCacheConfig`.
    pub(super) fn block(self) -> u64 {
        match () {
            () if self.from(19) => 32,
            () if self.from(8) && !self.from(10) => 128,
            () => 64,
        }
    }

    /// Sequences at once by default: `max_batch_size` of `trtllm-build`, later of `trtllm-serve`.
    pub(super) fn sequences(self) -> u64 {
        match () {
            () if self.from(14) => 2048,
            () if self.from(11) => 256,
            () => 1,
        }
    }

    /// `free_gpu_memory_fraction` by default.
    pub(super) fn share(self) -> f64 {
        if self.from(8) { 0.9 } else { 0.85 }
    }

    /// The line counts whole blocks; the first versions counted tokens before rounding.
    pub(super) fn prints_whole_blocks(self) -> bool {
        self.from(6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_gave_way_to_pytorch() {
        let v = |t| Version::parse(Some(t));
        assert!(v("0.13.0.dev2024082000").engines && !v("1.1.0rc3").engines);
        assert!(!v("0.20 pytorch").engines && v("1.0 engine").engines);
        assert_eq!((v("0.9").block(), v("0.13").block(), v("0.19").block()), (128, 64, 32));
        assert_eq!((v("0.13").sequences(), v("0.14").sequences()), (256, 2048));
        assert!((v("0.7.1").share(), v("0.8").share()) == (0.85, 0.9));
        assert!(v("main").assumed && !v("main").engines);
        assert!(!v("0.5 (2023-10)").prints_whole_blocks() && v("0.12").prints_whole_blocks());
    }
}
