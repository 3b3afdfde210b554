//! The models shipped with the project: `model_presets/models/*.json`, one row each.

/// One shipped model.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Id in the Scenario document, and file name without `.json`.
    pub id: &'static str,
    /// The preset document.
    pub json: &'static str,
}

/// Every shipped model, sorted by id.
pub const PRESETS: &[Preset] = &[];

/// The preset of that id.
pub fn preset(id: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.id == id)
}
