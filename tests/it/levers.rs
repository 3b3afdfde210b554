//! What-if: every suggestion is true of the job it proposes.

use oom_ledger_core::engines::{ENGINES, engine};
use oom_ledger_core::memory::Verdict;
use oom_ledger_core::plan::levers::{Cost, Direction, LEVERS};
use oom_ledger_core::plan::{Suggestions, suggest};
use oom_ledger_core::share::{Job, Scenario, field, run};
use oom_ledger_core::text::has;
use serde_json::{Value, json};

fn advice(document: &Value) -> Suggestions {
    let resolved = Scenario::from_json(document.clone()).unwrap().resolve().unwrap();
    suggest(engine(&resolved.serve.engine).unwrap(), &resolved.inputs())
}

/// The document with the changes of a suggestion in it.
pub fn changed(document: &Value, set: &[(&'static str, Value)]) -> Scenario {
    let mut document = document.clone();
    for (path, value) in set {
        let mut at = &mut document;
        for name in path.split('.') {
            at = &mut at[name];
        }
        *at = value.clone();
    }
    // A preset beside a typed size would keep the size.
    if set.iter().any(|(path, _)| *path == "device.preset") {
        document["device"].as_object_mut().unwrap().remove("total_bytes");
    }
    Scenario::from_json(document).unwrap()
}

/// Jobs that do not fit, each for another reason.
fn overflows() -> Vec<Value> {
    vec![
        // The pool is too small for one request of the model's own length.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-3090"}}),
        // Weights alone exceed the device.
        json!({"model": {"preset": "llama-3.3-70b"}, "device": {"preset": "h100-80gb"},
               "job": {"serve": {"max_model_len": 8192}}}),
        // Starts, but the load waits.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "l4"},
               "job": {"serve": {"max_model_len": 8192, "sequences": 64, "prompt_tokens": 4096}}}),
        // A neighbour holds what the budget counts on.
        json!({"model": {"preset": "qwen2.5-7b"},
               "device": {"preset": "a100-40gb", "other_processes_bytes": 12_884_901_888_u64},
               "job": {"serve": {"max_model_len": 4096}}}),
        // Scores materialised.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
               "job": {"serve": {"engine": "transformers", "attention": "eager", "sequences": 2,
                                 "prompt_tokens": 8192}}}),
        // SGLang: weights exceed the static share, which wants a larger one.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
               "job": {"serve": {"engine": "sglang", "mem_fraction_static": 0.6, "max_model_len": 4096}}}),
        // llama.cpp: more layers than the device holds.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-3060-12gb"},
               "weights": {"quantization": "gguf:Q8_0"},
               "job": {"serve": {"engine": "llama_cpp", "max_model_len": 65_536, "gpu_layers": 99}}}),
        // TGI and TensorRT-LLM: the pool is too small for the load.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "l4"},
               "job": {"serve": {"engine": "tgi", "max_model_len": 8192, "sequences": 64,
                                 "prompt_tokens": 4096}}}),
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "l4"},
               "job": {"serve": {"engine": "tensorrt_llm", "max_model_len": 8192, "sequences": 64,
                                 "prompt_tokens": 4096}}}),
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "l4"},
               "job": {"serve": {"engine": "lmdeploy", "max_model_len": 8192, "sequences": 64,
                                 "prompt_tokens": 4096}}}),
        // Logits of every position.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
               "job": {"serve": {"engine": "transformers", "attention": "sdpa", "logits": "all",
                                 "sequences": 6, "prompt_tokens": 4096}}}),
    ]
}

#[test]
fn what_is_called_enough_is_enough() {
    for document in overflows() {
        let found = advice(&document);
        assert!(found.missing_bytes > 0, "{document}");
        assert!(found.levers.iter().any(|s| s.enough), "{document}");
        for lever in &found.levers {
            let verdict = run(&changed(&document, &lever.set)).unwrap().verdict;
            assert_eq!(verdict != Verdict::DoesNotFit, lever.enough, "{document} {lever:?}");
            assert_eq!(lever.enough, lever.margin_bytes >= 0, "{document} {lever:?}");
            assert!(lever.frees_bytes > 0);
            let left = lever.margin_bytes + found.missing_bytes;
            assert_eq!(u64::try_from(left), Ok(lever.frees_bytes), "{lever:?}");
        }
        let order: Vec<_> = found.levers.iter().map(|s| (!s.enough, s.cost)).collect();
        assert!(order.is_sorted(), "{order:?}");
        if !found.together.is_empty() {
            let set: Vec<_> = found.together.iter().flat_map(|i| found.levers[*i].set.clone()).collect();
            assert_ne!(run(&changed(&document, &set)).unwrap().verdict, Verdict::DoesNotFit, "{document}");
            assert!(found.levers.iter().all(|s| !s.enough || s.cost == Cost::Hardware), "{document}");
        }
    }
}

#[test]
fn a_numeric_lever_goes_no_further_than_needed() {
    let document = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "l4"},
        "job": {"serve": {"max_model_len": 8192, "sequences": 64, "prompt_tokens": 4096}}});
    let found = advice(&document);
    let lever = found.levers.iter().find(|s| s.id == "sequences").unwrap();
    let fits = lever.set[0].1.as_u64().unwrap();
    assert!(lever.enough && lever.direction == Direction::Lower);
    let one_more = changed(&document, &[("job.serve.sequences", json!(fits + 1))]);
    assert_eq!(run(&one_more).unwrap().verdict, Verdict::DoesNotFit);
    assert_eq!(run(&changed(&document, &lever.set)).unwrap().limits.max_sequences, Some(fits));
}

/// Start-up refusal: raise the share. Free memory too small for the share: lower it.
#[test]
fn one_option_moves_both_ways() {
    let refused = advice(&json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-3090"},
        "job": {"serve": {"max_model_len": 49_152, "engine_version": "0.10.1"}}}));
    assert!(refused.missing_bytes > 0);
    let up = refused.levers.iter().find(|s| s.option == "--gpu-memory-utilization").unwrap();
    assert_eq!(up.direction, Direction::Raise, "{up:?}");
    let neighbour = advice(&overflows()[3]);
    let down = neighbour.levers.iter().find(|s| s.option == "--gpu-memory-utilization").unwrap();
    assert_eq!(down.direction, Direction::Lower, "{down:?}");
    assert_eq!(neighbour.levers[0].id, "other_processes");
    assert_eq!(neighbour.levers[0].cost, Cost::Nothing);
}

/// Flash attention costs nothing and comes before what does.
#[test]
fn what_costs_nothing_comes_first() {
    assert_eq!(advice(&overflows()[4]).levers[0].id, "attention");
    assert_eq!(advice(overflows().last().unwrap()).levers[0].id, "logits");
}

/// A printed pool replaces the model; what a lever gains is added to it.
#[test]
fn a_measured_pool_is_carried_over() {
    let mut document = overflows()[2].clone();
    document["measured"] = json!({"kv_available_bytes": 2_147_483_648_u64});
    let found = advice(&document);
    let needed = 64 * (4096 + 256) * 131_072_i64;
    assert_eq!(found.missing_bytes, needed - 2_147_483_648);
    let fewer = found.levers.iter().find(|s| s.id == "sequences").unwrap();
    assert_eq!(fewer.set[0].1, json!(2_147_483_648_u64 / (4352 * 131_072)));
}

/// Where everything fits there is no shortage, and only what would make a tight answer safe is called enough.
#[test]
fn nothing_is_missing_where_it_fits() {
    let found = advice(&json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"},
        "job": {"serve": {"max_model_len": 8192}}}));
    assert!(found.missing_bytes < 0 && found.levers.is_empty() && found.together.is_empty());
}

#[test]
fn every_lever_has_a_field_texts_and_an_engine() {
    for lever in LEVERS {
        assert!(field(lever.field).is_some(), "{}", lever.field);
        assert!(has(&format!("lever.{}", lever.id)), "{}", lever.id);
        assert!(has(&format!("lever.{}.cost", lever.id)), "{}", lever.id);
        if let Some(name) = lever.field.strip_prefix("job.serve.") {
            let load = ["sequences", "prompt_tokens"].contains(&name);
            let taken = ENGINES.iter().any(|e| e.options().iter().any(|o| o.field == name));
            assert!(load || taken, "{}", lever.id);
        }
    }
    assert!(matches!(Scenario::from_json(overflows()[0].clone()).unwrap().job, Job::Serve(_)));
}

/// The ledger closes to what the device showed: the sum of its rows at the peak is the reading.
#[test]
fn a_reading_of_the_device_leaves_an_unexplained_row() {
    use oom_ledger_core::memory::{TermId, at_peak};
    for engine in ["vllm", "transformers"] {
        let plain = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "a100-80gb"},
            "job": {"serve": {"engine": engine, "max_model_len": 8192, "sequences": 4}}});
        let before = run(&Scenario::from_json(plain.clone()).unwrap()).unwrap();
        let mut seen = plain.clone();
        let used = before.peak_bytes + (1 << 30);
        seen["measured"] = json!({"device_used_bytes": used});
        let closed = run(&Scenario::from_json(seen.clone()).unwrap()).unwrap();
        let row = closed.terms.iter().find(|t| t.id == TermId::Unexplained).unwrap();
        assert_eq!((row.bytes, closed.peak_bytes), (1 << 30, used));
        let sum: u64 = at_peak(&closed.terms, &closed.phases).map(|t| t.bytes).sum();
        assert_eq!(sum, used, "{engine}");
        // What nobody can explain is still not free.
        let fewer = closed.limits.max_sequences < before.limits.max_sequences;
        assert_eq!(fewer, engine == "transformers", "{engine}");
        seen["measured"] = json!({"device_used_bytes": before.peak_bytes - (1 << 30)});
        let below = run(&Scenario::from_json(seen).unwrap()).unwrap();
        assert_eq!(below.peak_bytes, before.peak_bytes);
        assert!(below.warnings.iter().any(|w| w.id == "plan.used_below"), "{engine}");
    }
}

/// A share given is raised to more and lowered to less, whatever the lists of values are.
#[test]
fn a_share_moves_the_way_it_says() {
    for (engine, gpu, model, settings) in [
        (
            "vllm",
            "rtx-4090",
            "llama-3.1-8b",
            json!({"gpu_memory_utilization": 0.75, "max_model_len": 8192, "prompt_logprobs": true}),
        ),
        ("vllm", "rtx-4090", "llama-3.1-8b", json!({"gpu_memory_utilization": 0.7, "max_model_len": 65_536})),
        ("sglang", "rtx-4070-ti-super", "yi-6b", json!({"mem_fraction_static": 0.97})),
        (
            "sglang",
            "l4",
            "llama-3.1-8b",
            json!({"mem_fraction_static": 0.62, "sequences": 64, "prompt_tokens": 4096}),
        ),
        (
            "tensorrt_llm",
            "rtx-3090",
            "llama-3.1-8b",
            json!({"free_gpu_memory_fraction": 0.6, "sequences": 64, "prompt_tokens": 4096}),
        ),
    ] {
        let mut serve = settings.clone();
        serve["engine"] = json!(engine);
        let document =
            json!({"model": {"preset": model}, "device": {"preset": gpu}, "job": {"serve": serve}});
        for lever in &advice(&document).levers {
            let (path, to) = &lever.set[0];
            let now =
                settings.get(path.strip_prefix("job.serve.").unwrap_or_default()).and_then(Value::as_f64);
            if let (Some(now), Some(to)) = (now, to.as_f64()) {
                let way = if to > now { Direction::Raise } else { Direction::Lower };
                assert_eq!(lever.direction, way, "{document} {lever:?}");
                let cost = if way == Direction::Raise { Cost::Margin } else { Cost::Requests };
                assert!(!path.contains("fraction") || lever.cost == cost, "{lever:?}");
            }
        }
    }
}

/// Where an option forbids the load, the option is what is named, and no memory is said to be missing.
#[test]
fn an_option_in_the_way_is_named() {
    for settings in
        [json!({"max_num_seqs": 4, "sequences": 5}), json!({"max_model_len": 1024, "prompt_tokens": 1024})]
    {
        let document = json!({"model": {"preset": "qwen3-0.6b"}, "device": {"preset": "h100-80gb"},
            "job": {"serve": settings}});
        let found = advice(&document);
        assert!(found.option_stops && found.missing_bytes < 0, "{document}");
        let first = &found.levers[0];
        assert!(first.enough && first.direction == Direction::Raise, "{first:?}");
        assert_ne!(run(&changed(&document, &first.set)).unwrap().verdict, Verdict::DoesNotFit, "{first:?}");
        assert!(found.levers.iter().all(|s| s.enough), "{:?}", found.levers);
    }
}

/// llama.cpp's slots share the context: a shorter one must still hold every sequence. Four slots are its default.
#[test]
fn a_shared_context_still_holds_the_load() {
    let document = json!({"model": {"preset": "yi-6b"}, "device": {"preset": "t4"},
        "job": {"serve": {"engine": "llama_cpp", "max_model_len": 65_536, "sequences": 2}}});
    let found = advice(&document);
    let lever = found.levers.iter().find(|s| s.id == "max_model_len").unwrap();
    assert!(lever.enough && lever.set[0].1.as_u64() >= Some(2 * 1280), "{lever:?}");
    assert!(found.levers.iter().all(|s| s.id != "max_num_seqs" || s.set[0].1.as_u64() < Some(4)));
}

/// A figure that a change makes untrue is left out with it, so that what is called enough is enough.
#[test]
fn measured_figures_that_no_longer_hold_are_left_out() {
    let document = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
        "measured": {"cuda_graph_bytes": 10_000_000_000_u64},
        "job": {"serve": {"max_model_len": 16_384}}});
    let found = advice(&document);
    let device = found.levers.iter().find(|s| s.id == "device").unwrap();
    assert!(device.set.contains(&("measured.cuda_graph_bytes", Value::Null)), "{device:?}");
    for lever in found.levers.iter().filter(|s| s.enough) {
        assert_ne!(run(&changed(&document, &lever.set)).unwrap().verdict, Verdict::DoesNotFit, "{lever:?}");
    }
}

/// Blocks that are given are the pool: verdict and margin agree on them.
#[test]
fn given_blocks_are_the_pool_for_advice_too() {
    let document = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"},
        "job": {"serve": {"num_gpu_blocks_override": 1000, "max_model_len": 8192}}});
    assert_ne!(run(&Scenario::from_json(document.clone()).unwrap()).unwrap().verdict, Verdict::DoesNotFit);
    assert!(advice(&document).missing_bytes <= 0);
}

/// Tight at the high end of the device: what makes it safe is measured there, not in a pool that has room.
#[test]
fn a_tight_answer_is_made_safe_where_it_is_tight() {
    let document = json!({"model": {"preset": "llama-3.1-70b"}, "device": {"preset": "rtx-4090"},
        "weights": {"quantization": "gguf:Q4_K_M"},
        "job": {"serve": {"engine": "llama_cpp", "max_model_len": 8192, "gpu_layers": 40}}});
    assert_eq!(run(&Scenario::from_json(document.clone()).unwrap()).unwrap().verdict, Verdict::Tight);
    let found = advice(&document);
    let layers = found.levers.iter().find(|s| s.id == "gpu_layers").unwrap();
    assert!(layers.enough && layers.set[0].1 == json!(39), "{layers:?}");
    for lever in found.levers.iter().filter(|s| s.enough) {
        assert_eq!(run(&changed(&document, &lever.set)).unwrap().verdict, Verdict::Fits, "{lever:?}");
    }
    assert!(found.levers.iter().all(|s| s.id != "prompt_tokens"));
}
