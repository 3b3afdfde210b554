//! `--model` with a checkpoint: sparse files of true length, of which only the header is there.

#[path = "../it/checkpoint_bytes.rs"]
#[allow(dead_code, reason = "the tests of the core write more kinds of values")]
mod bytes;

use super::{err, folder, out, result, run};
use bytes::{Gguf, V, safetensors};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A file with that beginning and that length; the rest is a hole.
fn sparse(path: &Path, (header, length): &(Vec<u8>, u64)) {
    let mut file = File::create(path).unwrap();
    file.write_all(header).unwrap();
    file.set_len(*length).unwrap();
}

const HIDDEN: u64 = 4096;
const LAYERS: u64 = 32;

fn config() -> Value {
    json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
        "intermediate_size": 14336, "num_hidden_layers": LAYERS, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128_256, "max_position_embeddings": 8192, "torch_dtype": "float16"})
}

/// Name, rows and columns of the matrices of a layer: as safetensors and as GGUF call them.
const MATRICES: &[(&str, &str, u64, u64)] = &[
    ("self_attn.q_proj", "attn_q", HIDDEN, HIDDEN),
    ("self_attn.k_proj", "attn_k", 1024, HIDDEN),
    ("self_attn.v_proj", "attn_v", 1024, HIDDEN),
    ("self_attn.o_proj", "attn_output", HIDDEN, HIDDEN),
    ("mlp.gate_proj", "ffn_gate", 14336, HIDDEN),
    ("mlp.up_proj", "ffn_up", 14336, HIDDEN),
    ("mlp.down_proj", "ffn_down", HIDDEN, 14336),
];

/// The tensors of layers `from` to `to`, and with the last those outside; `F16`, 16 GB in all.
fn tensors(from: u64, to: u64) -> Vec<(String, Vec<u64>)> {
    let mut all = Vec::new();
    for i in from..to {
        for (name, _, rows, cols) in MATRICES {
            all.push((format!("model.layers.{i}.{name}.weight"), vec![*rows, *cols]));
        }
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            all.push((format!("model.layers.{i}.{norm}.weight"), vec![HIDDEN]));
        }
    }
    if to == LAYERS {
        all.push(("model.norm.weight".into(), vec![HIDDEN]));
        all.push(("model.embed_tokens.weight".into(), vec![128_256, HIDDEN]));
        all.push(("lm_head.weight".into(), vec![128_256, HIDDEN]));
    }
    all
}

fn written(from: u64, to: u64) -> (Vec<u8>, u64) {
    let all = tensors(from, to);
    let rows: Vec<_> = all
        .iter()
        .map(|(name, shape)| (name.as_str(), "F16", shape.clone(), shape.iter().product::<u64>() * 2))
        .collect();
    safetensors(&rows)
}

const BYTES: u64 = 2 * 8_030_261_248;

fn estimate(model: &Path, more: &[&str]) -> std::process::Output {
    let model = model.to_str().unwrap();
    run(&[
        &["estimate", "--model", model, "--gpu", "80GiB", "--engine", "transformers", "--format", "json"],
        more,
    ]
    .concat())
}

fn weights(output: &std::process::Output) -> Value {
    let result = result(output);
    result["terms"].as_array().unwrap().iter().find(|t| t["id"] == "weights").unwrap().clone()
}

#[test]
fn a_file_of_16_gb_is_answered_from_its_header() {
    let folder = folder("checkpoint-one");
    let file = folder.join("model.safetensors");
    sparse(&file, &written(0, LAYERS));
    let alone = estimate(&file, &[]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(err(&alone).contains("14.96 GiB") && err(&alone).contains("config.json"), "{}", err(&alone));
    std::fs::write(folder.join("config.json"), config().to_string()).unwrap();
    let began = Instant::now();
    let by_file = estimate(&file, &[]);
    // A debug build on a busy machine; reading the file would take many times as long.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let term = weights(&by_file);
    assert_eq!((term["bytes"].as_u64(), &term["provenance"]), (Some(BYTES), &json!("exact")));
    assert_eq!(weights(&estimate(&folder, &[])), term);
    // Another dtype is asked for than the file has: converted while loading.
    assert_eq!(weights(&estimate(&folder, &["--dtype", "fp32"]))["bytes"].as_u64(), Some(2 * BYTES));
    // The document that a permalink carries gives the same answer without the file.
    let link = estimate(&folder, &["--permalink"]);
    let fragment = out(&link).trim().to_owned();
    assert!(fragment.len() < 1200, "{}", fragment.len());
    let again = run(&["estimate", "--link", &fragment, "--format", "json"]);
    assert_eq!(result(&again), result(&by_file));
}

#[test]
fn shards_are_found_beside_one_another_and_missing_ones_are_named() {
    let folder = folder("checkpoint-shards");
    let name = |n: u64| format!("model-0000{n}-of-00002.safetensors");
    sparse(&folder.join(name(1)), &written(0, 20));
    std::fs::write(folder.join("config.json"), config().to_string()).unwrap();
    let output = estimate(&folder.join(name(1)), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains(&name(2)), "{}", err(&output));
    let map: serde_json::Map<String, Value> = (0..LAYERS)
        .flat_map(|i| tensors(i, i + 1).into_iter().map(move |(t, _)| (t, json!(name(1 + i / 20)))))
        .collect();
    let index = json!({"metadata": {"total_size": BYTES}, "weight_map": map});
    let index_path = folder.join("model.safetensors.index.json");
    std::fs::write(&index_path, index.to_string()).unwrap();
    // One of two shards: the index still knows the total.
    let part = result(&estimate(&index_path, &[]));
    let total = part["terms"].as_array().unwrap().iter().find(|t| t["id"] == "weights").unwrap();
    assert_eq!(total["bytes"].as_u64(), Some(BYTES));
    sparse(&folder.join(name(2)), &written(20, LAYERS));
    for path in [folder.join(name(1)), folder.join(name(2)), index_path, folder.clone()] {
        let term = weights(&estimate(&path, &[]));
        assert_eq!(term["bytes"].as_u64(), Some(BYTES), "{}", path.display());
        assert!(term["working"]["parts"].as_array().unwrap().len() > 8, "{}", path.display());
    }
}

fn gguf(arch: &str) -> Gguf {
    let key = |name: &str| format!("{arch}.{name}");
    let mut gguf = Gguf::new(3)
        .with("general.architecture", V::Text(arch))
        .with("general.file_type", V::U32(7))
        .with(&key("block_count"), V::U32(LAYERS as u32))
        .with(&key("context_length"), V::U32(8192))
        .with(&key("embedding_length"), V::U32(HIDDEN as u32))
        .with(&key("feed_forward_length"), V::U32(14336))
        .with(&key("attention.head_count"), V::U32(32))
        .with(&key("attention.head_count_kv"), V::U32(8))
        .with("tokenizer.ggml.tokens", V::Words(128_256))
        .tensor("token_embd.weight", 8, &[HIDDEN, 128_256], HIDDEN / 32 * 34 * 128_256)
        .tensor("output_norm.weight", 0, &[HIDDEN], HIDDEN * 4);
    for i in 0..LAYERS {
        for (_, name, rows, cols) in MATRICES {
            let name = format!("blk.{i}.{name}.weight");
            gguf = gguf.tensor(&name, 8, &[*cols, *rows], rows * cols / 32 * 34);
        }
        for norm in ["attn_norm", "ffn_norm"] {
            gguf = gguf.tensor(&format!("blk.{i}.{norm}.weight"), 0, &[HIDDEN], HIDDEN * 4);
        }
    }
    gguf
}

#[test]
fn a_gguf_file_brings_its_own_config() {
    let folder = folder("checkpoint-gguf");
    let path = folder.join("m.gguf");
    let written = gguf("llama");
    sparse(&path, &written.bytes());
    let answer = result(&estimate(&path, &[]));
    // No output.weight: the embedding is the head as well.
    assert_eq!(answer["parameters"].as_u64(), Some(BYTES / 2 - 128_256 * HIDDEN));
    let term = weights(&estimate(&path, &[]));
    assert_eq!(term["bytes"].as_u64(), Some(written.end));
    let scenario = estimate(&path, &["--permalink"]);
    assert!(out(&scenario).len() < 1200, "{}", out(&scenario).len());
    sparse(&path, &gguf("strange").bytes());
    let strange = estimate(&path, &[]);
    assert_eq!(strange.status.code(), Some(2));
    assert!(err(&strange).contains("strange") && err(&strange).contains("GiB"), "{}", err(&strange));
    // The metadata of one architecture over the tensors of another.
    sparse(&path, &gguf("falcon").bytes());
    assert_eq!(estimate(&path, &[]).status.code(), Some(2));
    std::fs::write(folder.join("config.json"), config().to_string()).unwrap();
    assert_eq!(estimate(&path, &[]).status.code(), Some(0));
    sparse(&folder.join("n.gguf"), &gguf("llama").bytes());
    assert!(err(&estimate(&folder, &[])).contains("n.gguf"));
}

#[test]
fn what_is_no_checkpoint_is_refused_with_its_name() {
    let folder = folder("checkpoint-none");
    for (name, content) in
        [("a.gguf", &b"GGUF"[..]), ("b.safetensors", b"{}"), ("c.bin", b"PK\x03\x04aaaa"), ("d", b"")]
    {
        std::fs::write(folder.join(name), content).unwrap();
        let output = estimate(&folder.join(name), &[]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(err(&output).contains(name), "{}", err(&output));
    }
}
