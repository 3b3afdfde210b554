//! Which rules a version of LMDeploy's TurboMind follows; read at the tags of InternLM/lmdeploy.

use crate::engines::pooled::release;

/// The newest version whose rules are modelled.
pub(super) const NEWEST_TEXT: &str = "0.16.0";

/// A version, reduced to what decides the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    release: (u32, u32, u32),
    /// The text named no release: the newest modelled rules are taken.
    pub(super) assumed: bool,
}

impl Version {
    /// From what a log or a person wrote.
    pub(super) fn parse(text: Option<&str>) -> Version {
        let found = release(&text.unwrap_or("").to_ascii_lowercase()).filter(|r| *r >= (0, 0, 2));
        Version { release: found.unwrap_or((0, 16, 0)), assumed: found.is_none() }
    }

    fn from(self, minor: u32, patch: u32) -> bool {
        self.release >= (0, minor, patch)
    }

    /// The share is of what is free once the weights are there; before, of the device total
    /// (`BlockManager::GetBlockCount`).
    pub(super) fn share_of_free(self) -> bool {
        self.from(2, 2)
    }

    /// `cache_max_entry_count` by default.
    pub(super) fn share(self) -> f64 {
        if self.share_of_free() { 0.8 } else { 0.5 }
    }

    /// Tokens of a block by default.
    pub(super) fn block(self) -> u64 {
        if self.from(3, 0) { 64 } else { 128 }
    }

    /// Quantised keys and values carry a scale and a zero point per token and head; before, int8 had one for the
    /// whole tensor, and int4 did not exist.
    pub(super) fn scales_per_token(self) -> bool {
        self.from(4, 0)
    }

    /// Latents are cached once, as keys and values alike; before, keys and values were expanded to every head.
    pub(super) fn caches_latents(self) -> bool {
        self.from(12, 3)
    }

    /// A request longer than the pool is shortened at start-up; later versions keep `session_len`.
    pub(super) fn truncates(self) -> bool {
        !self.from(15, 0)
    }

    /// Sequences at once by default, by name of the device (`get_max_batch_size`).
    pub(super) fn sequences(self, name: &str) -> u64 {
        if !self.from(5, 0) {
            return 128;
        }
        let later = self.from(10, 0);
        let is = |part: &str| name.contains(part);
        if is("A100") || is("A800") {
            if later { 384 } else { 256 }
        } else if is("H100") || is("H800") || (later && is("H200")) {
            if later { 1024 } else { 512 }
        } else {
            128
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_changed_its_base_and_its_default() {
        let v = |t| Version::parse(Some(t));
        assert!(!v("0.2.1").share_of_free() && v("0.2.2").share_of_free());
        assert_eq!((v("0.2.0").share(), v("v0.2.3").share()), (0.5, 0.8));
        assert_eq!((v("0.2.6").block(), v("0.4.0").block()), (128, 64));
        assert_eq!(v("0.12.0").sequences("NVIDIA A100 80 GB"), 384);
        assert_eq!(v("0.6.4").sequences("H100 SXM5 80 GB"), 512);
        assert!(v("main").assumed);
    }
}
