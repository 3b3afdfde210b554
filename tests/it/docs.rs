//! Public functions of `memory/` say how they compute, how accurate they are, where it comes from, and show it.

use std::path::{Path, PathBuf};

/// Headings that the documentation of a formula carries.
const HEADINGS: [&str; 4] = ["Formula", "Accuracy", "Source", "Example"];

/// Shared types and their plumbing: no formulas.
const TYPES: [&str; 2] = ["ledger.rs", "parallel.rs"];

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Headings of a documentation comment: `Formula: …`, `Formula, Source: …` or `# Formula`.
fn headings(doc: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for line in doc {
        let line = line.trim();
        let head = match (line.strip_prefix('#'), line.split_once(':')) {
            (Some(title), _) => title.trim_start_matches('#'),
            (None, Some((head, _))) => head,
            (None, None) => continue,
        };
        found.extend(head.split(',').map(|h| h.trim().to_owned()));
    }
    found
}

/// Name and missing headings of every public function of a source text.
fn incomplete(source: &str) -> (usize, Vec<(String, Vec<&'static str>)>) {
    let (mut doc, mut functions, mut faults) = (Vec::new(), 0, Vec::new());
    for line in source.lines() {
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text);
        } else if let Some(rest) = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub const fn "))
        {
            functions += 1;
            let found = headings(&doc);
            let missing: Vec<_> = HEADINGS.into_iter().filter(|h| !found.iter().any(|f| f == h)).collect();
            let name = rest.split(['(', '<']).next().unwrap_or(rest).to_owned();
            if !missing.is_empty() {
                faults.push((name.clone(), missing));
            }
            if !doc.iter().any(|l| l.trim().starts_with("```")) {
                faults.push((name, vec!["a doctest"]));
            }
            doc.clear();
        } else if !line.starts_with("#[") {
            doc.clear();
        }
    }
    (functions, faults)
}

#[test]
fn every_public_function_of_memory_is_documented_as_a_formula() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("memory"), &mut files);
    let (mut functions, mut faults) = (0, Vec::new());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if TYPES.contains(&name.as_str()) {
            continue;
        }
        let (n, found) = incomplete(&std::fs::read_to_string(&file).unwrap());
        functions += n;
        faults.extend(found.into_iter().map(|f| (name.clone(), f)));
    }
    assert!(functions > 10, "{functions}");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_check_sees_what_is_missing() {
    let good = "/// Bytes.\n/// Formula: a.\n/// Accuracy, Source: b.\n/// Example:\n/// ```\n/// ```\npub fn f(x: u64) {}";
    assert_eq!(incomplete(good), (1, Vec::new()));
    let bad = "/// Bytes.\n/// Formula: a.\n\npub fn g<T>() {}";
    let (n, faults) = incomplete(bad);
    assert_eq!((n, faults.len()), (1, 2));
    assert_eq!(faults[0].0, "g");
}
