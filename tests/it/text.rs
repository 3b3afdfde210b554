//! The texts: complete, equal in both languages, and all there for every key that the source uses.

use oom_ledger_core::memory::{PhaseId, Provenance, Residency, TermId, Verdict};
use oom_ledger_core::text::{Lang, TABLES, has, message};
use oom_ledger_core::units::{Bytes, Message};
use std::collections::BTreeSet;
use std::path::Path;

fn rows() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The `{placeholders}` of a template.
fn placeholders(template: &str) -> BTreeSet<&str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|piece| Some(&piece[..piece.find('}')?]))
        .filter(|n| {
            !n.is_empty() && n.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
        })
        .collect()
}

#[test]
fn keys_are_unique() {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = rows().map(|row| row.0).filter(|key| !seen.insert(*key)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn nothing_is_empty_and_placeholders_agree() {
    for (key, en, zh) in rows() {
        assert!(!key.trim().is_empty() && !en.trim().is_empty() && !zh.trim().is_empty(), "{key}");
        assert_eq!(placeholders(en), placeholders(zh), "{key}");
        assert_eq!(*en, en.trim(), "{key}");
        assert_eq!(*zh, zh.trim(), "{key}");
    }
}

/// Words of design.md 7: memory is counted in GiB and MiB.
#[test]
fn no_text_uses_a_decimal_unit() {
    for (key, en, zh) in rows() {
        for text in [en, zh] {
            let decimal = [" KB", " MB", " GB", "VRAM size"].iter().any(|unit| text.contains(unit));
            assert!(!decimal, "{key}: {text}");
        }
    }
}

#[test]
fn every_id_has_a_text() {
    let ids =
        |prefix: &str, all: Vec<&str>| all.into_iter().map(|id| format!("{prefix}.{id}")).collect::<Vec<_>>();
    let all = [
        ids("term", TermId::ALL.iter().map(|id| id.id()).collect()),
        ids("phase", PhaseId::ALL.iter().map(|id| id.id()).collect()),
        ids("residency", Residency::ALL.iter().map(|id| id.id()).collect()),
        ids("verdict", Verdict::ALL.iter().map(|id| id.id()).collect()),
        ids("provenance", Provenance::ALL.iter().map(|id| id.id()).collect()),
    ];
    let missing: Vec<_> = all.iter().flatten().filter(|key| !has(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every string literal in the core's source that looks like a key of one of the tables is one.
#[test]
fn every_key_in_the_source_has_a_text() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let prefixes: BTreeSet<&str> = rows().filter_map(|row| row.0.split_once('.')).map(|(p, _)| p).collect();
    let mut files = Vec::new();
    sources(core, &mut files);
    assert!(files.len() > 30);
    let (mut missing, mut found) = (BTreeSet::new(), 0);
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        // Tests inside of a source file may name keys that must not exist.
        let source = source.split("#[cfg(test)]").next().unwrap();
        for piece in source.split("Message::new(").skip(1) {
            let Some(id) = piece.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
            else {
                continue;
            };
            found += 1;
            if !has(id) {
                missing.insert(format!("{id} in {}", file.display()));
            }
        }
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        for literal in code.flat_map(|line| line.split('"').skip(1).step_by(2)) {
            // `model.config` and the like are paths of fields, not keys.
            let field = oom_ledger_core::share::field(literal).is_some();
            let key = literal.split_once('.').is_some_and(|(prefix, rest)| {
                prefixes.contains(prefix)
                    && !rest.is_empty()
                    && rest.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            });
            let tensor = literal.ends_with("weight") || literal.ends_with("bias");
            if key && !field && !tensor && !has(literal) {
                missing.insert(format!("{literal} in {}", file.display()));
            }
        }
    }
    assert!(found > 20);
    assert!(missing.is_empty(), "{missing:#?}");
}

fn sources(dir: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn a_message_is_filled_in_by_name() {
    let m = Message::new("report.limit_stopped")
        .with("name", "{value}")
        .with("value", 8192_u64)
        .with("term", "term.kv_cache");
    assert_eq!(message(Lang::En, &m), "{value}: 8,192 (stopped by KV cache)");
    assert_eq!(message(Lang::Zh, &m), "{value}：8,192（受限于KV 缓存）");
    // A missing argument and a missing key are shown as they are, never a panic.
    assert_eq!(
        message(Lang::En, &Message::new("report.limit_stopped")),
        "{name}: {value} (stopped by {term})"
    );
    assert_eq!(message(Lang::En, &Message::new("no.such_key").with("a", Bytes(1))), "no.such_key");
}
