//! llama.cpp: against its own allocator, and against what it printed.

use crate::checkpoint_bytes::{Gguf, V};
use crate::scenario_of;
use oom_ledger_core::engines::{Inputs, ServeSettings, engine};
use oom_ledger_core::memory::{Ledger, TermId, Verdict, WeightsSpec};
use oom_ledger_core::model::checkpoint::{Header, Summary, read_header};
use oom_ledger_core::share::Resolved;
use serde_json::{Value, json};

const ORACLE: &str = include_str!("../fixtures/llama_cpp/oracle.json");
const LOGS: &str = include_str!("../fixtures/llama_cpp/logs.json");

fn resolved(scenario: &Value) -> Resolved {
    scenario_of(&scenario.to_string()).resolve().unwrap_or_else(|p| panic!("{p:?} in {scenario}"))
}

fn ledger(resolved: &Resolved) -> Ledger {
    let inputs = resolved.inputs();
    engine(&resolved.serve.engine).unwrap().ledger(&inputs).unwrap()
}

fn bytes(ledger: &Ledger, id: TermId) -> u64 {
    ledger.term(id).map_or(0, |t| t.bytes)
}

/// The engine's own allocator, run without memory on the shapes of a file, says what it would take on a CUDA
/// device and on the host. Caches are reproduced to the byte, compute buffers of nine jobs in ten too and the rest within
/// 0.01 % (padding of copied matrices); weights to two parts in a million:
/// tables of rotary factors and biases of routers are in the file, but no parameters of the model.
#[test]
fn buffers_of_its_own_allocator() {
    let fixture: Value = serde_json::from_str(ORACLE).unwrap();
    let rows = fixture["rows"].as_array().unwrap();
    assert!(rows.len() >= 240, "{}", rows.len());
    let mut exact = 0;
    for row in rows {
        let scenario = json!({
            "model": {"preset": row["model"]},
            "device": {"total_bytes": 1_u64 << 40, "count": row["devices"]},
            "weights": {"quantization": row["quantization"]},
            "job": {"serve": row["serve"]},
        });
        let resolved = resolved(&scenario);
        let found = ledger(&resolved);
        let name = format!("{} {}", row["model"], row["serve"]);
        let device = |key: &str, at: usize| row[key][at].as_u64().unwrap();
        let top = found.ranks.iter().position(|r| r.fullest).unwrap_or(0);
        let host = row["compute"].as_array().unwrap().len() - 1;
        let (compute, want) = (bytes(&found, TermId::Activations), device("compute", top));
        assert!(compute.abs_diff(want) <= want / 10_000, "{name}: compute {compute}, not {want}");
        exact += usize::from(compute == want);
        let on_host = |id| found.host.iter().find(|t| t.id == id).map_or(0, |t| t.bytes);
        assert_eq!(on_host(TermId::Activations), device("compute", host), "{name}: compute of the host");
        let caches = bytes(&found, TermId::KvCache) + bytes(&found, TermId::RecurrentState);
        assert_eq!(caches, device("kv", top), "{name}: cache");
        assert_eq!(
            on_host(TermId::KvCache) + on_host(TermId::RecurrentState),
            device("kv", host),
            "{name}: cache of the host"
        );
        let (weights, want) = (bytes(&found, TermId::Weights), device("weights", top));
        assert!(weights.abs_diff(want) <= 1024 + want / 500_000, "{name}: weights {weights}, not {want}");
        let (weights, want) = (on_host(TermId::Weights), device("weights", host));
        assert!(
            weights.abs_diff(want) <= 1024 + want / 500_000,
            "{name}: weights of the host {weights}, not {want}"
        );
        for rank in &found.ranks {
            let at = rank.first as usize;
            assert_eq!(rank.kv_bytes, device("kv", at), "{name}: cache of device {at}");
            let want = device("weights", at);
            assert!(
                rank.weights_bytes.abs_diff(want) <= 1024 + want / 500_000,
                "{name}: weights of device {at}"
            );
        }
    }
    assert!(exact * 10 >= rows.len() * 9, "only {exact} of {} to the byte", rows.len());
}

/// What servers on CUDA and SYCL devices printed, to the last digit printed.
#[test]
fn buffers_that_logs_print() {
    let fixture: Value = serde_json::from_str(LOGS).unwrap();
    let mut figures = 0;
    for row in fixture["rows"].as_array().unwrap() {
        let scenario = json!({
            "model": {"preset": row["model"]},
            "device": {"total_bytes": 1_u64 << 40, "count": row["devices"].as_u64().unwrap_or(1)},
            "weights": {"quantization": row["quantization"]},
            "job": {"serve": row["serve"]},
        });
        let resolved = resolved(&scenario);
        let found = ledger(&resolved);
        let mut printed = |figure: &str, want: &Value, bytes: u64| {
            let Some(want) = want.as_f64() else { return };
            figures += 1;
            let mib = bytes as f64 / 1_048_576.0;
            assert!((mib - want).abs() <= 0.0101, "{} {figure}: {mib:.3}, printed {want}", row["source"]);
        };
        let on_host = |id| found.host.iter().find(|t| t.id == id).map_or(0, |t| t.bytes);
        printed("weights", &row["weights"][0], bytes(&found, TermId::Weights));
        printed("compute", &row["compute"][0], bytes(&found, TermId::Activations));
        printed("weights of the host", &row["host_weights"], on_host(TermId::Weights));
        printed("cache of the host", &row["host_kv"], on_host(TermId::KvCache));
        printed("compute of the host", &row["host_compute"], on_host(TermId::Activations));
        match found.ranks.as_slice() {
            [] => printed("cache", &row["kv"][0], bytes(&found, TermId::KvCache)),
            ranks => {
                for (at, rank) in ranks.iter().enumerate() {
                    printed("cache", &row["kv"][at], rank.kv_bytes);
                }
            }
        }
    }
    assert!(figures >= 30, "{figures}");
}

/// A ledger adds up, stays in its ranges, and its surface says the same at every point.
#[test]
fn the_surface_agrees_with_the_ledger() {
    let jobs = [
        json!({"max_model_len": 8192}),
        json!({"max_model_len": 8192, "max_num_seqs": 4, "attention": "eager"}),
        json!({"max_num_seqs": 2, "kv_unified": true}),
        json!({}),
        json!({"engine_version": "b4000", "max_model_len": 4096, "kv_cache_dtype": "q8_0"}),
        json!({"max_model_len": 16384, "gpu_layers": 20}),
    ];
    for model in ["llama-3.1-8b", "gemma-3-12b", "gpt-oss-20b", "deepseek-v2-lite"] {
        for job in &jobs {
            let mut serve = json!({"engine": "llama_cpp"});
            serve.as_object_mut().unwrap().extend(job.as_object().unwrap().clone());
            let scenario = json!({"model": {"preset": model}, "device": {"preset": "rtx-4090"},
                "weights": {"quantization": "gguf:Q4_K_M"}, "job": {"serve": serve}});
            let resolved = resolved(&scenario);
            let inputs = resolved.inputs();
            let own = engine("llama_cpp").unwrap();
            let surface = own.surface(&inputs).unwrap();
            for (sequences, prompt, new) in
                [(1, 100, 1), (1, 4000, 90), (2, 4000, 96), (4, 8000, 192), (5, 10, 1)]
            {
                let settings = ServeSettings {
                    sequences,
                    prompt_tokens: prompt,
                    new_tokens: new,
                    ..resolved.serve.clone()
                };
                let asked = Inputs { serve: &settings, ..inputs };
                let found = own.ledger(&asked).unwrap();
                let figures = own.figures(&asked).unwrap();
                assert_eq!((found.peak_bytes, found.verdict), (figures.peak_bytes, figures.verdict));
                let point = surface.at(sequences, prompt, new);
                let name = format!("{model} {job} {sequences} of {prompt} + {new}");
                assert_eq!(point.fits, found.verdict != Verdict::DoesNotFit, "{name}");
                assert_eq!(point.peak_bytes, found.peak_bytes, "{name}");
                for term in &found.terms {
                    assert!(term.low <= term.bytes && term.bytes <= term.high, "{name}: {:?}", term.id);
                    let parts: u64 = term.working.parts.iter().map(|p| p.bytes).sum();
                    assert!(term.working.parts.is_empty() || parts == term.bytes, "{name}: {:?}", term.id);
                    assert_eq!(term.working.result, term.bytes, "{name}: {:?}", term.id);
                }
            }
        }
    }
}

/// The figures of Ollama's log line `offload to cuda`, to the decimal printed.
#[test]
fn estimates_that_ollama_prints() {
    // Model, quantisation, settings, devices; kv, graph full, graph partial in MiB, and the step of the last digit.
    let gib = 102.4;
    let rows = [
        // ollama/ollama#7255: on Metal the graphs are equal, so only the full one holds here.
        (
            "llama-3.1-70b",
            json!({"engine_version": "0.3.13", "max_model_len": 2048, "max_num_seqs": 1}),
            1,
            [640.0, 324.0, 0.0],
            0.1,
        ),
        // ollama/ollama#8922
        (
            "llama-3.1-70b",
            json!({"engine_version": "0.5.7", "max_model_len": 2048, "max_num_seqs": 4}),
            3,
            [2560.0, 1126.4, 0.0],
            gib,
        ),
        // ollama/ollama#10823; its tokenizer lists 64 entries fewer than the embedding has rows.
        (
            "gemma-3-27b",
            json!({"engine_version": "0.7.0", "max_model_len": 4096, "max_num_seqs": 1}),
            1,
            [944.0, 522.5, 0.0],
            0.3,
        ),
        (
            "gemma-3-27b",
            json!({"engine_version": "0.7.0", "max_model_len": 4096, "max_num_seqs": 1}),
            1,
            [0.0, 0.0, 1638.4],
            gib,
        ),
        // A run of gemma3:12b with two parallel requests, 8192 tokens in all.
        (
            "gemma-3-12b",
            json!({"engine_version": "0.9.0", "max_model_len": 4096, "max_num_seqs": 2}),
            1,
            [1331.2, 0.0, 0.0],
            gib,
        ),
    ];
    for (model, mut serve, devices, want, step) in rows {
        serve["engine"] = "ollama".into();
        let scenario = json!({"model": {"preset": model}, "device": {"total_bytes": 1_u64 << 38, "count": devices},
            "weights": {"quantization": "gguf:Q4_K_M"}, "job": {"serve": serve}});
        let found = ledger(&resolved(&scenario));
        let own = found.warnings.iter().find(|w| w.id == "ollama.estimate").unwrap();
        for (name, want) in
            ["kv", "graph_full", "graph_partial"].into_iter().zip(want).filter(|(_, w)| *w > 0.0)
        {
            let (_, value) = own.args.iter().find(|(arg, _)| *arg == name).unwrap();
            let Value::Number(bytes) = serde_json::to_value(value).unwrap() else { panic!("{value:?}") };
            let mib = bytes.as_f64().unwrap() / 1_048_576.0;
            assert!((mib - want).abs() <= step * 0.51, "{model} {serve} {name}: {mib:.2}, printed {want}");
        }
    }
}

/// Ollama multiplies the context by its slots, and offloads what its estimate has room for.
#[test]
fn ollama_starts_llama_cpp() {
    let of = |device: &str, serve: Value| {
        let scenario = json!({"model": {"preset": "llama-3.1-70b"}, "device": {"preset": device},
            "weights": {"quantization": "gguf:Q4_K_M"}, "job": {"serve": serve}});
        ledger(&resolved(&scenario))
    };
    let one = of("h100-80gb", json!({"engine": "ollama", "max_model_len": 2048, "max_num_seqs": 1}));
    let four = of("h100-80gb", json!({"engine": "ollama", "max_model_len": 2048, "max_num_seqs": 4}));
    assert_eq!(bytes(&four, TermId::KvCache), 4 * bytes(&one, TermId::KvCache));
    let part = of("rtx-4090", json!({"engine": "ollama", "engine_version": "0.9.0", "max_model_len": 2048}));
    assert_ne!(part.verdict, Verdict::DoesNotFit);
    let on_host = part.host.iter().find(|t| t.id == TermId::Weights).unwrap().bytes;
    assert!(on_host > bytes(&part, TermId::Weights) / 2, "{on_host}");
    let whole = of(
        "rtx-4090",
        json!({"engine": "ollama", "engine_version": "0.9.0", "max_model_len": 2048, "gpu_layers": 81}),
    );
    assert_eq!(whole.verdict, Verdict::DoesNotFit);
}

/// A file whose layers differ: each device gets the bytes that its layers have in the file.
#[test]
fn a_files_own_bytes_lie_where_its_layers_do() {
    let mut gguf = Gguf::new(3).with("general.architecture", V::Text("llama"));
    gguf = gguf.tensor("token_embd.weight", 12, &[4096, 128_256], 128_256 * 16 * 144);
    gguf = gguf.tensor("output.weight", 14, &[4096, 128_256], 128_256 * 16 * 210);
    gguf = gguf.tensor("output_norm.weight", 0, &[4096], 16384);
    gguf = gguf.tensor("rope_freqs.weight", 0, &[64], 256);
    let shapes = [
        ("attn_q", 4096, 4096),
        ("attn_k", 1024, 4096),
        ("attn_v", 1024, 4096),
        ("attn_output", 4096, 4096),
        ("ffn_gate", 14336, 4096),
        ("ffn_up", 14336, 4096),
        ("ffn_down", 4096, 14336),
    ];
    let mut last = 0;
    for i in 0..32 {
        // The last layer is kept in Q8_0, as mixes made by hand do.
        let (kind, bytes_of) = if i == 31 { (8, 34 * 8) } else { (12, 144) };
        last = 2 * 16384;
        for (name, rows, cols) in shapes {
            let bytes = rows * cols / 256 * bytes_of;
            last += bytes;
            gguf = gguf.tensor(&format!("blk.{i}.{name}.weight"), kind, &[cols, rows], bytes);
        }
        for norm in ["attn_norm", "ffn_norm"] {
            gguf = gguf.tensor(&format!("blk.{i}.{norm}.weight"), 0, &[4096], 16384);
        }
    }
    let (header, length) = gguf.bytes();
    let Ok(Header::Whole(checkpoint)) = read_header("m.gguf", &header, length) else { panic!() };
    let spec = WeightsSpec { file: Some(Summary::new(&checkpoint).unwrap()), ..WeightsSpec::default() };
    let scenario = json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
        "job": {"serve": {"engine": "llama_cpp", "max_model_len": 8192, "gpu_layers": 2}}});
    let resolved = resolved(&scenario);
    let inputs = Inputs { weights: &spec, ..resolved.inputs() };
    let found = engine("llama_cpp").unwrap().ledger(&inputs).unwrap();
    let output = 128_256 * 16 * 210 + 16384 + 256;
    assert_eq!(bytes(&found, TermId::Weights), last + output);
    let host = found.host.iter().find(|t| t.id == TermId::Weights).unwrap().bytes;
    assert_eq!(host + last + output, checkpoint.bytes().unwrap());
}
