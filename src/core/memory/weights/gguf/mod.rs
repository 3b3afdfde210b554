//! GGUF: block types, file types, and which tensor of a file gets which type.

mod files;
mod recipe;
mod types;

pub(crate) use files::FILES;
pub(super) use recipe::Recipe;
#[cfg(test)]
mod tests {
    use super::types::TYPES;

    #[test]
    fn blocks_hold_a_power_of_two_of_weights_and_names_are_unique() {
        for (i, t) in TYPES.iter().enumerate() {
            assert!(t.weights.is_power_of_two(), "{}", t.name);
            // Between 1.5 and 32 bits a weight.
            assert!(t.bytes * 8 * 2 >= t.weights * 3 && t.bytes <= t.weights * 4, "{}", t.name);
            assert!(TYPES.iter().skip(i + 1).all(|o| o.name != t.name), "{}", t.name);
        }
    }
}
