//! A module of the core uses only modules of a lower layer.

use std::path::Path;

/// Layer numbers; a module may use another only if its number is higher. `share` and `plot` sit above the
/// rest of design.md's layer 4, since a report quotes texts and plans.
const LAYERS: &[(&str, u32)] = &[
    ("units", 0),
    ("model", 10),
    ("hardware", 10),
    ("memory", 20),
    ("engines", 30),
    ("evidence", 30),
    ("trace", 30),
    ("plan", 40),
    ("text", 40),
    ("plot", 41),
    ("share", 42),
];

fn rust_files(dir: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn every_module_has_a_layer_and_uses_only_lower_ones() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(core).unwrap().map(Result::unwrap) {
        if !entry.path().is_dir() {
            continue;
        }
        let module = entry.file_name().into_string().unwrap();
        let Some((_, own)) = LAYERS.iter().find(|(m, _)| *m == module) else {
            faults.push(format!("{module} has no layer"));
            continue;
        };
        let mut files = Vec::new();
        rust_files(&entry.path(), &mut files);
        for file in files {
            let source = std::fs::read_to_string(&file).unwrap();
            for (other, level) in LAYERS {
                if *other != module && level >= own && source.contains(&format!("crate::{other}")) {
                    faults.push(format!("{} uses {other}", file.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
