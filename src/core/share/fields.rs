//! Every field of the Scenario document: where it stands, and what it accepts.

/// What a field accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number from the first to the second, both included.
    Whole(u64, u64),
    /// A number above 0, up to and including 1.
    Share,
    /// A number above 0, up to and including 100.
    Ratio,
    /// `true` or `false`.
    Flag,
    /// Text; what it may be is checked where it is looked up.
    Text,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// An object with these fields.
    Object(&'static [Field]),
    /// An object of any fields: part of a model's config.
    Config,
    /// Text, or a list of texts.
    Names,
    /// Tensors of a checkpoint, as `model::checkpoint::Summary` writes them.
    File,
}

/// One field. `null` and leaving it out mean the same: the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
}

const fn f(name: &'static str, kind: Kind) -> Field {
    Field { name, kind }
}

impl Kind {
    /// What is accepted, in notation that needs no language.
    pub fn accepted(self) -> String {
        match self {
            Kind::Whole(low, high) if low == high => crate::units::count(low),
            Kind::Whole(low, high) => {
                format!("{} … {}", crate::units::count(low), crate::units::count(high))
            }
            Kind::Share => "0 < x ≤ 1".to_owned(),
            Kind::Ratio => "0 < x ≤ 100".to_owned(),
            Kind::Flag => "true, false".to_owned(),
            Kind::Text => "\"…\"".to_owned(),
            Kind::Choice(all) => all.join(", "),
            Kind::Object(fields) => {
                let names: Vec<_> = fields.iter().map(|field| format!("\"{}\": …", field.name)).collect();
                format!("{{{}}}", names.join(", "))
            }
            Kind::Names => "\"…\", [\"…\", …]".to_owned(),
            Kind::Config | Kind::File => "{…}".to_owned(),
        }
    }
}

/// Longest request, prompt or answer accepted, in tokens: 2^32. The longest published context is 10^7.
pub(crate) const TOKENS: Kind = Kind::Whole(1, 1 << 32);
/// New tokens: none is a prefill alone.
pub(crate) const NEW_TOKENS: Kind = Kind::Whole(0, 1 << 32);
/// Sequences at once: 2^24. The largest engine default is 1,024.
pub(crate) const SEQUENCES: Kind = Kind::Whole(1, 1 << 24);
/// As [`SEQUENCES`], where none is an answer.
pub(crate) const SEQUENCES0: Kind = Kind::Whole(0, 1 << 24);
/// vLLM's sleep levels; 0 is awake.
pub(crate) const SLEEP: Kind = Kind::Whole(0, 2);
/// Tokens of a KV block: 2^16. Engines use 1 to 256, hybrid models a few thousand.
pub(crate) const BLOCK: Kind = Kind::Whole(1, 1 << 16);
/// Speculative tokens per step.
pub(crate) const SPECULATIVE: Kind = Kind::Whole(0, 1024);
/// Layers on the GPU; engines take 99 or 999 for "all".
pub(crate) const LAYERS: Kind = Kind::Whole(0, 1 << 16);
/// Devices, and each degree of parallelism.
pub(crate) const DEGREE: Kind = Kind::Whole(1, 1 << 16);
/// Inner width of an adapter.
pub(crate) const RANK: Kind = Kind::Whole(1, 1 << 16);
/// Device total: 64 MiB (below, no CUDA context fits) to 1 PiB.
pub(crate) const TOTAL: Kind = Kind::Whole(64 << 20, 1 << 50);
/// Bytes measured or held by others: up to 1 PiB.
pub(crate) const BYTES: Kind = Kind::Whole(0, 1 << 50);

const MODEL: &[Field] = &[f("preset", Kind::Text), f("config", Kind::Config), f("overrides", Kind::Config)];

const DEVICE: &[Field] = &[
    f("preset", Kind::Text),
    f("total_bytes", TOTAL),
    f("count", DEGREE),
    f("other_processes_bytes", BYTES),
];

const PARALLEL: &[Field] = &[
    f("tensor", DEGREE),
    f("pipeline", DEGREE),
    f("data", DEGREE),
    f("expert", DEGREE),
    f("context", DEGREE),
];

const WEIGHTS: &[Field] = &[
    f("dtype", Kind::Choice(&["fp32", "fp16", "bf16"])),
    f("quantization", Kind::Text),
    f("file", Kind::File),
];

const SERVE: &[Field] = &[
    f("engine", Kind::Text),
    f("engine_version", Kind::Text),
    f("kv_cache_dtype", Kind::Text),
    f("block_size", BLOCK),
    f("max_model_len", TOKENS),
    f("gpu_memory_utilization", Kind::Share),
    f("mem_fraction_static", Kind::Share),
    f("max_num_seqs", SEQUENCES),
    f("max_num_batched_tokens", TOKENS),
    f("enforce_eager", Kind::Flag),
    f("num_speculative_tokens", SPECULATIVE),
    f("prefix_caching", Kind::Flag),
    f("ubatch", SEQUENCES),
    f("gpu_layers", LAYERS),
    f("attention", Kind::Choice(&["eager", "sdpa", "flash"])),
    f("logits", Kind::Choice(&["last", "all"])),
    f(
        "cache",
        Kind::Choice(&["dynamic", "static", "sliding", "quantized", "offloaded", "offloaded_static", "none"]),
    ),
    f("padding_mask", Kind::Flag),
    f("cpu_offload_bytes", BYTES),
    f("swap_space_bytes", BYTES),
    f("kv_cache_memory_bytes", BYTES),
    f("num_gpu_blocks_override", TOKENS),
    f("max_cudagraph_capture_size", SEQUENCES0),
    f("max_loras", SEQUENCES0),
    f("max_lora_rank", SEQUENCES),
    f("sleep_level", SLEEP),
    f("images_per_prompt", SEQUENCES0),
    f("max_logprobs", SEQUENCES0),
    f("prompt_logprobs", Kind::Flag),
    f("free_gpu_memory_fraction", Kind::Share),
    f("max_total_tokens", TOKENS),
    f("swa_full_tokens_ratio", Kind::Share),
    f("mamba_full_memory_ratio", Kind::Ratio),
    f("dp_attention", Kind::Flag),
    f("kv_cache_dtype_v", Kind::Text),
    f("swa_full", Kind::Flag),
    f("kv_unified", Kind::Flag),
    f("tensor_split", Kind::Text),
    f("split_mode", Kind::Choice(&["layer", "row", "none"])),
    f("no_mmap", Kind::Flag),
    f("no_kv_offload", Kind::Flag),
    f("n_cpu_moe", LAYERS),
    f("num_beams", SEQUENCES),
    f("num_return_sequences", SEQUENCES),
    f("do_sample", Kind::Flag),
    f("device_map", Kind::Choice(&["auto", "balanced", "balanced_low_0", "sequential"])),
    f("sequences", SEQUENCES),
    f("prompt_tokens", TOKENS),
    f("new_tokens", NEW_TOKENS),
];

const LORA: &[Field] = &[f("rank", RANK), f("targets", Kind::Names)];

const TRAIN: &[Field] = &[
    f("micro_batch", SEQUENCES),
    f("seq_len", TOKENS),
    f("gradient_accumulation", SEQUENCES),
    f("precision", Kind::Choice(&["bf16", "bf16-mixed", "fp16-mixed", "bf16-master", "fp32"])),
    f(
        "optimizer",
        Kind::Choice(&[
            "adamw",
            "adamw8bit",
            "paged_adamw8bit",
            "adafactor",
            "sgd",
            "sgd_momentum",
            "lion",
            "muon",
        ]),
    ),
    f("optimizer_impl", Kind::Choice(&["forloop", "foreach", "fused", "loop"])),
    f("zero_stage", Kind::Whole(0, 3)),
    f("fsdp", Kind::Text),
    f("offload_optimizer", Kind::Flag),
    f("offload_params", Kind::Flag),
    f("reduce_bucket_elements", BYTES),
    f("checkpointing", Kind::Choice(&["none", "full", "selective"])),
    f("attention", Kind::Choice(&["eager", "sdpa", "flash"])),
    f("loss", Kind::Choice(&["hf", "plain", "fused", "none"])),
    f("hold_outputs", Kind::Flag),
    f("padding_mask", Kind::Flag),
    f("lora", Kind::Object(LORA)),
    f("base_quantization", Kind::Text),
];

const JOB: &[Field] = &[f("serve", Kind::Object(SERVE)), f("train", Kind::Object(TRAIN))];

const MEASURED: &[Field] = &[
    f("weights_bytes", BYTES),
    f("kv_available_bytes", BYTES),
    f("activation_peak_bytes", BYTES),
    f("non_torch_bytes", BYTES),
    f("cuda_graph_bytes", BYTES),
    f("device_used_bytes", BYTES),
];

/// The fields of the document itself.
pub const SCENARIO: &[Field] = &[
    f("schema", Kind::Whole(1, super::SCHEMA as u64)),
    f("model", Kind::Object(MODEL)),
    f("draft_model", Kind::Object(MODEL)),
    f("device", Kind::Object(DEVICE)),
    f("parallel", Kind::Object(PARALLEL)),
    f("weights", Kind::Object(WEIGHTS)),
    f("job", Kind::Object(JOB)),
    f("measured", Kind::Object(MEASURED)),
];

/// The field at a dotted path, e.g. `job.serve.max_model_len`; fields inside a model's config are free.
pub fn field(path: &str) -> Option<Kind> {
    let mut kind = Kind::Object(SCENARIO);
    for name in path.split('.') {
        kind = match kind {
            Kind::Object(fields) => fields.iter().find(|field| field.name == name)?.kind,
            Kind::Config => return Some(Kind::Config),
            _ => return None,
        };
    }
    Some(kind)
}

/// Every path whose last part is `name`.
pub(crate) fn places(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(SCENARIO, "", &mut |path, last| {
        if last == name {
            found.push(path.to_owned());
        }
    });
    found
}

/// Every path of a value (not of an object), in document order.
pub fn paths() -> Vec<String> {
    let mut found = Vec::new();
    walk(SCENARIO, "", &mut |path, _| {
        if !matches!(field(path), Some(Kind::Object(_))) {
            found.push(path.to_owned());
        }
    });
    found
}

fn walk(fields: &[Field], prefix: &str, visit: &mut impl FnMut(&str, &str)) {
    for field in fields {
        let path = format!("{prefix}{}", field.name);
        visit(&path, field.name);
        if let Kind::Object(inner) = field.kind {
            walk(inner, &format!("{path}."), visit);
        }
    }
}
