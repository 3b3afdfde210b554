//! Which rules a version of vLLM follows. Versions come from logs and are messy: `0.6.x (v0)`,
//! `0.8.5.post1 (V0)`, `0.26.1rc1.dev156`, `0.10.2-0.11`, `>=0.21 (main)`.

use crate::engines::pooled::release;

/// The newest version whose rules are modelled.
pub(super) const NEWEST: (u32, u32, u32) = (0, 29, 0);

/// A version, reduced to what decides the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// Major, minor, patch.
    pub(super) release: (u32, u32, u32),
    /// The V1 engine (worker, scheduler and KV manager rewritten).
    pub(super) v1: bool,
    /// The text named no release: the newest modelled rules are taken.
    pub(super) assumed: bool,
}

impl Version {
    /// From what a log or a person wrote.
    pub(super) fn parse(text: Option<&str>) -> Version {
        let text = text.unwrap_or("").to_ascii_lowercase();
        let found = release(&text);
        // A development build without a release number (0.1.dev20073) comes from the main branch.
        let release = found.filter(|r| *r >= (0, 2, 0)).unwrap_or(NEWEST);
        let v1 = if tagged(&text, "v0") { false } else { tagged(&text, "v1") || release >= (0, 8, 0) };
        Version {
            release,
            v1,
            assumed: found.is_none_or(|r| r < (0, 2, 0) || r.0 > 0 || (r.0, r.1) > (NEWEST.0, NEWEST.1)),
        }
    }

    fn from(self, minor: u32, patch: u32) -> bool {
        self.release >= (0, minor, patch)
    }

    /// Default of `--gpu-memory-utilization`.
    pub(super) fn utilization(self) -> f64 {
        if self.from(22, 0) { 0.92 } else { 0.9 }
    }

    /// Layers are grouped by kind, so that sliding layers keep their window only (hybrid KV cache manager).
    pub(super) fn groups_layers(self) -> bool {
        self.v1 && self.from(9, 2)
    }

    /// Chunked local attention (Llama 4) takes part in that; before, it switched the grouping off.
    pub(super) fn groups_chunked(self) -> bool {
        self.v1 && self.from(12, 0)
    }

    /// The context and neighbours of the device count against the budget (`total - free` was taken as ours).
    pub(super) fn context_in_budget(self) -> bool {
        if self.v1 { !self.from(9, 2) } else { self.release.1 == 6 && self.release.2 == 4 }
    }

    /// Start-up is refused where less than the requested memory is free.
    pub(super) fn checks_free_memory(self) -> bool {
        self.v1 && self.from(9, 0)
    }

    /// An estimate of CUDA graphs is subtracted before the pool is sized.
    pub(super) fn graphs_in_budget(self) -> bool {
        self.v1 && self.from(21, 0)
    }

    /// The token line prints concurrency times length instead of the pool's tokens.
    pub(super) fn line_is_concurrency(self) -> bool {
        self.v1 && self.from(21, 0)
    }

    /// Concurrency counts blocks per request by group; before, it was tokens over length.
    pub(super) fn concurrency_by_blocks(self) -> bool {
        self.v1 && self.from(10, 0)
    }

    /// Steps in flight at once: asynchronous scheduling lets a second batch allocate its blocks.
    pub(super) fn batches_in_flight(self) -> u64 {
        if self.v1 && self.from(25, 0) { 2 } else { 1 }
    }

    /// Prefix caching of recurrent models keeps a second state per request (mode `align`).
    pub(super) fn aligns_states(self) -> bool {
        self.v1 && self.from(20, 0)
    }

    /// Refuses more sequences than the pool has blocks for their states.
    pub(super) fn checks_state_blocks(self) -> bool {
        self.v1 && self.from(22, 0)
    }

    /// Latents are cached (MLA); before, keys and values were expanded and padded to 256 per head.
    pub(super) fn caches_latents(self) -> bool {
        self.from(7, 1)
    }

    /// gpt-oss brings its own list of batches to capture (`GptOssForCausalLMConfig`).
    pub(super) fn own_list_of_gpt_oss(self) -> bool {
        self.v1 && self.from(10, 1) && !self.from(11, 1)
    }

    /// Graphs are captured up to twice the sequences, in steps of 16 from 256 on.
    pub(super) fn captures_by_sequences(self) -> bool {
        self.v1 && self.from(11, 1)
    }

    /// Routed experts take LoRA adapters (`FusedMoEWithLoRA`).
    pub(super) fn adapts_experts(self) -> bool {
        self.v1 && self.from(11, 1)
    }

    /// Some models leave their encoder out where no picture is allowed.
    pub(super) fn drops_encoders(self) -> bool {
        self.v1 && self.from(10, 1)
    }

    /// The log suggests a `--kv-cache-memory-bytes`.
    pub(super) fn suggests_pool(self) -> bool {
        self.v1 && self.from(10, 2)
    }

    /// The refusal names the longest length that would start.
    pub(super) fn estimates_length(self) -> bool {
        self.v1 && self.from(8, 4)
    }

    /// Bytes per sequence and vocabulary entry of the profile run's sampler.
    pub(super) fn sampler_bytes(self) -> u64 {
        if self.v1 && self.from(12, 0) { 20 } else { 38 }
    }
}

/// Whether the text names an engine generation: `v0` as a word, not the start of `v0.11`.
fn tagged(text: &str, tag: &str) -> bool {
    text.match_indices(tag).any(|(i, _)| {
        let after = text[i + tag.len()..].chars().next();
        !after.is_some_and(|c| c.is_ascii_digit() || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messy_versions() {
        let v = |t| Version::parse(Some(t));
        assert_eq!(v("0.6.x (v0)"), Version { release: (0, 6, 99), v1: false, assumed: false });
        assert_eq!(v("0.8.5.post1 (V0)").release, (0, 8, 5));
        assert!(!v("0.8.5.post1 (V0)").v1);
        assert!(v("0.8.5").v1 && !v("0.7.3").v1 && v("0.7.0 (V1)").v1);
        assert_eq!(v("0.26.1rc1.dev156").release, (0, 26, 1));
        assert_eq!(v("0.10.2-0.11").release, (0, 10, 2));
        assert_eq!(v(">=0.21 (main)").release, (0, 21, 0));
        assert_eq!(v("v0.11.0").release, (0, 11, 0));
        for odd in ["nightly", "", "2026-08", "0.1.dev20073+g8e685d198", "…", "0."] {
            assert!(v(odd).assumed, "{odd}");
            assert_eq!(v(odd).release, NEWEST, "{odd}");
        }
        assert!(Version::parse(None).assumed);
    }

    #[test]
    fn a_v_before_the_number_is_no_engine_generation() {
        assert!(Version::parse(Some("v0.11.0")).v1);
        assert!(Version::parse(Some("v0.29.1")).v1);
        assert!(!Version::parse(Some("v0.7.3")).v1);
    }
}
