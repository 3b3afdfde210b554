//! The real logs of `OOM_LEDGER_SHARED`, where that names a folder; skipped elsewhere.

use oom_ledger_core::trace::{Shape, classify, read};
use std::path::PathBuf;

/// The shapes that fit a careful reader's words.
fn fits(words: &str, shape: Shape) -> bool {
    let words = words.to_lowercase();
    let has = |word: &str| words.contains(word);
    let any: &[Shape] = if has("leak") || has("growth") {
        &[Shape::Growth]
    } else if has("too few") || has("single") {
        &[Shape::Insufficient]
    } else if has("pre-reserved") || has("(pool, near full)") || has("near full") || has("near-full") {
        &[Shape::Pool]
    } else if words.starts_with("staircase load") {
        &[Shape::Staircase, Shape::RampPlateau]
    } else if words.starts_with("staircase") {
        &[Shape::Staircase]
    } else if has("sawtooth") {
        &[Shape::Sawtooth]
    } else if has("on/off") || has("restarts") || has("reloaded") {
        &[Shape::OnOff]
    } else if has("bursts") || has("two short loads") {
        &[Shape::Bursts]
    } else if has("spike") {
        &[Shape::Spike]
    } else if has("ramp") || has("step then") || has("step up") || has("idle, plateau") || has("short load") {
        &[Shape::RampPlateau]
    } else if has("idle") {
        &[Shape::Idle]
    } else {
        &[Shape::Flat]
    };
    any.contains(&shape)
}

fn format_fits(family: &str, format: Option<&str>) -> bool {
    let accepted: &[&str] = match family {
        f if f.starts_with("query-gpu") => &["nvidia-smi-query-csv", "gpu-csv"],
        "wrapper csv" => &["gpu-csv", "gpu-rows", "gpu-text", "nvidia-smi-query-csv"],
        "torch text" => &["torch-text", "gpu-text"],
        "table loop" => &["nvidia-smi-table"],
        "dmon" => &["nvidia-smi-dmon"],
        "pmon" => &["nvidia-smi-pmon"],
        "query-compute-apps" => &["nvidia-smi-compute-apps"],
        _ => &[],
    };
    format.map_or(accepted.is_empty(), |format| accepted.contains(&format))
}

#[test]
fn real_logs_are_read_as_a_careful_reader_does() {
    let Some(root) = std::env::var_os("OOM_LEDGER_SHARED").map(PathBuf::from) else {
        println!("skipped: OOM_LEDGER_SHARED is not set");
        return;
    };
    let folder = root.join("groundtruth/smi");
    let (mut formats, mut files, mut shapes, mut curves) = (0, 0, 0, 0);
    for line in std::fs::read_to_string(folder.join("index.jsonl")).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let file = row["file"].as_str().unwrap();
        let answer = read(&std::fs::read(folder.join(file)).unwrap());
        let format = match &answer {
            Ok(timeline) => Some(timeline.format),
            Err(refusal) => refusal.format,
        };
        files += 1;
        let right = format_fits(row["family"].as_str().unwrap(), format)
            && answer.is_ok() == row["has_memory_series"].as_bool().unwrap();
        formats += usize::from(right);
        if !right {
            println!("{file}: {} read as {format:?}", row["family"]);
        }
        let Ok(timeline) = answer else { continue };
        let verdicts = classify(&timeline);
        let wanted = row["memory_curve"].as_array().unwrap();
        for (i, (series, verdict)) in timeline.series.iter().zip(&verdicts).enumerate() {
            // Labels name cards as the index does; ranges ("1-3", "rows 2-4") stand for several.
            let name = series.name.clone().unwrap_or_default();
            let label = |w: &&serde_json::Value| {
                let gpu = w["gpu"].as_str().unwrap();
                gpu == series.gpu
                    || gpu.strip_suffix(" of tick") == Some(&series.gpu)
                    || gpu.split("name ").nth(1).is_some_and(|n| name.starts_with(n.trim_end_matches(')')))
            };
            let want = wanted.iter().find(label).or(wanted.get(i)).or(wanted.last()).unwrap();
            let words = want["shape"].as_str().unwrap();
            curves += 1;
            let fit = fits(words, verdict.shape);
            shapes += usize::from(fit);
            if !fit {
                println!("{file} {}: {words}: called {:?} {:?}", series.gpu, verdict.shape, verdict.flags);
            }
        }
    }
    println!("formats {formats} of {files}, shapes {shapes} of {curves}");
    assert!(formats * 100 >= files * 95 && shapes * 100 >= curves * 95);
}
