//! Configs that people drop: overrides, quantised checkpoints, and everything that is not a config.

use oom_ledger_core::model::{DType, Model, PRESETS, Quantization, parse_json, preset};
use oom_ledger_core::text::{Lang, has, message};
use oom_ledger_core::units::Problem;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn llama() -> Value {
    json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128_256})
}

fn with(field: &str, value: Value) -> Value {
    let mut config = llama();
    config[field] = value;
    config
}

/// The problem of a config, and its English sentence.
fn refused(config: &Value) -> (Problem, String) {
    let problem = Model::from_config("x", config).expect_err(&config.to_string());
    assert!(has(problem.message.id), "{}", problem.message.id);
    let sentence = message(Lang::En, &problem.message);
    let open = sentence.split('{').skip(1).any(|rest| rest.starts_with(char::is_alphabetic));
    assert!(!open, "placeholder left in: {sentence}");
    (problem, sentence)
}

/// Parameter bytes in bf16 at reduced depth, as the instantiated classes have them.
#[test]
fn fewer_layers_give_the_parameters_of_the_reduced_class() {
    for (id, layers, bytes) in [
        ("llama-3.1-8b", 4, 3_846_250_496),
        ("qwen2.5-7b", 4, 4_044_459_008),
        ("mistral-7b-v0.1", 4, 2_269_192_192),
        ("gemma-2-9b", 4, 3_420_576_768),
        ("phi-4", 4, 4_781_598_720),
        ("qwen3-30b-a3b", 4, 6_229_630_976),
        ("gpt-oss-20b", 4, 8_902_043_648),
        ("deepseek-v2-lite", 3, 3_340_794_880u64),
        ("olmo-2-7b", 4, 3_263_307_776),
        ("gemma-3-1b", 6, 926_093_824),
        ("falcon-7b", 4, 2_247_518_208),
        ("starcoder2-7b", 4, 2_189_858_816),
        ("mixtral-8x7b", 4, 12_134_457_344),
        ("qwen3-8b", 4, 4_032_901_120),
        ("llama-2-7b", 4, 2_143_363_072),
        ("qwen2.5-0.5b", 4, 391_575_552),
    ] {
        let overrides = json!({"num_hidden_layers": layers}).as_object().unwrap().clone();
        let model = preset(id).unwrap().model_with(&overrides).unwrap();
        assert_eq!(model.layers.len(), layers, "{id}");
        // The figures count blocks of the caching allocator: each tensor rounded up to 512 bytes.
        let sizes = model
            .tensors
            .iter()
            .map(|t| t.count * (t.elements() * t.dtype.unwrap_or(DType::Bf16).bytes()).next_multiple_of(512));
        assert_eq!(sizes.sum::<u64>(), bytes, "{id}");
    }
}

#[test]
fn every_preset_can_be_cut_to_one_and_to_four_layers() {
    for row in PRESETS {
        for layers in [1, 4] {
            let overrides =
                json!({"num_hidden_layers": layers, "decoder_layers": layers, "num_decoder_layers": layers});
            let model = row.model_with(overrides.as_object().unwrap()).unwrap();
            assert_eq!(model.layers.len(), layers, "{}", row.id);
            assert!(model.parameters < row.parameters, "{}", row.id);
        }
    }
}

#[test]
fn an_override_goes_where_the_wrapper_holds_the_field() {
    let overrides = json!({"num_hidden_layers": 2, "vision_config": {"num_hidden_layers": 3}});
    let model = preset("gemma-3-4b").unwrap().model_with(overrides.as_object().unwrap()).unwrap();
    assert_eq!(model.layers.len(), 2);
    assert_eq!(model.vision.unwrap().layers, 3);
    assert_eq!(model.vision.unwrap().hidden_size, 1152, "the rest of the part stays");
    let overrides = json!({"vocab_size": 1000, "tie_word_embeddings": true});
    let model = preset("llava-1.5-7b").unwrap().model_with(overrides.as_object().unwrap()).unwrap();
    assert_eq!(model.vocab_size, 1000);
}

#[test]
fn quantised_checkpoints_are_recognised() {
    for (config, want) in [
        (json!({"quant_method": "awq", "bits": 4, "group_size": 128}), Quantization::AwqInt4),
        (json!({"quant_method": "gptq", "bits": 4, "desc_act": true}), Quantization::GptqInt4),
        (json!({"quant_method": "bitsandbytes", "load_in_4bit": true}), Quantization::BnbNf4),
        (json!({"quant_method": "bitsandbytes", "load_in_8bit": true}), Quantization::BnbInt8),
        (json!({"quant_method": "fp8", "weight_block_size": [128, 128]}), Quantization::Fp8),
        (json!({"quant_method": "mxfp4"}), Quantization::Mxfp4),
        (json!({"quant_method": "modelopt", "quant_algo": "NVFP4"}), Quantization::Nvfp4),
        (
            json!({"quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}),
            Quantization::Fp8,
        ),
        (
            json!({"quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}}),
            Quantization::Int8,
        ),
        (
            json!({"quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}),
            Quantization::Nvfp4,
        ),
    ] {
        let model = Model::from_config("x", &with("quantization_config", config.clone())).unwrap();
        assert_eq!(model.quantization, Some(want), "{config}");
    }
    let (problem, sentence) =
        refused(&with("quantization_config", json!({"quant_method": "aqlm", "bits": 2})));
    assert!(problem.field.ends_with("quant_method") && sentence.contains("aqlm 2-bit"), "{sentence}");
}

#[test]
fn sizes_out_of_range_name_the_field_what_was_given_and_what_is_accepted() {
    for (field, value) in [
        ("hidden_size", json!(0)),
        ("hidden_size", json!(-4096)),
        ("hidden_size", json!("4096")),
        ("hidden_size", json!(1e300)),
        ("hidden_size", json!(u64::MAX)),
        ("hidden_size", json!([4096])),
        ("hidden_size", json!(0.5)),
        ("num_hidden_layers", json!(0)),
        ("num_hidden_layers", json!(1_000_000_000)),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", json!(8192)),
        ("num_key_value_heads", json!(7)),
        ("num_key_value_heads", json!(0)),
        ("head_dim", json!(0)),
        ("vocab_size", json!(true)),
        ("head_dim", json!("wide")),
        ("attention_bias", json!("yes")),
        ("tie_word_embeddings", json!(1)),
        ("architectures", json!("LlamaForCausalLM")),
    ] {
        let (problem, sentence) = refused(&with(field, value.clone()));
        assert_eq!(problem.field, format!("model.config.{field}"), "{sentence}");
        assert!(sentence.contains(field), "{sentence}");
    }
    let mut wrapper = json!({"model_type": "gemma3", "text_config": {"hidden_size": -1}});
    assert_eq!(refused(&wrapper).0.field, "model.config.text_config.hidden_size");
    wrapper["text_config"] = json!([1]);
    assert_eq!(refused(&wrapper).0.field, "model.config.text_config");
}

#[test]
fn huge_but_accepted_sizes_overflow_with_a_sentence() {
    let mut config = with("hidden_size", json!(1 << 24));
    for (field, value) in
        [("intermediate_size", 1u64 << 24), ("num_hidden_layers", 4096), ("vocab_size", 1 << 24)]
    {
        config[field] = json!(value);
    }
    let (problem, sentence) = refused(&config);
    assert_eq!(problem.message.id, "problem.overflow");
    assert!(sentence.contains("check layers"), "{sentence}");
}

#[test]
fn other_files_are_told_apart() {
    for (config, id, says) in [
        (json!([]), "model.not_an_object", "object"),
        (json!(null), "model.not_an_object", "object"),
        (json!({}), "model.no_model_type", "model_type"),
        (json!({"hidden_size": 4096}), "model.no_model_type", "architectures"),
        (
            json!({"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.6.0"}),
            "model.is_diffusers",
            "diffusers",
        ),
        (
            json!({"tokenizer_class": "LlamaTokenizer", "model_max_length": 4096}),
            "model.is_tokenizer",
            "config.json",
        ),
        (json!({"peft_type": "LORA", "base_model_name_or_path": "x/y"}), "model.is_adapter", "base model"),
        (json!({"metadata": {}, "weight_map": {"a": "b"}}), "model.is_index", "config.json"),
        (
            json!({"transformers_version": "4.40.0", "do_sample": true, "eos_token_id": 2}),
            "model.is_generation",
            "config.json",
        ),
        (
            json!({"architectures": ["BertForSequenceClassification"], "model_type": "bert", "hidden_size": 768}),
            "model.unsupported",
            "BertForSequenceClassification",
        ),
        (
            json!({"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"}),
            "model.unsupported_class",
            "LlamaForCausalLM",
        ),
        (json!({"model_type": "sam"}), "model.unsupported", "llama"),
    ] {
        let (problem, sentence) = refused(&config);
        assert_eq!(problem.message.id, id, "{config}");
        assert!(sentence.contains(says), "{sentence}");
    }
}

#[test]
fn broken_json_is_located() {
    let text = "{\n  \"model_type\": \"llama\",\n  \"hidden_size\": 40x6\n}";
    let problem = Model::from_config_text("x", text).unwrap_err();
    let sentence = message(Lang::En, &problem.message);
    assert_eq!(problem.message.id, "model.json_broken");
    assert!(sentence.contains("line 3, column 20"), "{sentence}");
    for text in ["", "  \n", "\u{feff}"] {
        assert_eq!(Model::from_config_text("x", text).unwrap_err().message.id, "model.json_empty");
    }
    let whole = llama().to_string();
    for cut in 1..whole.len() {
        let problem = Model::from_config_text("x", &whole[..cut]).unwrap_err();
        assert_eq!(problem.message.id, "model.json_broken");
    }
    let python = r#"{"a": [Infinity, -Infinity, NaN], "b": "NaN \" Infinity"}"#;
    assert_eq!(parse_json("", python).unwrap(), json!({"a": [null, null, null], "b": "NaN \" Infinity"}));
    assert!(parse_json("", &"[".repeat(100_000)).is_err(), "deep nesting is an error, not a crash");
}

#[test]
fn a_config_of_five_megabytes_is_read() {
    let mut config = llama();
    config["id2label"] =
        Value::Object((0..150_000).map(|i| (i.to_string(), json!(format!("LABEL_{i:020}")))).collect());
    let text = config.to_string();
    assert!(text.len() > 5_000_000);
    assert_eq!(Model::from_config_text("x", &text).unwrap().parameters, 8_030_261_248);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0u64..300).prop_map(Value::from),
        prop_oneof![Just(1u64 << 16), Just(1 << 24), Just(4096), Just(65535)].prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop_oneof![Just("full_attention"), Just("sliding_attention"), Just("mamba"), Just("auto")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("\\PC{0,8}", inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a real config's fields are replaced by: an answer or a sentence, never a panic.
    #[test]
    fn mutated_configs_never_panic(
        which in 0..PRESETS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any_json()), 1..5),
    ) {
        let mut config = PRESETS[which].document().unwrap()["config"].take();
        for (index, inner, value) in changes {
            let path = if inner && config["text_config"].is_object() { "/text_config" } else { "" };
            let map = config.pointer_mut(path).and_then(Value::as_object_mut).unwrap();
            // An earlier change may have emptied `text_config`.
            if map.is_empty() {
                continue;
            }
            let key = map.keys().nth(index.index(map.len())).unwrap().clone();
            map.insert(key, value);
        }
        if let Err(problem) = Model::from_config("x", &config) {
            prop_assert!(has(problem.message.id));
        }
    }

    #[test]
    fn arbitrary_overrides_never_panic(which in 0..PRESETS.len(), overrides in any_json(), layers in any_json()) {
        let mut map = overrides.as_object().cloned().unwrap_or_default();
        map.insert("num_hidden_layers".to_owned(), layers);
        let _ = PRESETS[which].model_with(&map);
        let wrapped = json!({"text_config": map, "vision_config": overrides});
        let _ = PRESETS[which].model_with(wrapped.as_object().unwrap());
    }

    #[test]
    fn arbitrary_json_never_panics(value in any_json(), text in "\\PC{0,200}") {
        let _ = Model::from_config("x", &value);
        let _ = Model::from_config_text("x", &text);
    }
}

#[test]
fn notes_say_what_was_assumed_and_what_is_not_counted() {
    let note = |config: &Value| {
        let notes = Model::from_config("x", config).unwrap().notes;
        notes.iter().map(|n| message(Lang::En, n)).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(note(&llama()), "");
    let bare = note(&json!({"architectures": ["LlamaForCausalLM"]}));
    assert!(bare.contains("hidden_size, num_hidden_layers, num_attention_heads, vocab_size"), "{bare}");
    for row in PRESETS {
        let notes = row.model().unwrap().notes;
        let mtp = notes.iter().all(|n| n.id == "model.note_mtp");
        // LLaVA and the Gemma 3 wrappers do leave sizes to the class.
        assert!(mtp || ["llava-1.5-7b", "gemma-3-4b"].contains(&row.id), "{}: {notes:?}", row.id);
    }
}

/// The classes published with the weights fuse what the Llama class keeps apart: equal in sum.
#[test]
fn remote_code_classes_count_as_the_llama_class_does() {
    for (id, class) in [("internlm2-7b", "InternLM2ForCausalLM"), ("baichuan2-7b", "BaichuanForCausalLM")] {
        let row = preset(id).unwrap();
        let overrides = json!({"architectures": [class], "bias": false});
        let model = row.model_with(overrides.as_object().unwrap()).unwrap();
        assert_eq!((model.parameters, model.class.as_str()), (row.parameters, class));
    }
}
