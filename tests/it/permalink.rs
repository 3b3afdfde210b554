//! Permalinks: there and back, cut, damaged, newer.

use oom_ledger_core::engines::ServeSettings;
use oom_ledger_core::model::{DType, PRESETS, Quantization};
use oom_ledger_core::share::{DeviceRef, Job, ModelRef, Scenario};
use oom_ledger_core::text::{Lang, message};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::json;

fn plain() -> Scenario {
    Scenario::new(
        ModelRef { preset: Some("llama-3.1-8b".into()), ..ModelRef::default() },
        DeviceRef { preset: Some("h100-80gb".into()), ..DeviceRef::default() },
    )
}

/// Scenarios that a person could type, absurd ones included: the page keeps those too.
fn scenarios() -> impl Strategy<Value = Scenario> {
    let model = (of("[a-z0-9.-]{1,20}"), of("\\PC{0,40}"), of(any::<f64>()), any::<u64>());
    let device = (of("[a-z0-9-]{0,12}"), of(any::<u64>()), any::<u64>(), of(any::<u64>()));
    let serve = (
        ("\\PC{0,12}", of("\\PC{0,20}"), of(0.0..2.0f64), of(any::<f64>())),
        (of(any::<u64>()), of(any::<u64>()), any::<bool>(), any::<bool>(), any::<u64>(), any::<u64>()),
    );
    let rest = (1..9u64, 1..9u64, 0..3usize, 0..10usize, of(any::<u64>()));
    (model, device, serve, rest).prop_map(|(m, d, (s, t), r)| {
        let mut scenario = plain();
        scenario.model.preset = m.0;
        scenario.model.config = m.1.map(|text| json!({"z": text, "a": [m.3, {"y": 1, "b": null}]}));
        scenario.model.overrides =
            m.2.filter(|x| x.is_finite()).map(|x| [("rope".to_owned(), json!(x))].into_iter().collect());
        scenario.device = DeviceRef { preset: d.0, total_bytes: d.1, count: d.2, other_processes_bytes: d.3 };
        (scenario.parallel.tensor, scenario.parallel.context) = (r.0, r.1);
        scenario.weights.dtype = [DType::Fp32, DType::Fp16, DType::Bf16][r.2];
        scenario.weights.quantization = match r.3 {
            8 => Some(Quantization::Gguf("Q4_K_M".into())),
            9 => None,
            i => Some(Quantization::NAMED[i].1.clone()),
        };
        scenario.measured.kv_available_bytes = r.4;
        scenario.job = Job::Serve(ServeSettings {
            engine: s.0,
            engine_version: s.1,
            gpu_memory_utilization: s.2,
            mem_fraction_static: s.3.filter(|x| x.is_finite()),
            max_model_len: t.0,
            block_size: t.1,
            enforce_eager: t.2,
            prefix_caching: t.3,
            sequences: t.4,
            new_tokens: t.5,
            ..ServeSettings::default()
        });
        scenario
    })
}

proptest! {
    #[test]
    fn there_and_back(scenario in scenarios()) {
        let link = scenario.permalink().unwrap();
        prop_assert!(link.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)));
        prop_assert_eq!(Scenario::from_permalink(&link), Ok(scenario.clone()));
        // The short document is the same Scenario too.
        prop_assert_eq!(Scenario::from_json(scenario.to_short_json()), Ok(scenario));
    }

    #[test]
    fn a_cut_link_is_recognised(scenario in scenarios(), at in 0.0..1.0f64) {
        let link = scenario.permalink().unwrap();
        let cut = &link[..(link.len() as f64 * at) as usize];
        let problem = Scenario::from_permalink(cut).unwrap_err();
        let expected = if cut.is_empty() { "permalink.not_one" } else { "permalink.cut" };
        prop_assert_eq!(problem.message.id, expected, "{}", cut);
    }

    #[test]
    fn a_damaged_link_never_gives_another_scenario(
        scenario in scenarios(), at in any::<prop::sample::Index>(), letter in "[A-Za-z0-9_-]",
    ) {
        let link = scenario.permalink().unwrap();
        let at = 2 + at.index(link.len() - 2);
        let damaged = format!("{}{letter}{}", &link[..at], &link[at + 1..]);
        if let Ok(read) = Scenario::from_permalink(&damaged) {
            prop_assert_eq!(read, scenario);
        }
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,60}", packed in "1\\.[A-Za-z0-9_-]{0,60}") {
        prop_assert!(Scenario::from_permalink(&text).is_err());
        let _ = Scenario::from_permalink(&packed);
    }
}

#[test]
fn defaults_are_left_out() {
    let short = plain().to_short_json();
    assert_eq!(
        short,
        json!({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"}})
    );
    assert!(plain().permalink().unwrap().len() < 130, "{}", plain().permalink().unwrap());
}

#[test]
fn equal_scenarios_have_equal_links() {
    let one = |text: &str| {
        let config = serde_json::from_str(text).unwrap();
        let mut scenario = plain();
        scenario.model = ModelRef { config: Some(config), ..ModelRef::default() };
        scenario.permalink().unwrap()
    };
    assert_eq!(one(r#"{"a": {"c": 1, "d": 2}, "b": 3}"#), one(r#"{"b": 3, "a": {"d": 2, "c": 1}}"#));
}

/// Links that are out in the world must keep their meaning: this text never changes.
#[test]
fn a_link_of_version_1_still_reads() {
    let link = "1.eNqrVipOzkjNTVSyMtRRys1PSc1RsqpWKihKLU4tUbJSyslJzE3UNdYz1LVIUqrVUUpJLctMTkVRkmFoYKBrYZAOlK8FANbVGGw";
    assert_eq!(Scenario::from_permalink(link), Ok(plain()));
    assert_eq!(Scenario::from_permalink(&format!(" #{link}).\n")), Ok(plain()));
}

#[test]
fn other_links_are_explained() {
    let id = |link: &str| {
        let problem = Scenario::from_permalink(link).unwrap_err();
        for lang in [Lang::En, Lang::Zh] {
            assert!(!message(lang, &problem.message).contains('{'));
        }
        problem.message.id
    };
    assert_eq!(id("2.AAAA"), "permalink.newer");
    assert_eq!(id("99.é"), "permalink.newer");
    assert_eq!(id("section-2"), "permalink.not_one");
    assert_eq!(id(""), "permalink.not_one");
    assert_eq!(id("1.****"), "permalink.damaged");
    assert_eq!(id("1.日本語"), "permalink.damaged");
}

#[test]
fn every_preset_config_fits_into_a_link_and_a_huge_one_is_refused() {
    let mut longest = 0;
    for preset in PRESETS {
        let mut scenario = plain();
        let config = preset.document().unwrap()["config"].clone();
        scenario.model = ModelRef { config: Some(config), ..ModelRef::default() };
        let link = scenario.permalink().unwrap();
        longest = longest.max(link.len());
        assert_eq!(Scenario::from_permalink(&link), Ok(scenario), "{}", preset.id);
    }
    assert!(longest < 3000, "{longest}");
    let mut scenario = plain();
    let noise: Vec<u64> = (1..40_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20).collect();
    scenario.model = ModelRef { config: Some(json!({"noise": noise})), ..ModelRef::default() };
    assert_eq!(scenario.permalink().unwrap_err().message.id, "permalink.too_long");
    // Large, though it would pack into a short link: nobody could unpack it.
    scenario.model = ModelRef { config: Some(json!({"spaces": " ".repeat(5 << 20)})), ..ModelRef::default() };
    assert_eq!(scenario.permalink().unwrap_err().message.id, "permalink.too_large");
}
