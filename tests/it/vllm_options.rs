//! vLLM's options that move bytes: adapters, offload, draft models, given pools, sleep; and what every stage holds.

use oom_ledger_core::plan::Estimate;
use oom_ledger_core::share::{Scenario, run};
use oom_ledger_core::units::Problem;
use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

fn asked(preset: &str, serve: Value, more: Value) -> Result<Estimate, Problem> {
    let mut all = json!({
        "schema": 1, "model": {"preset": preset}, "device": {"preset": "h100-80gb"},
        "job": {"serve": {"engine": "vllm", "engine_version": "0.11.0", "max_model_len": 8192}}
    });
    let merge = |into: &mut Value, from: Value| {
        for (key, value) in from.as_object().unwrap().clone() {
            into[key] = value;
        }
    };
    merge(&mut all["job"]["serve"], serve);
    merge(&mut all, more);
    run(&Scenario::from_json(all).unwrap())
}

fn plain(preset: &str, serve: Value) -> Estimate {
    asked(preset, serve, json!({})).unwrap()
}

fn bytes(e: &Estimate, id: &str) -> u64 {
    e.terms.iter().find(|t| t.id.id() == id).map_or(0, |t| t.bytes)
}

fn says(e: &Estimate, id: &str) -> bool {
    e.warnings.iter().any(|w| w.id == id)
}

/// Two start-ups with adapters of a known rank: what they print beyond the model lies in the range.
#[test]
fn adapter_slots_as_printed() {
    // 0.8.1, rank 64: 6.2472 GiB of which 6,459,578,368 are the model. 0.11.2, rank 32, fp8: 1.4721 and 1,517,883,392.
    for (preset, version, rank, printed) in [
        ("llama-3.2-3b", "0.8.1 (V0)", 64, 6.2472 * GIB as f64 - 6_459_578_368.0),
        ("llama-3.2-1b", "0.11.2", 32, 1.4721 * GIB as f64 - 1_517_883_392.0),
    ] {
        let e = plain(preset, json!({"engine_version": version, "max_lora_rank": rank}));
        let term = e.terms.iter().find(|t| t.id.id() == "adapter").unwrap();
        assert!(term.low as f64 <= printed && printed <= term.high as f64, "{term:?} for {printed}");
        assert!((term.bytes as f64 / printed - 1.0).abs() < 0.09, "{} for {printed}", term.bytes);
    }
}

#[test]
fn adapters_take_from_the_pool_and_grow_with_rank_and_number() {
    let none = plain("qwen3-8b", json!({}));
    let one = plain("qwen3-8b", json!({"max_loras": 1}));
    let four = plain("qwen3-8b", json!({"max_loras": 4, "max_lora_rank": 64}));
    assert_eq!(bytes(&none, "adapter"), 0);
    // q, k, v, o; gate, up, down of 36 layers at rank 16.
    let edges = (4096 * 3 + 4096 + 2048) + (4096 + 4096) + (2 * 4096 + 2 * 12_288) + (12_288 + 4096);
    assert_eq!(bytes(&one, "adapter"), 16 * 2 * 36 * edges);
    assert_eq!(bytes(&four, "adapter"), 16 * bytes(&one, "adapter"));
    let pool = |e: &Estimate| e.kv.as_ref().unwrap().blocks * e.kv.as_ref().unwrap().block_bytes;
    let block = one.kv.as_ref().unwrap().block_bytes;
    assert!(pool(&none).abs_diff(pool(&four) + bytes(&four, "adapter")) <= block);
    let problem = asked("qwen3-8b", json!({"max_lora_rank": 48}), json!({})).unwrap_err();
    assert_eq!(problem.field, "job.serve.max_lora_rank");
    // Two ranks halve what is split, and what follows a head stays whole.
    let two = asked(
        "qwen3-8b",
        json!({"max_loras": 1}),
        json!({"parallel": {"tensor": 2}, "device": {"preset": "h100-80gb", "count": 2}}),
    );
    let two = bytes(&two.unwrap(), "adapter");
    assert!(two < bytes(&one, "adapter") && two > bytes(&one, "adapter") / 2);
}

#[test]
fn offloaded_weights_leave_the_device_for_the_host() {
    let all = plain("llama-3.1-8b", json!({}));
    let some = plain("llama-3.1-8b", json!({"cpu_offload_bytes": 4 * GIB}));
    assert_eq!(bytes(&all, "weights") - bytes(&some, "weights"), 4 * GIB);
    assert_eq!(some.host.iter().find(|t| t.id.id() == "weights").unwrap().bytes, 4 * GIB);
    // Embedding and head stay, however much is asked for.
    let most = plain("llama-3.1-8b", json!({"cpu_offload_bytes": 400 * GIB}));
    assert_eq!(bytes(&most, "weights"), 2 * 128_256 * 4096 * 2);
}

#[test]
fn given_pools_are_taken_as_given() {
    let set = plain("llama-3.1-8b", json!({"kv_cache_memory_bytes": 10 * GIB}));
    assert_eq!(set.kv.as_ref().unwrap().blocks, 10 * GIB / (16 * 131_072));
    assert!(says(&set, "vllm.pool_given"));
    // Nothing but the device limits it.
    let over = plain("llama-3.1-8b", json!({"kv_cache_memory_bytes": 70 * GIB}));
    assert_eq!(over.verdict.id(), "does_not_fit");
    let blocks = plain("llama-3.1-8b", json!({"num_gpu_blocks_override": 777}));
    assert_eq!(blocks.kv.as_ref().unwrap().blocks, 777);
    // The suggestion is what the profile leaves, less graphs and 150 MiB: a start with it holds no more than the budget.
    let free = plain("llama-3.1-8b", json!({}));
    assert!(says(&free, "vllm.kv_memory_suggestion") && !says(&set, "vllm.kv_memory_suggestion"));
}

#[test]
fn captured_batches_decide_graphs() {
    let graphs = |serve| bytes(&plain("llama-3.1-8b", serve), "cuda_graphs");
    let (all, few) = (graphs(json!({})), graphs(json!({"max_cudagraph_capture_size": 8})));
    assert!(few > 0 && few < all / 10, "{few} of {all}");
    assert_eq!(graphs(json!({"enforce_eager": true})), 0);
    assert_eq!(graphs(json!({"max_cudagraph_capture_size": 0})), 0);
}

#[test]
fn draft_models_bring_weights_and_cache() {
    let draft = json!({"draft_model": {"preset": "llama-3.2-1b"}});
    let alone = plain("llama-3.1-8b", json!({}));
    let both = asked("llama-3.1-8b", json!({"num_speculative_tokens": 5}), draft).unwrap();
    assert!(bytes(&both, "draft_model") > 2 * 1_235_000_000);
    let block = |e: &Estimate| e.kv.as_ref().unwrap().block_bytes;
    assert_eq!(block(&both), block(&alone) + 16 * 16 * 2 * 8 * 64 * 2);
    assert!(!says(&both, "vllm.draft_not_modelled"));
}

#[test]
fn sleep_pictures_and_prompt_logprobs_are_told() {
    let one = plain("llama-3.1-8b", json!({"sleep_level": 1}));
    assert!(says(&one, "vllm.asleep_1") && one.host.iter().any(|t| t.bytes == bytes(&one, "weights")));
    let two = plain("llama-3.1-8b", json!({"sleep_level": 2}));
    assert!(says(&two, "vllm.asleep_2") && two.host.is_empty());
    let prompt = plain("llama-3.1-8b", json!({"prompt_logprobs": true}));
    assert!(says(&prompt, "vllm.prompt_logprobs"));
    // 8192 tokens, 128,256 entries in 16 and 32 bits; no profile run made room for them.
    let logits = prompt.terms.iter().find(|t| t.id.id() == "logits").unwrap();
    assert_eq!(logits.high, 8192 * 128_256 * 6);
    assert!(prompt.peak_high > plain("llama-3.1-8b", json!({})).peak_high);
    let new = plain("llama-3.1-8b", json!({"max_logprobs": 20, "max_num_seqs": 32}));
    assert_eq!(bytes(&new, "logits"), 32 * 128_256 * 4);
    let text_only = plain("gemma-3-12b", json!({"images_per_prompt": 0}));
    assert_eq!(bytes(&text_only, "encoder"), 0);
    assert!(bytes(&plain("gemma-3-12b", json!({})), "encoder") > 0);
}

/// DeepSeek-V3's draft layer has 11.5 billion parameters without embedding and head (its card: 14 billion with them).
#[test]
fn own_draft_layers_are_like_the_last() {
    let devices = json!({"parallel": {"tensor": 8}, "device": {"preset": "h200-141gb", "count": 8},
        "weights": {"dtype": "bf16", "quantization": "fp8"}});
    let speculative = json!({"num_speculative_tokens": 1});
    let e = asked("deepseek-v3", speculative.clone(), devices).unwrap();
    let term = e.terms.iter().find(|t| t.id.id() == "draft_model").unwrap();
    // Every rank holds the projection of state and embedding whole, in 16 bits.
    let layer = (term.bytes - 2 * 7168 * 7168 * 2) as f64;
    assert!((0.98..1.04).contains(&(layer / (11.5e9 / 8.0))), "{term:?}");
    assert!(says(&e, "vllm.own_draft"));
    // A model without such layers gets no row and is told so.
    let none = plain("llama-3.1-8b", speculative);
    assert!(bytes(&none, "draft_model") == 0 && says(&none, "vllm.draft_not_modelled"));
}

/// Llama 4 leaves its encoder out, Gemma 3 keeps it.
#[test]
fn text_only_models_drop_their_encoder() {
    let devices = json!({"parallel": {"tensor": 8}, "device": {"preset": "h200-141gb", "count": 8}});
    let of = |preset, serve| bytes(&asked(preset, serve, devices.clone()).unwrap(), "weights");
    let none = json!({"images_per_prompt": 0});
    assert!(of("llama-4-scout", none.clone()) < of("llama-4-scout", json!({})));
    assert_eq!(of("gemma-3-12b", none.clone()), of("gemma-3-12b", json!({})));
}

/// The model's own maximum is a limit, unless the config stretches it or a log proves that it was lifted.
#[test]
fn lengths_beyond_the_model_are_refused() {
    let long = json!({"max_model_len": 65_536});
    let refused = plain("qwen2.5-7b", long.clone());
    assert_eq!(refused.refusal.as_ref().unwrap().id, "vllm.refusal.longer_than_model");
    assert_eq!(refused.verdict.id(), "does_not_fit");
    let yarn = json!({"model": {"preset": "qwen2.5-7b", "overrides": {"rope_scaling":
        {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}}});
    assert!(asked("qwen2.5-7b", long.clone(), yarn).unwrap().refusal.is_none());
    let ran = json!({"measured": {"kv_available_bytes": 40 * GIB}});
    assert!(asked("qwen2.5-7b", long, ran).unwrap().refusal.is_none());
}

/// 27 layers over two stages: 13 on the last, which also holds the head.
#[test]
fn every_stage_is_listed() {
    let devices = json!({"parallel": {"tensor": 2, "pipeline": 2}, "device": {"preset": "l4", "count": 4}});
    let e = asked("deepseek-v2-lite", json!({}), devices).unwrap();
    assert_eq!(
        e.ranks.iter().map(|r| (r.first, r.count, r.stage)).collect::<Vec<_>>(),
        [(0, 2, 0), (2, 2, 1)]
    );
    assert_eq!(e.ranks.iter().map(|r| r.weights_bytes).max(), Some(bytes(&e, "weights")));
    let pool = bytes(&e, "kv_cache");
    assert_eq!(e.ranks.iter().map(|r| r.kv_bytes).collect::<Vec<_>>(), [pool, pool / 14 * 13]);
    assert_eq!(e.ranks.iter().filter(|r| r.fullest).count(), 1);
    assert!(e.ranks.iter().all(|r| r.peak_bytes <= e.peak_bytes));
    assert!(plain("llama-3.1-8b", json!({})).ranks.is_empty());
}
