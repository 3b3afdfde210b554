//! Which rules a version of SGLang follows. Read in the packages 0.3.0, 0.4.1, 0.4.2, 0.4.5, 0.4.6.post5, 0.4.7, 0.4.8,
//! 0.4.9, 0.5.1 to 0.5.4, 0.5.6 to 0.5.10, 0.5.12, 0.5.15, 0.5.20 and 0.5.23 of the Python index; a rule is taken to
//! begin with the first of them that has it.

use crate::engines::pooled::release;

/// The newest version whose rules are modelled.
const NEWEST: (u32, u32, u32) = (0, 5, 23);
/// As people write it.
pub(super) const NEWEST_TEXT: &str = "0.5.23";

/// A version, reduced to what decides the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    release: (u32, u32, u32),
    /// The text named no release: the newest modelled rules are taken.
    pub(super) assumed: bool,
}

/// How `mem_fraction_static` is chosen where it is not given (`ServerArgs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// By tensor-parallel ranks alone.
    ByRanks,
    /// By ranks on devices up to 80 GiB, 0.88 and more on larger ones.
    ByRanksAndSize,
    /// A reserve by size of the device.
    ReserveBySize,
    /// A reserve from the prefill chunk and the largest decode graph.
    ReserveByWork,
}

impl Version {
    /// From what a log or a person wrote.
    pub(super) fn parse(text: Option<&str>) -> Version {
        let text = text.unwrap_or("").to_ascii_lowercase();
        let found = release(&text).filter(|r| *r >= (0, 1, 0));
        Version { release: found.unwrap_or(NEWEST), assumed: found.is_none_or(|r| r > NEWEST) }
    }

    fn from(self, minor: u32, patch: u32) -> bool {
        self.release >= (0, minor, patch)
    }

    pub(super) fn choice(self) -> Choice {
        if self.from(5, 3) {
            Choice::ReserveByWork
        } else if self.from(4, 8) {
            Choice::ReserveBySize
        } else if self.from(4, 6) {
            Choice::ByRanksAndSize
        } else {
            Choice::ByRanks
        }
    }

    /// Share taken on eight ranks and more under [`Choice::ByRanks`].
    pub(super) fn share_of_eight(self) -> f64 {
        if self.from(4, 1) { 0.81 } else { 0.83 }
    }

    /// Latents are cached by default; before, `--enable-mla` asked for it.
    pub(super) fn caches_latents(self) -> bool {
        self.from(4, 1)
    }

    /// Devices below 25,000 MiB read prompts in chunks of 2048 tokens.
    pub(super) fn small_chunks(self) -> bool {
        self.from(4, 1)
    }

    /// `--page-size` exists, and the prefill chunk must be made of whole pages.
    pub(super) fn pages(self) -> bool {
        self.from(4, 5)
    }

    /// Default kernels of data-centre Blackwell take pages of 64 tokens.
    pub(super) fn paged_blackwell(self) -> bool {
        self.from(5, 3)
    }

    /// Devices of 20 to 35 GiB read prompts in chunks of 4096 and capture decode graphs up to 48 (160 from four ranks).
    pub(super) fn larger_small_devices(self) -> bool {
        self.from(5, 20)
    }

    /// Their decode graphs reached 24 instead of 16.
    pub(super) fn graphs_to_24(self) -> bool {
        self.from(5, 6)
    }

    /// Decode graphs stop at `--max-running-requests`.
    pub(super) fn graphs_stop_at_seats(self) -> bool {
        self.from(5, 20)
    }

    /// Prefill runs in captured pieces, for which memory is reserved.
    pub(super) fn captures_prefill(self) -> bool {
        self.from(5, 10)
    }

    /// MiB reserved for a draft model and its graphs.
    pub(super) fn draft_reserve(self) -> u64 {
        match self.choice() {
            Choice::ByRanks | Choice::ByRanksAndSize => 0,
            _ if self.from(5, 15) => 0,
            _ if self.from(5, 10) => 4096,
            _ => 2048,
        }
    }

    /// The share shrinks for a vision tower (`adjust_mem_fraction_for_vlm`).
    pub(super) fn shrinks_for_vision(self) -> bool {
        self.from(4, 8)
    }

    /// MiB kept back for the cache of image embeddings (`SGLANG_VLM_CACHE_SIZE_MB`).
    pub(super) fn image_cache(self) -> u64 {
        if self.from(5, 20) { 100 } else { 0 }
    }

    /// The KV of draft layers is part of a token's bytes, and draft weights are loaded before the pool is sized.
    pub(super) fn counts_draft(self) -> bool {
        self.from(5, 15)
    }

    /// Refuses with the share that would leave room.
    pub(super) fn suggests_share(self) -> bool {
        self.from(5, 15)
    }

    /// Keys and values may differ in width; before, a token was counted as twice its keys.
    pub(super) fn counts_values(self) -> bool {
        self.from(5, 7)
    }

    /// Sliding-window layers have a pool of their own in models of this type (`is_hybrid_swa_model` and what
    /// `ServerArgs` switches off).
    pub(super) fn splits_windows(self, model_type: &str) -> bool {
        match model_type {
            "gpt_oss" => self.from(5, 10),
            "llama4_text" | "llama4" => self.from(5, 8),
            "mimo_v2_flash" => self.from(5, 7),
            "step3p5" => self.from(5, 9),
            "gemma4" | "gemma4_text" | "laguna" | "mimo_v2" => self.from(5, 12),
            _ => false,
        }
    }

    /// Without a radix cache, an explicit number of requests sizes the window's pool (`SWARequestCapPoolConfigurator`).
    pub(super) fn caps_windows(self) -> bool {
        self.from(5, 20)
    }

    /// The recurrent-state pool is a share of what is left; before, slots for 512 or the requests given.
    pub(super) fn shares_with_states(self) -> bool {
        self.from(5, 4)
    }

    /// The slot that pads the state pool is part of the budget.
    pub(super) fn counts_padding_slot(self) -> bool {
        self.from(5, 20)
    }

    /// State slots of one running request beside a radix cache: 3, and two more where scheduling overlaps.
    pub(super) fn slots_per_request(self, radix: bool) -> u64 {
        match (radix, self.from(5, 15)) {
            (false, _) => 1,
            (true, false) => 3,
            (true, true) => 5,
        }
    }

    /// Requests at once are at most half the tokens of the pool.
    pub(super) fn halves_tokens(self) -> bool {
        self.from(5, 10)
    }

    /// Most requests at once by default.
    pub(super) fn most_requests(self) -> u64 {
        if self.from(4, 1) { 4096 } else { 5120 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_logs_write_them() {
        let v = |t| Version::parse(Some(t));
        assert_eq!(v("0.4.6").choice(), Choice::ByRanksAndSize);
        assert_eq!(v("0.5.6-dev").choice(), Choice::ReserveByWork);
        assert_eq!(v("0.4.9.post6").choice(), Choice::ReserveBySize);
        assert_eq!(v("v0.4.2").choice(), Choice::ByRanks);
        for odd in ["main 2026-08", "", "nightly", "2026-06"] {
            assert!(v(odd).assumed, "{odd}");
        }
    }
}
