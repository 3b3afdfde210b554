//! What other calculators get wrong, kept right here. Each case names the figure that a calculator gave when it was
//! run, and the figure of vLLM's own planner (version 0.33, `vllm.v1.core.kv_cache_planning`) for the same request.

use oom_ledger_core::plan::Estimate;
use oom_ledger_core::share::{Scenario, run};
use serde_json::{Value, json};

const GIB: f64 = (1u64 << 30) as f64;
const POOL: u64 = 64 << 30;

/// The answer for a pool of 64 GiB. With one batch in flight, `batch` is what the planner calls tokens in flight.
fn answer(model: &Value, tensor: u64, len: u64, batch: u64, kv: &str) -> Estimate {
    let scenario = json!({
        "schema": 1, "model": model, "device": {"total_bytes": 206_158_430_208_u64, "count": tensor},
        "parallel": {"tensor": tensor},
        "job": {"serve": {"engine": "vllm", "engine_version": "0.24.0", "max_model_len": len, "block_size": 16,
            "max_num_batched_tokens": batch, "max_num_seqs": 256, "kv_cache_dtype": kv, "prefix_caching": false}},
        "measured": {"kv_available_bytes": POOL}
    });
    run(&Scenario::from_json(scenario).unwrap()).unwrap()
}

/// GiB of the pool that one request of the longest length takes.
fn per_request(id: &str, len: u64, batch: u64) -> f64 {
    let kv = answer(&json!({"preset": id}), 1, len, batch, "auto").kv.unwrap();
    (kv.blocks * kv.block_bytes) as f64 / kv.max_concurrency / GIB
}

fn assert_near(got: f64, right: f64, what: &str) {
    assert!((got / right - 1.0).abs() < 0.002, "{what}: {got} for {right}");
}

/// hf-mem 0.5.6: 53.4 GiB, keys and values of all heads; a latent row of 576 elements is cached.
#[test]
fn latents_of_deepseek_v3() {
    assert_near(per_request("deepseek-v3", 32_768, 8192), 2.1445, "DeepSeek-V3");
    // No degree of tensor parallelism divides the row.
    let kv = answer(&json!({"preset": "deepseek-v3"}), 8, 32_768, 8192, "auto").kv.unwrap();
    assert_near(kv.bytes_per_token, f64::from(61 * 576 * 2), "DeepSeek-V3 over 8 ranks");
}

/// hf-mem 0.5.6: 0.375 and 6.00 GiB (every layer full); its snapshot of 2026-06: 0.190 and 3.00 (window alone,
/// without the tokens in flight).
#[test]
fn windows_of_gpt_oss() {
    for (len, batch, right) in [(8192, 8192, 0.3754), (131_072, 8192, 3.191), (131_072, 16_384, 3.379)] {
        assert_near(per_request("gpt-oss-20b", len, batch), right, &format!("gpt-oss-20b {len} {batch}"));
    }
}

/// hf-mem 0.5.6: 48.0 GiB at 131,072 tokens; its snapshot of 2026-06: 8.31, whatever the batch.
#[test]
fn windows_of_gemma_3() {
    for (len, batch, right) in
        [(131_072, 8192, 10.817), (131_072, 2048, 8.942), (32_768, 8192, 4.817), (32_768, 2048, 2.942)]
    {
        assert_near(per_request("gemma-3-12b", len, batch), right, &format!("gemma-3-12b {len} {batch}"));
    }
}

/// hf-mem 0.5.6: 24.0 GiB for 262,144 tokens, all 48 layers; 12 of them cache keys and values (6 GiB), the others a
/// state of constant size.
#[test]
fn states_of_qwen3_next() {
    let got = per_request("qwen3-next-80b-a3b", 262_144, 8192);
    assert!((6.0..6.15).contains(&got), "{got}");
    let half = per_request("qwen3-next-80b-a3b", 131_072, 8192);
    assert!((got - half - 3.0).abs() < 0.02, "{got} less {half}");
}

/// Calculators that divide by the ranks give half for 16; a head is the least that a rank can hold. Grok-2: 64
/// layers, 8 KV heads of 128; SGLang prints 5.92 GB of keys for the tokens that this gives.
#[test]
fn heads_are_copied_beyond_their_number() {
    let grok = json!({"config": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192,
        "intermediate_size": 32_768, "num_hidden_layers": 64, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131_072, "max_position_embeddings": 131_072
    }});
    let of = |tensor| answer(&grok, tensor, 8192, 8192, "auto");
    let (eight, sixteen) = (of(8), of(16));
    let bytes = |e: &Estimate| e.kv.as_ref().unwrap().bytes_per_token;
    assert_near(bytes(&eight), f64::from(64 * 2 * 128 * 2), "8 ranks");
    assert_near(bytes(&sixteen), bytes(&eight), "16 ranks");
    let says = |e: &Estimate| e.warnings.iter().any(|w| w.id == "vllm.kv_replicated");
    assert!(says(&sixteen) && !says(&eight));
}

/// Division by 8 ranks gives 24,064 bytes in 16 bits; there are 4 heads, so each rank holds one: 48,128.
#[test]
fn qwen3_235b_over_eight_ranks() {
    let bytes =
        |kv| answer(&json!({"preset": "qwen3-235b-a22b"}), 8, 32_768, 8192, kv).kv.unwrap().bytes_per_token;
    assert_near(bytes("auto"), 48_128.0, "16 bits");
    assert_near(bytes("fp8"), 24_064.0, "8 bits");
}

/// EleutherAI's calculator: 2.00 GiB (no K and V, no groups); gpu_poor: 8.00 (no groups).
#[test]
fn groups_of_llama_3() {
    assert_near(per_request("llama-3-8b", 8192, 8192), 1.0, "8192 tokens");
    // One more token is one more block.
    assert_near(per_request("llama-3-8b", 8193, 8192), 513.0 / 512.0, "8193 tokens");
}
