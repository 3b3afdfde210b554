//! Checkpoints brought to the page: only headers are read, and the weights are the file's.

#[path = "../../it/checkpoint_bytes.rs"]
#[allow(dead_code, reason = "the tests of the core write more kinds of values")]
mod bytes;

use bytes::{Gguf, V, safetensors};
use oom_ledger_e2e::{Page, Result, View, with_page};
use serde_json::{Value, json};

const HIDDEN: u64 = 512;
const VOCAB: u64 = 32_000;
const LAYERS: u64 = 4;

/// Rows and columns of a layer's matrices under both names.
const MATRICES: &[(&str, &str, u64, u64)] = &[
    ("self_attn.q_proj", "attn_q", 512, 512),
    ("self_attn.k_proj", "attn_k", 256, 512),
    ("self_attn.v_proj", "attn_v", 256, 512),
    ("self_attn.o_proj", "attn_output", 512, 512),
    ("mlp.gate_proj", "ffn_gate", 2048, 512),
    ("mlp.up_proj", "ffn_up", 2048, 512),
    ("mlp.down_proj", "ffn_down", 512, 2048),
];

/// Drops files on the zone: names, first bytes, and as many zeros behind them as the files are long.
async fn drop(page: &Page, files: &[(&str, Vec<u8>, u64)]) -> Result {
    let list: Vec<Value> = files
        .iter()
        .map(|(name, header, length)| {
            json!({"name": name, "header": header, "rest": length.saturating_sub(header.len() as u64)})
        })
        .collect();
    let script = format!(
        r#"
        const data = new DataTransfer();
        for (const file of {}) {{
            const parts = [new Uint8Array(file.header)];
            const chunk = new Uint8Array(1 << 20);
            for (let left = file.rest; left > 0; left -= chunk.length) {{
                parts.push(left < chunk.length ? chunk.subarray(0, left) : chunk);
            }}
            data.items.add(new File(parts, file.name));
        }}
        const zone = document.querySelector("[data-testid=config-drop]");
        zone.closest("details").open = true;
        zone.dispatchEvent(new DragEvent("drop", {{ bubbles: true, cancelable: true, dataTransfer: data }}));"#,
        Value::from(list)
    );
    page.js(&script).await.map(|_| ())
}

#[tokio::test]
async fn a_dropped_gguf_gives_model_and_weights() -> Result {
    with_page("gguf", View::DESK, async |page| {
        let mut gguf = Gguf::new(3)
            .with("general.architecture", V::Text("llama"))
            .with("general.file_type", V::U32(7))
            .with("llama.block_count", V::U32(LAYERS as u32))
            .with("llama.context_length", V::U32(4096))
            .with("llama.embedding_length", V::U32(HIDDEN as u32))
            .with("llama.feed_forward_length", V::U32(2048))
            .with("llama.attention.head_count", V::U32(8))
            .with("llama.attention.head_count_kv", V::U32(4))
            .with("tokenizer.ggml.tokens", V::Words(VOCAB))
            .tensor("token_embd.weight", 8, &[HIDDEN, VOCAB], HIDDEN / 32 * 34 * VOCAB)
            .tensor("output_norm.weight", 0, &[HIDDEN], HIDDEN * 4);
        for i in 0..LAYERS {
            for (_, name, rows, cols) in MATRICES {
                gguf =
                    gguf.tensor(&format!("blk.{i}.{name}.weight"), 8, &[*cols, *rows], rows * cols / 32 * 34);
            }
            for norm in ["attn_norm", "ffn_norm"] {
                gguf = gguf.tensor(&format!("blk.{i}.{norm}.weight"), 0, &[HIDDEN], HIDDEN * 4);
            }
        }
        let (header, length) = gguf.bytes();
        let first = page.text("verdict").await?;
        drop(page, &[("m-Q8_0.gguf", header, length)]).await?;
        page.changed("verdict", &first).await?;
        let used = page.text("weights-file").await?;
        assert!(used.contains("Q8_0") && used.contains("38 tensors"), "{used}");
        // 34,138,112 bytes of the tensors, and the rotary tables of 4,096 positions.
        let weights = page.text("ledger-row-weights").await?;
        assert!(weights.contains("33.1 MiB"), "{weights}");
        // The address carries it: the same answer without the file.
        let verdict = page.text("verdict").await?;
        let address = page.js("return location.hash").await?;
        page.open(address.as_str().unwrap_or_default()).await?;
        page.ready().await?;
        assert_eq!(page.text("verdict").await?, verdict);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn safetensors_larger_than_any_config_come_with_their_config() -> Result {
    with_page("safetensors", View::DESK, async |page| {
        let mut rows = vec![("model.embed_tokens.weight".to_owned(), vec![VOCAB, HIDDEN])];
        rows.push(("lm_head.weight".to_owned(), vec![VOCAB, HIDDEN]));
        rows.push(("model.norm.weight".to_owned(), vec![HIDDEN]));
        for i in 0..LAYERS {
            for (name, _, out, input) in MATRICES {
                rows.push((format!("model.layers.{i}.{name}.weight"), vec![*out, *input]));
            }
            for norm in ["input_layernorm", "post_attention_layernorm"] {
                rows.push((format!("model.layers.{i}.{norm}.weight"), vec![HIDDEN]));
            }
        }
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, shape)| (name.as_str(), "F16", shape.clone(), shape.iter().product::<u64>() * 2))
            .collect();
        let (header, length) = safetensors(&rows);
        assert!(length > 64 << 20);
        let config = json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
            "intermediate_size": 2048, "num_hidden_layers": LAYERS, "num_attention_heads": 8,
            "num_key_value_heads": 4, "vocab_size": VOCAB, "max_position_embeddings": 4096});
        let file = ("model.safetensors", header, length);
        drop(page, std::slice::from_ref(&file)).await?;
        page.until("the missing config named", async || page.has("error-summary").await).await?;
        let said = page.text("error-summary").await?;
        assert!(said.contains("config.json") && said.contains("MiB"), "{said}");
        let first = page.text("verdict").await?;
        let config = config.to_string().into_bytes();
        let size = config.len() as u64;
        drop(page, &[("config.json", config, size), file]).await?;
        page.changed("verdict", &first).await?;
        assert!(page.text("weights-file").await?.contains("39 tensors"));
        Ok(())
    })
    .await
}
