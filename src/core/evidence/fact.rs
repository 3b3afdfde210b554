//! What a text says: figures with the line each was printed on, and the errors seen.

use serde::Serialize;

/// A value as read from a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// Bytes; negative where an engine prints a negative budget.
    Bytes(i64),
    /// A plain count: tokens, blocks, a length, a degree.
    Count(u64),
    /// A ratio.
    Real(f64),
    /// A setting that is on or off.
    Flag(bool),
    /// A name or a version, verbatim.
    Text(String),
}

/// One figure and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Name, one of [`super::KEYS`].
    pub key: &'static str,
    /// The value.
    pub value: Figure,
    /// Line of the text, from 1.
    pub line: u32,
    /// Rank that printed it, where the line says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Device that it is about, where the line says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// Family of texts that read it, an id of [`super::READERS`].
    pub reader: &'static str,
    /// Index into [`Evidence::errors`] of the message that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<u32>,
}

/// One error or notice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorSeen {
    /// Kind, one of [`super::KINDS`].
    pub kind: &'static str,
    /// Line of the text, from 1.
    pub line: u32,
    /// Rank that printed it, where the line says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Time of the line as a number that sorts; none where the line has none.
    #[serde(skip)]
    pub(crate) time: Option<u64>,
    /// How often the same message came again.
    pub times: u32,
}

/// Everything read from one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Figures in the order printed.
    pub facts: Vec<Fact>,
    /// Errors and notices in the order printed.
    pub errors: Vec<ErrorSeen>,
    /// What holds most of the allocated bytes, where a snapshot of the allocator says so; the greatest first.
    pub holders: Vec<super::Holder>,
}

impl Evidence {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.errors.is_empty()
    }
}
