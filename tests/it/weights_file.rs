//! Weights from a checkpoint's own header: equal to those of the config where the file holds what the config says,
//! and the file's where it does not.

use super::checkpoint_bytes::{Gguf, V, safetensors};
use oom_ledger_core::memory::weights::{Layout, file_notes, weights};
use oom_ledger_core::memory::{Parallel, Provenance, Term, WeightsSpec};
use oom_ledger_core::model::checkpoint::{Checkpoint, FileTensor, Format, Header, Summary, read_header};
use oom_ledger_core::model::{DType, Model, PRESETS, Quantization, TensorClass, TensorGroup, preset};
use oom_ledger_core::units::Problem;

fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::Fp32 => "F32",
        DType::Fp16 => "F16",
        DType::Bf16 => "BF16",
    }
}

/// The tensors of `group`, one by one, as a checkpoint lists them: `*` becomes the layer. Stacked experts stay
/// stacked, or are written one by one with gate and up apart.
fn listed(group: &TensorGroup, dtype: DType, apart: bool, out: &mut Vec<FileTensor>) {
    let dtype = group.dtype.unwrap_or(dtype);
    let mut push = |name: String, shape: Vec<u64>| {
        let bytes = shape.iter().product::<u64>() * dtype.bytes();
        out.push(FileTensor { name, dtype: name_of(dtype).to_owned(), shape, bytes });
    };
    let layers: Vec<_> = group.layers.iter().flat_map(|(a, b)| *a..=*b).collect();
    let names: Vec<String> = if layers.is_empty() {
        vec![group.name.clone()]
    } else {
        layers.iter().map(|i| group.name.replacen('*', &i.to_string(), 1)).collect()
    };
    let copies = group.count / names.len() as u64;
    for name in names {
        let matrix = group.shape.len() == 3
            && matches!(group.class, TensorClass::ExpertGateUp | TensorClass::ExpertDown);
        if apart && matrix && !group.transposed {
            let (experts, rows, cols) = (group.shape[0], group.shape[1], group.shape[2]);
            for e in 0..experts {
                if name.ends_with("gate_up_proj") {
                    for part in ["gate_proj", "up_proj"] {
                        let name = name.replace("gate_up_proj", &format!("{e}.{part}.weight"));
                        push(name, vec![rows / 2, cols]);
                    }
                } else {
                    let (base, leaf) = name.rsplit_once('.').unwrap();
                    push(format!("{base}.{e}.{leaf}.weight"), vec![rows, cols]);
                }
            }
            continue;
        }
        for copy in 0..copies {
            push(
                if copies > 1 { name.replacen('*', &copy.to_string(), 1) } else { name.clone() },
                group.shape.clone(),
            );
        }
    }
}

fn checkpoint(tensors: &[FileTensor]) -> Checkpoint {
    let rows: Vec<_> =
        tensors.iter().map(|t| (t.name.as_str(), t.dtype.as_str(), t.shape.clone(), t.bytes)).collect();
    let (header, length) = safetensors(&rows);
    match read_header("model.safetensors", &header, length).unwrap() {
        Header::Whole(checkpoint) => checkpoint,
        Header::Need(more) => panic!("{more}"),
    }
}

fn summary(model: &Model, apart: bool) -> Summary {
    let mut tensors = Vec::new();
    for group in &model.tensors {
        listed(group, DType::Bf16, apart, &mut tensors);
    }
    // Files sort by name, not by layer.
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let (header, length) = safetensors(&[("a", "U8", vec![1], 1)]);
    let Ok(Header::Whole(mut checkpoint)) = read_header("a", &header, length) else { panic!() };
    checkpoint.tensors = tensors;
    Summary::new(&checkpoint).unwrap()
}

fn of(model: &Model, file: Option<&Summary>, parallel: Parallel, layout: Layout) -> Result<Term, Problem> {
    weights(model, &WeightsSpec { file: file.cloned(), ..WeightsSpec::default() }, parallel, layout, None)
}

#[test]
fn a_file_that_holds_what_the_config_says_changes_no_figure() {
    let degrees = [(1, 1, 1), (2, 1, 1), (4, 1, 2), (8, 1, 8), (1, 2, 1), (2, 3, 1)];
    let mut compared = 0;
    for preset in PRESETS {
        let mut model = preset.model().unwrap();
        model.quantization = None;
        let routed = model.tensors.iter().any(|g| g.expert);
        for apart in [false, true].into_iter().filter(|apart| routed || !apart) {
            let file = summary(&model, apart);
            let total: u64 = model
                .tensors
                .iter()
                .map(|g| g.elements() * g.count * g.dtype.unwrap_or_default().bytes())
                .sum();
            assert_eq!(file.bytes().unwrap(), total, "{}", preset.id);
            for (tensor, pipeline, expert) in degrees {
                let parallel = Parallel { tensor, pipeline, expert, ..Parallel::default() };
                for layout in [Layout::Serving, Layout::Transformers] {
                    let Ok(config) = of(&model, None, parallel, layout) else { continue };
                    let term = of(&model, Some(&file), parallel, layout).unwrap();
                    let shown = format!("{} {parallel:?} {layout:?} apart {apart}", preset.id);
                    assert_eq!(
                        (term.bytes, term.low, term.high),
                        (config.bytes, config.low, config.high),
                        "{shown}"
                    );
                    assert_eq!(term.provenance, config.provenance, "{shown}");
                    assert_eq!(term.working.parts.iter().map(|p| p.bytes).sum::<u64>(), term.bytes);
                    compared += 1;
                }
            }
            let spec = WeightsSpec { file: Some(file), ..WeightsSpec::default() };
            assert_eq!(file_notes(&model, &spec), [], "{}", preset.id);
        }
    }
    assert!(compared > 400, "{compared}");
}

#[test]
fn a_summary_is_short_and_reads_back() {
    for preset in PRESETS {
        let file = summary(&preset.model().unwrap(), true);
        let json = serde_json::to_value(&file).unwrap();
        assert_eq!(Summary::from_json(&json).unwrap(), file, "{}", preset.id);
        assert!(file.rows.len() < 120, "{}: {}", preset.id, file.rows.len());
    }
    for bad in [
        r#"{"format": "zip"}"#,
        r#"{"format": "gguf"}"#,
        r#"{"format": "gguf", "tensors": []}"#,
        r#"{"format": "gguf", "tensors": ["a F32"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 -1"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1 3-2"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1 0-4294967295"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1 5,4"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1 0-3 x0"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1 0-3 x2 9"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 18446744073709551615 0-3"]}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1"], "total_bytes": 3}"#,
        r#"{"format": "gguf", "tensors": ["a F32 1"], "more": 3}"#,
        r#"{"format": "index", "total_bytes": -3}"#,
        "7",
    ] {
        assert!(Summary::from_json(&serde_json::from_str(bad).unwrap()).is_err(), "{bad}");
    }
}

fn small(quantization: Option<serde_json::Value>) -> Model {
    let mut config = serde_json::json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 4, "vocab_size": 640});
    if let Some(q) = quantization {
        config["quantization_config"] = q;
    }
    Model::from_config("small", &config).unwrap()
}

/// Sums by hand what each rank of an AWQ checkpoint holds.
#[test]
fn packed_matrices_and_their_scales_are_split_like_the_matrix() {
    let model = small(Some(serde_json::json!({"quant_method": "awq", "bits": 4})));
    let mut tensors = Vec::new();
    let mut push = |name: String, dtype: &str, shape: Vec<u64>, bytes: u64| {
        tensors.push(FileTensor { name, dtype: dtype.to_owned(), shape, bytes });
    };
    let (mut column, mut row, mut whole, mut scales) = (0, 0, 0, 0);
    for layer in 0..4 {
        for (name, out, input) in [
            ("self_attn.q_proj", 256, 256),
            ("self_attn.k_proj", 128, 256),
            ("self_attn.v_proj", 128, 256),
            ("self_attn.o_proj", 256, 256),
            ("mlp.gate_proj", 512, 256),
            ("mlp.up_proj", 512, 256),
            ("mlp.down_proj", 256, 512),
        ] {
            let base = format!("model.layers.{layer}.{name}");
            let sizes = [input * out / 2, input / 128 * out / 2, input / 128 * out * 2];
            push(format!("{base}.qweight"), "I32", vec![input, out / 8], sizes[0]);
            push(format!("{base}.qzeros"), "I32", vec![input / 128, out / 8], sizes[1]);
            push(format!("{base}.scales"), "F16", vec![input / 128, out], sizes[2]);
            let sum: u64 = sizes.iter().sum();
            scales += sizes[2];
            if name.ends_with("o_proj") || name.ends_with("down_proj") { row += sum } else { column += sum }
        }
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            push(format!("model.layers.{layer}.{norm}.weight"), "F16", vec![256], 512);
            whole += 512;
        }
        // Saved by old tools, loaded by none.
        push(format!("model.layers.{layer}.self_attn.rotary_emb.inv_freq"), "F32", vec![16], 64);
    }
    push("model.norm.weight".into(), "F16", vec![256], 512);
    push("model.embed_tokens.weight".into(), "F16", vec![640, 256], 327_680);
    push("lm_head.weight".into(), "F16", vec![640, 256], 327_680);
    let file = Summary::new(&checkpoint(&tensors)).unwrap();
    assert_eq!(file.float(), Some(DType::Fp16));
    let spec = WeightsSpec { dtype: DType::Fp16, quantization: None, file: Some(file.clone()) };
    let one = weights(&model, &spec, Parallel::default(), Layout::Transformers, None).unwrap();
    assert_eq!(one.bytes, column + row + whole + 512 + 2 * 327_680);
    assert_eq!(one.bytes + 4 * 64, file.bytes().unwrap());
    assert_eq!(one.provenance, Provenance::Exact);
    assert_eq!(file_notes(&model, &spec)[0].id, "weights.file_skipped");
    let two = Parallel { tensor: 2, ..Parallel::default() };
    let half = weights(&model, &spec, two, Layout::Transformers, None).unwrap();
    let split = column + row;
    assert_eq!(half.bytes, split / 2 + whole + 512 + 327_680);
    // Asked for in another scheme, the file does not decide.
    let other = WeightsSpec { quantization: Some(Quantization::BnbNf4), ..spec.clone() };
    let without = WeightsSpec { file: None, ..other.clone() };
    let bytes = |spec| weights(&model, spec, Parallel::default(), Layout::Transformers, None).unwrap().bytes;
    assert_eq!(bytes(&other), bytes(&without));
    assert_eq!(file_notes(&model, &other)[0].id, "weights.file_set_aside");
    // Asked for in another dtype, floats are converted and the packed numbers are not.
    let wide = WeightsSpec { dtype: DType::Fp32, ..spec.clone() };
    let floats = 2 * 327_680 + 512 + whole + scales;
    assert_eq!(bytes(&wide), bytes(&spec) + floats);
}

#[test]
fn an_index_alone_gives_the_total_and_the_configs_proportions() {
    let model = small(None);
    let exact = of(&model, None, Parallel::default(), Layout::Transformers).unwrap().bytes;
    for total in [exact, exact + 12_345, exact / 3] {
        let json = serde_json::json!({"format": "index", "total_bytes": total});
        let file = Summary::from_json(&json).unwrap();
        assert_eq!(of(&model, Some(&file), Parallel::default(), Layout::Transformers).unwrap().bytes, total);
        let two = Parallel { tensor: 2, ..Parallel::default() };
        let config = of(&model, None, two, Layout::Transformers).unwrap().bytes;
        let half = of(&model, Some(&file), two, Layout::Transformers).unwrap().bytes;
        let wanted = config as f64 * total as f64 / exact as f64;
        assert!((half as f64 - wanted).abs() < 64.0, "{half} {wanted}");
        let spec = WeightsSpec { file: Some(file), ..WeightsSpec::default() };
        assert_eq!(file_notes(&model, &spec)[0].id, "weights.file_total_only");
    }
}

#[test]
fn strange_missing_and_further_tensors_are_named() {
    let model = small(None);
    let mut tensors = Vec::new();
    for group in model.tensors.iter().filter(|g| !g.name.contains("up_proj")) {
        listed(group, DType::Bf16, false, &mut tensors);
    }
    let base: u64 = tensors.iter().map(|t| t.bytes).sum();
    for (name, bytes) in [
        ("model.layers.2.new.thing", 100),
        ("model.layers.4.eh_proj.weight", 1000),
        ("vision_tower.a.weight", 10),
    ] {
        tensors.push(FileTensor { name: name.into(), dtype: "U8".into(), shape: vec![bytes], bytes });
    }
    let file = Summary::new(&checkpoint(&tensors)).unwrap();
    let spec = WeightsSpec { file: Some(file.clone()), ..WeightsSpec::default() };
    let ids: Vec<_> = file_notes(&model, &spec).into_iter().map(|n| n.id).collect();
    assert_eq!(ids, ["weights.file_skipped", "weights.file_strange", "weights.file_lacks"]);
    assert_eq!(of(&model, Some(&file), Parallel::default(), Layout::Transformers).unwrap().bytes, base + 100);
    let stages = Parallel { pipeline: 4, ..Parallel::default() };
    assert!(of(&model, Some(&file), stages, Layout::Transformers).is_ok());
}

/// The bytes of a mixed GGUF follow its tensors on every stage and rank.
#[test]
fn a_gguf_file_counts_each_layer_in_its_own_format() {
    let model = preset("llama-3.1-8b").unwrap().model().unwrap();
    let mut gguf =
        Gguf::new(3).with("general.architecture", V::Text("llama")).with("general.file_type", V::U32(15));
    gguf = gguf.tensor("token_embd.weight", 12, &[4096, 128_256], 128_256 * 16 * 144);
    gguf = gguf.tensor("output.weight", 14, &[4096, 128_256], 128_256 * 16 * 210);
    gguf = gguf.tensor("output_norm.weight", 0, &[4096], 16384);
    gguf = gguf.tensor("rope_freqs.weight", 0, &[64], 256);
    let mut layers = Vec::new();
    for i in 0..32 {
        let rich = !(4..28).contains(&i) || (i - 4) % 3 == 2;
        let (kind, block) = if rich { (14, 210) } else { (12, 144) };
        let mut sum = 0;
        for (name, rows, cols, kind, block) in [
            ("attn_q", 4096, 4096, 12, 144),
            ("attn_k", 1024, 4096, 12, 144),
            ("attn_v", 1024, 4096, kind, block),
            ("attn_output", 4096, 4096, 12, 144),
            ("ffn_gate", 14336, 4096, 12, 144),
            ("ffn_up", 14336, 4096, 12, 144),
            ("ffn_down", 4096, 14336, kind, block),
        ] {
            let bytes = rows * cols / 256 * block;
            sum += bytes;
            gguf = gguf.tensor(&format!("blk.{i}.{name}.weight"), kind, &[cols, rows], bytes);
        }
        for norm in ["attn_norm", "ffn_norm"] {
            gguf = gguf.tensor(&format!("blk.{i}.{norm}.weight"), 0, &[4096], 16384);
        }
        layers.push(sum);
    }
    let (header, length) = gguf.bytes();
    let Ok(Header::Whole(checkpoint)) = read_header("m.gguf", &header, length) else { panic!() };
    let file = Summary::new(&checkpoint).unwrap();
    assert_eq!((file.format, file.kind.as_deref()), (Format::Gguf, Some("Q4_K_M")));
    let term = of(&model, Some(&file), Parallel::default(), Layout::Transformers).unwrap();
    assert_eq!(term.bytes, checkpoint.bytes().unwrap());
    // The published file of that mix has this size, header included.
    assert!(4_920_739_232 - term.bytes < 8 << 20, "{}", term.bytes);
    assert_eq!(term.provenance, Provenance::Exact);
    let two = Parallel { tensor: 2, ..Parallel::default() };
    let norms = 65 * 16384 + 256;
    let half = of(&model, Some(&file), two, Layout::Serving).unwrap().bytes;
    let rotary = 131_072 * 128 * 2;
    assert_eq!(half, (term.bytes - norms) / 2 + norms + rotary);
    let stages = Parallel { pipeline: 2, ..Parallel::default() };
    let stage = of(&model, Some(&file), stages, Layout::Transformers).unwrap().bytes;
    let back: u64 = layers[16..].iter().sum::<u64>() + 33 * 16384 + 128_256 * 16 * 210 + 256;
    let front: u64 = layers[..16].iter().sum::<u64>() + 32 * 16384 + 128_256 * 16 * 144;
    assert_eq!(stage, back.max(front));
}
