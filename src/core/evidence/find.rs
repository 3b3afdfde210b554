//! Finds any of some hundred fixed texts in a long one, in one pass.

/// Texts to look for, by the hash of their first four bytes.
pub(crate) struct Finder {
    /// One bit for each hash that some text has: most places are passed over by this alone.
    known: Vec<u64>,
    /// Hash and index of each text, sorted by hash.
    by_hash: Vec<(u16, usize)>,
    texts: Vec<Vec<u8>>,
}

fn hash(four: [u8; 4]) -> u16 {
    (u32::from_le_bytes(four).wrapping_mul(0x9E37_79B1) >> 16) as u16
}

impl Finder {
    /// Texts shorter than four bytes cannot be found; the test of the table refuses them.
    pub(crate) fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Finder {
        let texts: Vec<Vec<u8>> = texts.into_iter().collect();
        let mut known = vec![0u64; 1024];
        let mut by_hash = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            if let Some(four) = text.first_chunk::<4>() {
                let hash = hash(*four);
                if let Some(word) = known.get_mut(usize::from(hash >> 6)) {
                    *word |= 1 << (hash & 63);
                }
                by_hash.push((hash, index));
            }
        }
        by_hash.sort_unstable();
        Finder { known, by_hash, texts }
    }

    /// Every place of every text in `hay`, as (offset, index of the text), by offset.
    pub(crate) fn find(&self, hay: &[u8], mut hit: impl FnMut(usize, usize)) {
        for (at, window) in hay.windows(4).enumerate() {
            let hash = hash([window[0], window[1], window[2], window[3]]);
            if self.known.get(usize::from(hash >> 6)).is_none_or(|w| w >> (hash & 63) & 1 == 0) {
                continue;
            }
            let from = self.by_hash.partition_point(|(h, _)| *h < hash);
            for (_, index) in self.by_hash.iter().skip(from).take_while(|(h, _)| *h == hash) {
                let same = |text: &Vec<u8>| hay.get(at..).is_some_and(|rest| rest.starts_with(text));
                if self.texts.get(*index).is_some_and(same) {
                    hit(at, *index);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Finder;

    #[test]
    fn finds_each_place_of_each_text() {
        let finder = Finder::new(["memory".into(), "memo".into(), "ory!".into()]);
        let mut seen = Vec::new();
        finder.find(b"a memory, memory!", |at, index| seen.push((at, index)));
        seen.sort_unstable();
        assert_eq!(seen, [(2, 0), (2, 1), (10, 0), (10, 1), (13, 2)]);
    }
}
