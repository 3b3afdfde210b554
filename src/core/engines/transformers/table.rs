//! Sums made ready for many points: each product of dimensions is computed once per point.

use super::sum::Sum;
use super::tape::{Dim, Dims};

/// Distinct products of dimensions that a table can hold; a model's tape has about a dozen.
const PRODUCTS: usize = 48;

/// `times` tensors of `coefficient` times product `product` bytes; `times` 0: one, already a multiple of 512.
#[derive(Clone, Copy, Debug)]
struct Part {
    product: usize,
    coefficient: u64,
    times: u64,
}

/// The stages of one pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    products: Vec<[Dim; 3]>,
    sums: Vec<Vec<Part>>,
    /// At least every sum: the largest coefficient of each product, and the rounding of every odd tensor.
    ceiling: Vec<Part>,
}

impl Table {
    pub(super) fn new(sums: &[Sum]) -> Table {
        let mut table = Table::default();
        let mut slack = 0;
        for sum in sums {
            let mut parts = Vec::new();
            for size in &sum.even {
                parts.push(Part {
                    product: table.product(size.dims),
                    coefficient: size.coefficient,
                    times: 0,
                });
            }
            for (size, times) in &sum.odd {
                let product = table.product(size.dims);
                parts.push(Part { product, coefficient: size.coefficient, times: *times });
            }
            slack = slack.max(sum.odd.iter().map(|(_, times)| times.saturating_mul(512)).sum());
            for product in 0..table.products.len() {
                let all = parts.iter().filter(|p| p.product == product);
                let coefficient = all
                    .fold(0, |sum: u64, p| sum.saturating_add(p.coefficient.saturating_mul(p.times.max(1))));
                match table.ceiling.iter_mut().find(|c| c.product == product) {
                    Some(part) => part.coefficient = part.coefficient.max(coefficient),
                    None => table.ceiling.push(Part { product, coefficient, times: 0 }),
                }
            }
            table.sums.push(parts);
        }
        let one = table.product([Dim::One; 3]);
        table.ceiling.push(Part { product: one, coefficient: slack, times: 0 });
        table
    }

    fn product(&mut self, dims: [Dim; 3]) -> usize {
        if let Some(at) = self.products.iter().position(|p| *p == dims) {
            return at;
        }
        self.products.push(dims);
        self.products.len() - 1
    }

    /// The highest sum at a point, or `least` where none exceeds it.
    #[inline]
    pub(super) fn highest(&self, at: &Dims, least: u64) -> u64 {
        let mut values = [0u64; PRODUCTS];
        for (value, dims) in values.iter_mut().zip(&self.products) {
            *value = at.product(*dims);
        }
        if add(&self.ceiling, &values) <= least {
            return least;
        }
        self.sums.iter().fold(least, |highest, parts| highest.max(add(parts, &values)))
    }
}

#[inline]
fn add(parts: &[Part], values: &[u64; PRODUCTS]) -> u64 {
    parts.iter().fold(0, |sum: u64, part| {
        let raw = part.coefficient.saturating_mul(values.get(part.product).copied().unwrap_or(u64::MAX));
        let bytes = match part.times {
            0 => raw,
            times => (raw.saturating_add(511) & !511).saturating_mul(times),
        };
        sum.saturating_add(bytes)
    })
}
