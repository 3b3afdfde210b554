//! What every importer makes: one timeline, a series per card.

use crate::units::Message;

/// Seconds that are not known.
pub const NO_TIME: f64 = f64::NAN;

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Seconds by the file's own clock (since 1970 where it gives a date); NaN where the file has no time.
    pub time: f64,
    /// Bytes in use; millionths of the card where [`Quantity::Share`].
    pub used: u64,
    /// Line of the file.
    pub line: u32,
}

/// What the samples of a series count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// The card's memory in use, as the driver counts it.
    #[default]
    Used,
    /// Memory of one process.
    Process,
    /// What a framework's allocator has handed out.
    Allocated,
    /// What a framework's allocator holds.
    Reserved,
    /// The card's memory in use, in millionths of its total: the file gives per cent and no total.
    Share,
}

/// The readings of one card (or slice, or process) in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What the file calls the card: index, bus id, uuid, or its place in each round of rows.
    pub gpu: String,
    /// The card's product name, where the file has it.
    pub name: Option<String>,
    /// What is counted.
    pub quantity: Quantity,
    /// Device total in bytes, where the file has it.
    pub total: Option<u64>,
    /// What programs can reach: used + free, where the file has both; it lies below the total by the driver's
    /// reserve.
    pub reachable: Option<u64>,
    /// The readings.
    pub samples: Vec<Sample>,
    /// Line from which on the tool says that the card is lost.
    pub lost: Option<u32>,
}

impl Series {
    /// The bytes that a program could reach at most, as far as the file says.
    pub fn limit(&self) -> Option<u64> {
        self.reachable.or(self.total).filter(|bytes| *bytes > 0)
    }
}

/// Something worth telling, with its line where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// Line of the file.
    pub line: Option<u32>,
    /// The sentence.
    pub message: Message,
}

/// A file's readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Id of the format.
    pub format: &'static str,
    /// One series a card.
    pub series: Vec<Series>,
    /// What was left out or guessed.
    pub warnings: Vec<Warning>,
}
