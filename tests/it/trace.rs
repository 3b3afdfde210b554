//! Memory logs: formats told by content, rows checked, curves judged.

use oom_ledger_core::text::{Lang, has, message};
use oom_ledger_core::trace::{Flag, IMPORTERS, Shape, classify, read};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

mod files;
mod shapes;

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Rows of fixtures/traces/index.json: what each file is, and what it says.
fn index() -> Vec<serde_json::Value> {
    serde_json::from_slice(&fixture("index.json")).unwrap()
}

#[test]
fn every_fixture_reads_as_its_index_says() {
    for row in index() {
        let file = row["file"].as_str().unwrap();
        let answer = read(&fixture(file));
        if let Some(key) = row["refused"].as_str() {
            let refusal = answer.expect_err(file);
            assert_eq!(refusal.message.id, key, "{file}");
            assert!(message(Lang::En, &refusal.message).len() > 40, "{file}");
            continue;
        }
        let timeline = answer.unwrap_or_else(|r| panic!("{file}: {r:?}"));
        assert_eq!(timeline.format, row["format"], "{file}");
        let got: Vec<_> = timeline
            .series
            .iter()
            .map(|s| {
                let total = s.total.map(|t| t >> 20);
                let last = s.samples.last().map(|p| p.used >> 20);
                serde_json::json!([s.gpu, s.samples.len(), last, total])
            })
            .collect();
        assert_eq!(serde_json::Value::from(got), row["series"], "{file}");
        for key in row["warnings"].as_array().into_iter().flatten() {
            let found = timeline.warnings.iter().any(|w| w.message.id == key.as_str().unwrap());
            assert!(found, "{file}: {key} in {:?}", timeline.warnings);
        }
    }
}

#[test]
fn every_importer_has_a_file_that_fires_and_none_fires_on_a_refused_one() {
    let fired: BTreeSet<String> =
        index().iter().filter_map(|r| r["format"].as_str().map(str::to_owned)).collect();
    for importer in IMPORTERS {
        assert!(fired.contains(importer.id), "{} has no fixture", importer.id);
    }
}

/// A line feed more, CRLF, a BOM, UTF-16 and NULs change nothing but the warnings.
#[test]
fn encodings_change_nothing() {
    for row in index().iter().filter(|r| r["format"].is_string() && r["plain"] != false) {
        let file = row["file"].as_str().unwrap();
        let bytes = fixture(file);
        let plain = read(&bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let utf16: Vec<u8> =
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let crlf = text.replace('\n', "\r\n").into_bytes();
        let bom = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
        let nuls = text.replace('\n', "\n\0\0\0").into_bytes();
        for bytes in [utf16, crlf, bom, nuls] {
            let other = read(&bytes).unwrap_or_else(|r| panic!("{file}: {r:?}"));
            assert_eq!(other.format, plain.format, "{file}");
            assert_eq!(format!("{:?}", other.series), format!("{:?}", plain.series), "{file}");
        }
    }
}

#[test]
fn every_shape_and_flag_has_a_text() {
    for shape in Shape::ALL {
        assert!(has(&format!("shape.{}", shape.id())), "{shape:?}");
    }
    for flag in Flag::ALL {
        assert!(has(&format!("flag.{}", flag.id())), "{flag:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        if let Ok(timeline) = read(&bytes) {
            classify(&timeline);
        }
    }

    /// Real logs, cut, with bytes changed.
    #[test]
    fn no_damaged_log_panics(
        which in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let rows = index();
        let mut bytes = fixture(rows[which.index(rows.len())]["file"].as_str().unwrap());
        bytes.truncate(cut.index(bytes.len() + 1));
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Ok(timeline) = read(&bytes) {
            prop_assert!(timeline.series.iter().all(|s| s.samples.iter().all(|p| p.used < 1 << 50)));
            classify(&timeline);
        }
    }
}
