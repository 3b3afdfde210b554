//! Values of a header's key and value pairs.

/// One value, as far as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Meta {
    /// A whole number from 0.
    Whole(u64),
    /// Any other number.
    Real(f64),
    /// A switch.
    Flag(bool),
    /// Text, cut after 512 characters (chat templates are long).
    Text(String),
    /// A short list of whole numbers or switches (0 and 1), one per layer.
    Numbers(Vec<u64>),
    /// Any other list: its length.
    Length(u64),
}

impl Meta {
    /// The number, where it is a whole one.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Meta::Whole(n) => Some(*n),
            // Some converters write counts as floats.
            Meta::Real(x) if (0.0..9e15).contains(x) && x.fract() == 0.0 => Some(*x as u64),
            _ => None,
        }
    }

    /// The number, whole or not.
    pub fn real(&self) -> Option<f64> {
        match self {
            Meta::Whole(n) => Some(*n as f64),
            Meta::Real(x) => Some(*x),
            _ => None,
        }
    }

    /// The text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Meta::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The list of numbers.
    pub fn numbers(&self) -> Option<&[u64]> {
        match self {
            Meta::Numbers(all) => Some(all),
            _ => None,
        }
    }

    /// Entries of a list.
    pub fn length(&self) -> Option<u64> {
        match self {
            Meta::Numbers(all) => Some(all.len() as u64),
            Meta::Length(n) => Some(*n),
            _ => None,
        }
    }
}

/// `text` cut after 512 characters.
pub(super) fn short(text: &str) -> String {
    text.chars().take(512).collect()
}
