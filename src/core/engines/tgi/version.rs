//! Which rules a version of Text Generation Inference follows; read at the tags of
//! huggingface/text-generation-inference.

use crate::engines::pooled::release;

/// The newest version whose rules are modelled.
pub(super) const NEWEST_TEXT: &str = "3.3.7";

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
        let found = release(&text.unwrap_or("").to_ascii_lowercase());
        Version { release: found.unwrap_or((3, 3, 7)), assumed: found.is_none() }
    }

    fn from(self, major: u32, minor: u32, patch: u32) -> bool {
        self.release >= (major, minor, patch)
    }

    /// The pool is what the warm-up leaves; before, it was as large as asked for.
    pub(super) fn infers_pool(self) -> bool {
        self.from(0, 9, 4)
    }

    /// `TGI_WIGGLE_ROOM`.
    pub(super) fn wiggle(self) -> f64 {
        if self.from(3, 3, 0) || (self.from(2, 4, 0) && !self.from(3, 0, 0)) {
            0.90
        } else if self.from(3, 1, 0) {
            0.93
        } else if self.from(1, 4, 5) {
            0.95
        } else {
            1.0
        }
    }

    /// The wiggle room is a share of the device total; before, of what is free after the warm-up.
    pub(super) fn wiggle_of_total(self) -> bool {
        self.from(3, 0, 0)
    }

    /// The warm-up computes logits for every prompt token.
    pub(super) fn logits_of_prompt(self) -> bool {
        !self.from(3, 0, 0)
    }

    /// The prefill batch follows the device's arithmetic and memory; before, a number.
    pub(super) fn reckons_prefill(self) -> bool {
        self.from(3, 0, 0)
    }

    /// The longest request follows the model, up to 4096 tokens; before, 2048.
    pub(super) fn length_of_model(self) -> bool {
        self.from(2, 0, 0)
    }

    /// Graphs are captured by default.
    pub(super) fn graphs(self) -> bool {
        self.from(2, 0, 0)
    }

    /// FlashInfer by default, with blocks of one token.
    pub(super) fn flashinfer(self) -> bool {
        self.from(2, 3, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wiggle_room_changed_often() {
        let v = |t| Version::parse(Some(t));
        let cases = [
            ("1.4.0", 1.0),
            ("1.4.5", 0.95),
            ("2.3.1", 0.95),
            ("2.4.1", 0.9),
            ("3.0.2", 0.95),
            ("3.2.0", 0.93),
            ("3.3.7", 0.9),
        ];
        for (text, share) in cases {
            assert!((v(text).wiggle() - share).abs() < 1e-9, "{text}");
        }
        assert!(v("0.9.x").infers_pool() && !v("0.9.1").infers_pool());
        assert!(v("latest").assumed);
    }
}
