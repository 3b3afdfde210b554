//! The device table: every row is complete, plausible and says where its figure comes from.

use oom_ledger_core::hardware::{GPUS, Vendor, gpu};
use std::collections::BTreeSet;

#[test]
fn ids_are_unique_and_kebab_case() {
    let ids: BTreeSet<_> = GPUS.iter().map(|g| g.id).collect();
    let names: BTreeSet<_> = GPUS.iter().map(|g| g.name).collect();
    assert_eq!(ids.len(), GPUS.len());
    assert_eq!(names.len(), GPUS.len());
    for id in ids {
        let parts: Vec<_> = id.split('-').collect();
        let lower =
            |p: &&str| !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        assert!(parts.iter().all(lower), "{id}");
        assert_eq!(gpu(id).map(|g| g.id), Some(id));
    }
    assert_eq!(gpu("H100"), None);
}

#[test]
fn there_are_enough_devices_of_every_kind() {
    assert!(GPUS.len() >= 45);
    assert!(GPUS.iter().filter(|g| g.vendor == Vendor::Amd).count() >= 6);
    assert!(GPUS.iter().filter(|g| g.unified).count() >= 3);
    assert!(GPUS.iter().filter(|g| g.name.contains("MIG")).count() >= 6);
    // Most totals were read from a log or message rather than derived.
    assert!(GPUS.iter().filter(|g| g.reported).count() * 3 >= GPUS.len() * 2);
}

#[test]
fn totals_are_plausible() {
    for g in GPUS {
        let smi = g.smi_total_mib << 20;
        // A process is never offered more than the tool shows; driver and ECC keep back at most 5 %.
        assert!(g.total_bytes <= smi, "{}", g.id);
        assert!(g.total_bytes * 20 >= smi * 19, "{}", g.id);
        // The size in the id, where there is one, is the nominal one: in 10^9 or 2^30 bytes, less what ECC,
        // the driver or the host (unified memory) keeps.
        let nominal = g.id.split('-').rev().find_map(|p| p.strip_suffix("gb")?.parse::<u64>().ok());
        if let Some(gb) = nominal {
            assert!(g.total_bytes < gb << 30, "{}", g.id);
            assert!(g.total_bytes > gb * 900_000_000, "{}", g.id);
        }
        match g.vendor {
            Vendor::Nvidia => assert!((60..=130).contains(&g.arch), "{}", g.id),
            Vendor::Amd => assert!([942, 950, 9010].contains(&g.arch), "{}", g.id),
        }
    }
}

#[test]
fn every_row_names_its_source() {
    for g in GPUS {
        assert!(g.source.len() > 20, "{}", g.id);
        // A derived figure says by which rule; a reported one quotes what was printed.
        let derived = g.source.starts_with("derived") || g.source.contains("profile says");
        assert!(g.reported || derived, "{}", g.id);
        assert!(!g.reported || g.source.chars().any(|c| c.is_ascii_digit()), "{}", g.id);
        assert!(!(g.reported && g.source.starts_with("derived")), "{}", g.id);
    }
}

/// Totals that logs print, which the table must reproduce to the decimals printed.
#[test]
fn totals_agree_with_start_up_logs() {
    for (id, gib) in [
        ("h100-80gb", 79.18),
        ("a100-40gb", 39.56),
        ("t4", 14.74),
        ("l4", 22.16),
        ("rtx-4090", 23.63),
        ("rtx-3090", 23.58),
        ("rtx-a6000", 47.54),
        ("v100-16gb", 15.77),
        ("b200", 178.36),
        ("gb10-128gb", 121.63),
    ] {
        let total = gpu(id).unwrap().total_bytes as f64 / f64::from(1 << 30);
        assert!((total - gib).abs() < 0.03, "{id} {total} {gib}");
    }
}
