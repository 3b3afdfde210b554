//! Layer 4: chart models, and drawing generic over plotters' `DrawingBackend`.

pub mod palette;
