//! A stage as a polynomial in the lengths, and which stages can never be the highest.

use super::tape::{Block, Dim, Dims, Size};

/// Bytes alive at a stage, as a polynomial in the lengths.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    /// Whole multiples of 512 bytes, one coefficient for each product of dimensions.
    pub(super) even: Vec<Size>,
    /// Tensors that rounding may enlarge, and how many of each.
    pub(super) odd: Vec<(Size, u64)>,
}

impl Sum {
    pub(super) fn of<'a>(blocks: impl Iterator<Item = &'a Block>, one_length: bool) -> Sum {
        let mut sum = Sum { even: Vec::new(), odd: Vec::new() };
        for block in blocks {
            let mut size = block.size;
            if one_length {
                size.dims = size.dims.map(|d| if matches!(d, Dim::P | Dim::C(_)) { Dim::Q } else { d });
            }
            size.dims.sort_unstable();
            if size.dims == [Dim::One; 3] {
                size.coefficient = size.coefficient.next_multiple_of(512);
            }
            if size.coefficient.is_multiple_of(512) {
                let coefficient = size.coefficient.saturating_mul(block.times);
                match sum.even.iter_mut().find(|s| s.dims == size.dims) {
                    Some(s) => s.coefficient = s.coefficient.saturating_add(coefficient),
                    None => sum.even.push(Size { coefficient, ..size }),
                }
            } else {
                match sum.odd.iter_mut().find(|(s, _)| *s == size) {
                    Some((_, times)) => *times += block.times,
                    None => sum.odd.push((size, block.times)),
                }
            }
        }
        sum
    }

    /// Coefficient of every product of dimensions.
    fn monomials(&self) -> Vec<Size> {
        let mut all = self.even.clone();
        for (size, times) in &self.odd {
            let coefficient = size.coefficient.saturating_mul(*times);
            match all.iter_mut().find(|s| s.dims == size.dims) {
                Some(s) => s.coefficient = s.coefficient.saturating_add(coefficient),
                None => all.push(Size { coefficient, ..*size }),
            }
        }
        all
    }

    /// Whether this is at least `other` whatever the lengths (rounding aside): what it lacks in one product
    /// of dimensions it has to spare in a product that is never smaller.
    pub(super) fn covers(&self, other: &Sum) -> bool {
        let mut spare = self.monomials();
        let mut lacking = Vec::new();
        for mut wanted in other.monomials() {
            if let Some(own) = spare.iter_mut().find(|s| s.dims == wanted.dims) {
                let used = own.coefficient.min(wanted.coefficient);
                own.coefficient -= used;
                wanted.coefficient -= used;
            }
            if wanted.coefficient > 0 {
                lacking.push(wanted);
            }
        }
        lacking.into_iter().all(|mut wanted| {
            for own in spare.iter_mut().filter(|s| never_smaller(s.dims, wanted.dims)) {
                let used = own.coefficient.min(wanted.coefficient);
                own.coefficient -= used;
                wanted.coefficient -= used;
            }
            wanted.coefficient == 0
        })
    }

    /// Bytes at a point.
    #[inline]
    pub(super) fn bytes(&self, at: &Dims) -> u64 {
        let even = self.even.iter().fold(0, |sum: u64, size| sum.saturating_add(size.raw(at)));
        self.odd
            .iter()
            .fold(even, |sum, (size, times)| sum.saturating_add(size.bytes(at).saturating_mul(*times)))
    }
}

/// Whether the product `a` is at least the product `b` at all lengths: `b`'s dimensions are among `a`'s, and
/// those left over are never zero.
fn never_smaller(a: [Dim; 3], b: [Dim; 3]) -> bool {
    let mut left = a;
    for dim in b.iter().filter(|d| **d != Dim::One) {
        match left.iter().position(|l| l == dim) {
            Some(at) => left[at] = Dim::One,
            None => return false,
        }
    }
    left.iter().all(|d| matches!(d, Dim::One | Dim::B | Dim::Q | Dim::N | Dim::P | Dim::C(_)))
}
