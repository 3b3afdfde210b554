//! Builds of llama.cpp: which rule holds since when. Numbers are those of the release tags (`b4567`).

use super::super::pooled::release;

/// A build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Build {
    /// Release number.
    pub(super) number: u32,
    /// The ik_llama.cpp fork, which left the main line in 2024 and keeps most of its rules.
    pub(super) ik: bool,
}

/// The newest build whose sources were read: the one vendored by llama-cpp-python 0.3.36. Its number is not stated
/// there. Numbers of changes after b7079 (2025-11-16) are interpolated by date, with b10107 (2026-07-28) as the other
/// end: 11.9 builds a day; a build within some twenty of such a number may still follow the older rule.
pub(super) const NEWEST: u32 = 11_000;
/// The last build before the fork.
const FORK: u32 = 3_500;

impl Build {
    /// The build that a text names: `b4567`, `4567 (1a2b3c4)`, `ik`, a year; none: the newest.
    pub(super) fn read(text: Option<&str>) -> (Build, bool) {
        let text = text.unwrap_or("").to_ascii_lowercase();
        let newest = Build { number: NEWEST, ik: false };
        if text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "ik")
            || text.contains("ik_llama")
        {
            return (Build { number: FORK, ik: true }, true);
        }
        let digits = |word: &str| word.strip_prefix('b').unwrap_or(word).parse::<u32>().ok();
        let numbers = text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(digits);
        // A bare 2024 is a year; releases of that number are written b2024.
        let year = |n: &u32| (2023..2100).contains(n) && !text.contains(&format!("b{n}"));
        match numbers.filter(|n| *n >= 100).find(|n| !year(n)) {
            Some(number) => (Build { number, ik: false }, true),
            None => (newest, text.is_empty() || release(&text).is_none()),
        }
    }

    fn since(self, number: u32) -> bool {
        !self.ik && self.number >= number
    }

    /// Large batches of layers on the host are computed on a device (#6083).
    pub(super) fn offloads_operations(self) -> bool {
        self.ik || self.number >= 2437
    }

    /// Sliding layers have a mask of their own, whatever their cache (#8197).
    pub(super) fn window_mask(self) -> bool {
        self.ik || self.number >= 3266
    }

    /// Sliding layers have a cache of their own, of the window's size (ggml-org/llama.cpp#13194).
    pub(super) fn window_cache(self) -> bool {
        self.since(5427)
    }

    /// The window's cache has room for a physical batch, before that for a logical one (#13833).
    pub(super) fn window_by_ubatch(self) -> bool {
        self.since(5539)
    }

    /// Sequences can have streams of cells of their own (#14363).
    pub(super) fn streams(self) -> bool {
        self.since(5913)
    }

    /// Cells are padded to 256 whatever the attention (#17046).
    pub(super) fn pads_always(self) -> bool {
        self.since(6967)
    }

    /// All layers go to devices and flash attention is on where supported, unless asked otherwise (#15434).
    pub(super) fn offloads_and_flashes(self) -> bool {
        self.since(6325)
    }

    /// The server opens four slots over one buffer unless asked otherwise (#16736).
    pub(super) fn four_slots(self) -> bool {
        self.since(6924)
    }

    /// Layers and context are reduced to what fits unless asked otherwise (#16653).
    pub(super) fn fits_itself(self) -> bool {
        self.since(7407)
    }

    /// Latent attention caches latents (#12801).
    pub(super) fn latent_cache(self) -> bool {
        self.since(5140) || self.ik
    }

    /// Values are a view of the cached latents, no cache of their own (#19067).
    pub(super) fn latent_keys_only(self) -> bool {
        self.since(7823)
    }

    /// Gate and up meet in one operation with a result of its own (#14158).
    pub(super) fn fused_gate(self) -> bool {
        self.since(5782)
    }

    /// New rows are stored by index (#14959).
    pub(super) fn stores_by_index(self) -> bool {
        self.since(6071)
    }

    /// The layer count includes the output from the last layer backwards (#16653).
    pub(super) fn output_first(self) -> bool {
        self.since(7407)
    }

    /// The mask of flash attention is made in F16 (#23764).
    pub(super) fn mask_is_half(self) -> bool {
        self.since(9_380)
    }

    /// Rows of the mask for `tokens` of a stream.
    pub(super) fn mask_rows(self, tokens: u64, flash: bool) -> u64 {
        let pad = if self.since(6967) { 1 } else { 64 };
        let _ = flash;
        tokens.checked_next_multiple_of(pad).unwrap_or(tokens)
    }

    /// The batch may hold embeddings in place of tokens, and the graph room for both (#18550).
    pub(super) fn selects_embedding(self) -> bool {
        self.since(7683)
    }

    /// Half-precision copies of quantised keys and values lie in the compute buffer (#23907).
    pub(super) fn flash_scratch(self) -> bool {
        self.since(9_460)
    }

    /// Experts' results are kept while a device adds them in one operation (#25952).
    pub(super) fn fuses_experts(self) -> bool {
        self.since(10_535)
    }

    /// Quantised caches are stored rotated (#21038).
    pub(super) fn rotates(self) -> bool {
        self.since(8600)
    }

    /// The server asks for as many rows of logits as slots, not for all of a batch (#23861).
    pub(super) fn few_outputs(self) -> bool {
        self.since(9_425)
    }
}
