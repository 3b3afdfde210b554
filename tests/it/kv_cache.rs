//! KV cache and recurrent state: every shipped model against what transformers' cache objects hold, formats,
//! tensor parallelism.

use oom_ledger_core::memory::kv_cache::{
    DS_MLA_ROW, KV_DTYPES, bytes_per_token, cross_attention_bytes, heads_per_rank, kv_dtype, tokens_kept,
};
use oom_ledger_core::memory::recurrent::{StateLayout, state_bytes};
use oom_ledger_core::model::{AttentionKind, DType, KvDType, preset};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Oracle {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    model: String,
    bytes_per_token_per_attn_layer: Option<u64>,
    bytes_per_token_within_window: u64,
    bytes_per_token_beyond_window: u64,
    sliding_cap_bytes: u64,
    linear_state_bytes_per_layer: Option<u64>,
}

fn bf16() -> KvDType {
    kv_dtype("auto", DType::Bf16).unwrap()
}

#[test]
fn every_model_equals_the_caches_of_transformers() {
    let oracle: Oracle =
        serde_json::from_str(include_str!("../fixtures/kv/transformers-caches.json")).unwrap();
    assert!(oracle.rows.len() >= 20);
    for row in oracle.rows {
        let model = preset(&row.model).unwrap_or_else(|| panic!("{}", row.model)).model().unwrap();
        let (mut within, mut beyond, mut cap) = (0, 0, 0);
        for layer in &model.layers {
            let kind = layer.attention.kind;
            let mut bytes = bytes_per_token(&kind, bf16(), 1).unwrap();
            if let (AttentionKind::Full { heads, kv_heads, .. }, "falcon-40b") = (kind, row.model.as_str()) {
                // FalconAttention of the "new decoder architecture" repeats K and V to every query head before
                // it caches them; engines that page their cache keep the heads of the config.
                bytes *= heads / kv_heads;
            }
            if let (true, Some(each)) = (bytes > 0, row.bytes_per_token_per_attn_layer) {
                assert_eq!(bytes, each, "{}", row.model);
            }
            within += bytes;
            let far = tokens_kept(&kind, 1 << 40);
            if far == 1 << 40 {
                beyond += bytes;
            } else {
                cap += bytes * far;
            }
            if let (AttentionKind::Recurrent(state), Some(each)) = (kind, row.linear_state_bytes_per_layer) {
                let of_state = state.state_dtype.unwrap_or(DType::Bf16).bytes();
                let layout = StateLayout::transformers(state.conv_kernel, 2, of_state);
                assert_eq!(state_bytes(&state, layout, 1).unwrap(), each, "{}", row.model);
            }
        }
        assert_eq!(within, row.bytes_per_token_within_window, "{}", row.model);
        assert_eq!(beyond, row.bytes_per_token_beyond_window, "{}", row.model);
        assert_eq!(cap, row.sliding_cap_bytes, "{}", row.model);
    }
}

#[test]
fn formats_cost_what_their_blocks_cost() {
    let kind = AttentionKind::Full { heads: 32, kv_heads: 8, head_dim: 128, v_head_dim: 128 };
    let of = |id: &str| bytes_per_token(&kind, kv_dtype(id, DType::Bf16).unwrap(), 1).unwrap();
    assert_eq!(of("fp32"), 8192);
    assert_eq!(of("FP8_E5M2"), 2048);
    assert_eq!(of("q8_0"), 2 * 8 * 4 * 34);
    assert_eq!(of("q4_0"), 2 * 8 * 4 * 18);
    assert_eq!(of("nvfp4"), 2 * 8 * 8 * 9);
    // A row that does not fill its last block still occupies it: 80 elements are three blocks of 32.
    let odd = AttentionKind::Full { heads: 1, kv_heads: 1, head_dim: 80, v_head_dim: 80 };
    assert_eq!(bytes_per_token(&odd, kv_dtype("q8_0", DType::Bf16).unwrap(), 1).unwrap(), 2 * 3 * 34);
    let unknown = kv_dtype("int3", DType::Bf16).unwrap_err();
    assert_eq!(unknown.field, "job.serve.kv_cache_dtype");
    assert!(unknown.message.args.iter().any(|(_, v)| v.to_string().contains("fp8_e4m3")));
}

#[test]
fn mixed_head_dims_latents_and_cross_attention() {
    // K 192 and V 128 per head (MiMo-V2-Flash).
    let mixed = AttentionKind::Full { heads: 64, kv_heads: 4, head_dim: 192, v_head_dim: 128 };
    assert_eq!(bytes_per_token(&mixed, bf16(), 4).unwrap(), (192 + 128) * 2);
    let deepseek = preset("deepseek-v3").unwrap().model().unwrap();
    let mla = deepseek.layers[0].attention.kind;
    for tensor in [1, 2, 8, 16] {
        assert_eq!(bytes_per_token(&mla, bf16(), tensor).unwrap(), 1152);
    }
    let sparse = kv_dtype("fp8_ds_mla", DType::Bf16).unwrap();
    assert_eq!(bytes_per_token(&mla, sparse, 8).unwrap(), DS_MLA_ROW);
    assert_eq!(DS_MLA_ROW, 656);
    let whisper = preset("whisper-large-v3").unwrap().model().unwrap();
    let kind = whisper.layers[0].attention.kind;
    let bytes = cross_attention_bytes(&kind, bf16(), 1, 1500).unwrap();
    assert_eq!(bytes, 1500 * bytes_per_token(&kind, bf16(), 1).unwrap());
}

#[test]
fn published_per_rank_figures() {
    let per_token = |id: &str, dtype: &str, tensor| -> u64 {
        let model = preset(id).unwrap().model().unwrap();
        let dtype = kv_dtype(dtype, DType::Bf16).unwrap();
        model.layers.iter().map(|l| bytes_per_token(&l.attention.kind, dtype, tensor).unwrap()).sum()
    };
    // Four KV heads on eight ranks are replicated (vLLM 0.10.0, Qwen3-235B).
    assert_eq!(per_token("qwen3-235b-a22b", "fp8", 8), 24_064);
    assert_eq!(per_token("qwen3-235b-a22b", "auto", 8), 48_128);
    assert_eq!(per_token("kimi-k2", "auto", 8), 70_272);
    assert_eq!(per_token("qwen2.5-7b", "auto", 2), 28_672);
    assert_eq!(per_token("llama-3.1-8b", "auto", 1), 131_072);
}

proptest! {
    #[test]
    fn ranks_together_never_hold_less_than_all_heads(kv in 1u64..256, tensor in 1u64..65) {
        let each = heads_per_rank(kv, tensor);
        prop_assert!(each >= 1 && each * tensor >= kv);
    }

    #[test]
    fn absurd_sizes_are_an_error_not_a_wrap(kv in 1u64.., dim in 1u64..) {
        let kind = AttentionKind::Full { heads: kv, kv_heads: kv, head_dim: dim, v_head_dim: dim };
        for dtype in KV_DTYPES {
            if let Ok(bytes) = bytes_per_token(&kind, *dtype, 1) {
                prop_assert!(u128::from(bytes) * 3 >= u128::from(kv) * u128::from(dim));
            }
        }
    }
}
