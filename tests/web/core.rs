//! The core compiled to WebAssembly (32-bit sizes, another mathematics library), in Chromium: the same answers
//! as natively, and quick enough for the page.
#![cfg(target_arch = "wasm32")]

use oom_ledger_core::model::PRESETS;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn every_preset_has_its_parameters() {
    for preset in PRESETS {
        let model = preset.model().expect(preset.id);
        assert_eq!(model.parameters, preset.parameters, "{}", preset.id);
    }
}
