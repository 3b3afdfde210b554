//! A stage as a polynomial in the lengths, and which stages can never be the highest.

use super::tape::{Block, Dim, Dims, Size};

/// Bytes alive at a stage, as a polynomial in the lengths.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// Whole multiples of 512 bytes, one coefficient for each product of dimensions.
    pub(super) even: Vec<Size>,
    /// Tensors that rounding may enlarge, and how many of each.
    pub(super) odd: Vec<(Size, u64)>,
}

/// A block with its dimensions in one order, so that equal products are the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addend {
    size: Size,
    times: u64,
    /// A whole multiple of 512 bytes.
    even: bool,
}

impl Addend {
    /// With `one_length`, keys, queries and prompt are the same tokens.
    pub(super) fn of(block: &Block, one_length: bool) -> Addend {
        let mut size = block.size;
        if one_length {
            size.dims = size.dims.map(|d| if matches!(d, Dim::P | Dim::C(_)) { Dim::Q } else { d });
        }
        size.dims.sort_unstable();
        if size.dims == [Dim::One; 3] {
            size.coefficient = size.coefficient.next_multiple_of(512);
        }
        Addend { size, times: block.times, even: size.coefficient.is_multiple_of(512) }
    }
}

impl Sum {
    pub(super) fn of(addends: impl Iterator<Item = Addend>) -> Sum {
        let mut sum = Sum { even: Vec::with_capacity(16), odd: Vec::new() };
        for Addend { size, times, even } in addends {
            if even {
                let coefficient = size.coefficient.saturating_mul(times);
                match sum.even.iter_mut().find(|s| s.dims == size.dims) {
                    Some(s) => s.coefficient = s.coefficient.saturating_add(coefficient),
                    None => sum.even.push(Size { coefficient, ..size }),
                }
            } else {
                match sum.odd.iter_mut().find(|(s, _)| *s == size) {
                    Some((_, n)) => *n += times,
                    None => sum.odd.push((size, times)),
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

    /// Bytes at a point.
    #[inline]
    pub(super) fn bytes(&self, at: &Dims) -> u64 {
        let even = self.even.iter().fold(0, |sum: u64, size| sum.saturating_add(size.raw(at)));
        self.odd
            .iter()
            .fold(even, |sum, (size, times)| sum.saturating_add(size.bytes(at).saturating_mul(*times)))
    }
}

/// Sums of which others may be no more than a part.
#[derive(Default)]
pub(super) struct Cover {
    kept: Vec<Vec<Size>>,
    // Room for one comparison, taken once.
    spare: Vec<Size>,
    lacking: Vec<Size>,
}

impl Cover {
    pub(super) fn push(&mut self, sum: &Sum) {
        self.kept.push(sum.monomials());
    }

    /// Whether one of these is at least `sum` whatever the lengths (rounding aside): what it lacks in one product
    /// of dimensions it has to spare in a product that is never smaller.
    pub(super) fn holds(&mut self, sum: &Sum) -> bool {
        let wanted = sum.monomials();
        let Cover { kept, spare, lacking } = self;
        kept.iter().any(|own| covers(own, &wanted, spare, lacking))
    }
}

fn covers(own: &[Size], wanted: &[Size], spare: &mut Vec<Size>, lacking: &mut Vec<Size>) -> bool {
    spare.clear();
    spare.extend_from_slice(own);
    lacking.clear();
    let pay = |own: &mut Size, wanted: &mut Size| {
        let used = own.coefficient.min(wanted.coefficient);
        own.coefficient -= used;
        wanted.coefficient -= used;
    };
    for mut wanted in wanted.iter().copied() {
        if let Some(own) = spare.iter_mut().find(|s| s.dims == wanted.dims) {
            pay(own, &mut wanted);
        }
        if wanted.coefficient > 0 {
            lacking.push(wanted);
        }
    }
    lacking.iter_mut().all(|wanted| {
        let dims = wanted.dims;
        for own in spare.iter_mut().filter(|s| never_smaller(s.dims, dims)) {
            pay(own, wanted);
        }
        wanted.coefficient == 0
    })
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
    left.iter().all(|d| matches!(d, Dim::One | Dim::B | Dim::Q | Dim::N | Dim::P | Dim::Whole | Dim::C(_)))
}
