//! The fixed colour of every term, after Okabe and Ito's colour-blind-safe set, extended by lightness for the
//! rarer terms; a test holds that any two that the serving engines emit can be told apart without red or green
//! cones. The page, the charts and the tests take colours from here and nowhere else.

use crate::memory::TermId;

/// Red, green, blue.
pub type Rgb = (u8, u8, u8);

/// The colour of a term, in both themes: fills carry a hairline of the paper between them.
pub const fn term(id: TermId) -> Rgb {
    match id {
        TermId::Weights => (0, 114, 178),
        TermId::KvCache => (230, 159, 0),
        TermId::RecurrentState => (171, 82, 14),
        TermId::Activations | TermId::SavedActivations => (0, 158, 115),
        TermId::AttentionScores => (120, 240, 165),
        TermId::Logits | TermId::Loss => (205, 162, 182),
        TermId::Sampling => (140, 81, 130),
        TermId::Workspace | TermId::ZeroBuffers => (86, 180, 233),
        TermId::CudaGraphs => (240, 228, 66),
        TermId::ContextOverhead => (82, 82, 82),
        TermId::Communication => (184, 208, 223),
        TermId::DraftModel | TermId::Adapter => (0, 70, 120),
        TermId::Encoder => (72, 53, 154),
        // Gradients and what is only alive while loading or recomputing: never in one phase's peak together.
        TermId::LoadTransient | TermId::RecomputeTransient | TermId::Gradients => (213, 94, 0),
        TermId::MasterWeights => (120, 180, 220),
        TermId::OptimizerStates => (128, 85, 170),
        TermId::OptimizerTransient => (190, 160, 215),
        TermId::Fragmentation => (200, 60, 50),
        TermId::OtherProcesses => (129, 120, 69),
        TermId::DriverReserved => (110, 100, 100),
        TermId::Unexplained => (44, 44, 44),
    }
}

/// `colour` with a share of `ground`, 0 to 1, mixed into it.
pub fn mix(colour: Rgb, ground: Rgb, share: f64) -> Rgb {
    let one = |c: u8, g: u8| (f64::from(c) + (f64::from(g) - f64::from(c)) * share).round() as u8;
    (one(colour.0, ground.0), one(colour.1, ground.1), one(colour.2, ground.2))
}

/// `#rrggbb` of a colour.
pub fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Colours of a chart's ground, ink, lines and verdicts; one set a theme, equal to the page's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Behind everything.
    pub paper: Rgb,
    /// Text and axes.
    pub ink: Rgb,
    /// Secondary text.
    pub soft: Rgb,
    /// Grid lines.
    pub rule: Rgb,
    /// Budget line and crossing point.
    pub accent: Rgb,
}

/// Light theme.
pub const LIGHT: Theme = Theme {
    paper: (248, 246, 240),
    ink: (22, 32, 42),
    soft: (76, 89, 101),
    rule: (207, 200, 184),
    accent: (168, 50, 26),
};

/// Dark theme.
pub const DARK: Theme = Theme {
    paper: (17, 23, 29),
    ink: (233, 228, 216),
    soft: (169, 178, 186),
    rule: (51, 64, 75),
    accent: (255, 148, 120),
};
