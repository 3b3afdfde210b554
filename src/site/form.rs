//! What a person typed, field by field, exactly as typed. A form becomes a Scenario document by the paths of
//! its fields; what does not parse is handed on as text, so that the core's own check names field and fault.

use oom_ledger_core::share::Scenario;
use oom_ledger_core::units::{Problem, parse_bytes, parse_count};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a field is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// A byte count with a unit.
    Bytes,
    /// A ratio.
    Real,
    /// Text or a choice.
    Text,
    /// A tick box.
    Flag,
    /// Names with commas between them, or one name that stands for many.
    Names,
}

/// Which job: empty is serving. It is in no document; it says which half of the form is.
const JOB: &str = "job";

/// Every field of the form by its path in the Scenario document.
pub const FIELDS: &[(&str, Kind)] = &[
    (JOB, Kind::Text),
    ("model.preset", Kind::Text),
    ("device.preset", Kind::Text),
    ("device.total_bytes", Kind::Bytes),
    ("device.count", Kind::Whole),
    ("device.other_processes_bytes", Kind::Bytes),
    ("parallel.tensor", Kind::Whole),
    ("parallel.pipeline", Kind::Whole),
    ("parallel.data", Kind::Whole),
    ("parallel.expert", Kind::Whole),
    ("parallel.context", Kind::Whole),
    ("weights.dtype", Kind::Text),
    ("weights.quantization", Kind::Text),
    ("job.serve.engine", Kind::Text),
    ("job.serve.engine_version", Kind::Text),
    ("job.serve.kv_cache_dtype", Kind::Text),
    ("job.serve.block_size", Kind::Whole),
    ("job.serve.max_model_len", Kind::Whole),
    ("job.serve.gpu_memory_utilization", Kind::Real),
    ("job.serve.max_num_seqs", Kind::Whole),
    ("job.serve.max_num_batched_tokens", Kind::Whole),
    ("job.serve.enforce_eager", Kind::Flag),
    ("job.serve.num_speculative_tokens", Kind::Whole),
    ("job.serve.prefix_caching", Kind::Flag),
    ("job.serve.attention", Kind::Text),
    ("job.serve.logits", Kind::Text),
    ("job.serve.cache", Kind::Text),
    ("job.serve.padding_mask", Kind::Flag),
    ("job.serve.mem_fraction_static", Kind::Real),
    ("job.serve.ubatch", Kind::Whole),
    ("job.serve.gpu_layers", Kind::Whole),
    ("job.serve.cpu_offload_bytes", Kind::Bytes),
    ("job.serve.swap_space_bytes", Kind::Bytes),
    ("job.serve.kv_cache_memory_bytes", Kind::Bytes),
    ("job.serve.num_gpu_blocks_override", Kind::Whole),
    ("job.serve.max_cudagraph_capture_size", Kind::Whole),
    ("job.serve.max_loras", Kind::Whole),
    ("job.serve.max_lora_rank", Kind::Whole),
    ("job.serve.sleep_level", Kind::Whole),
    ("job.serve.images_per_prompt", Kind::Whole),
    ("job.serve.max_logprobs", Kind::Whole),
    ("job.serve.prompt_logprobs", Kind::Flag),
    ("job.serve.free_gpu_memory_fraction", Kind::Real),
    ("job.serve.max_total_tokens", Kind::Whole),
    ("job.serve.swa_full_tokens_ratio", Kind::Real),
    ("job.serve.mamba_full_memory_ratio", Kind::Real),
    ("job.serve.dp_attention", Kind::Flag),
    ("job.serve.kv_cache_dtype_v", Kind::Text),
    ("job.serve.swa_full", Kind::Flag),
    ("job.serve.kv_unified", Kind::Flag),
    ("job.serve.tensor_split", Kind::Text),
    ("job.serve.split_mode", Kind::Text),
    ("job.serve.no_mmap", Kind::Flag),
    ("job.serve.no_kv_offload", Kind::Flag),
    ("job.serve.n_cpu_moe", Kind::Whole),
    ("job.serve.num_beams", Kind::Whole),
    ("job.serve.num_return_sequences", Kind::Whole),
    ("job.serve.do_sample", Kind::Flag),
    ("job.serve.device_map", Kind::Text),
    ("job.serve.sequences", Kind::Whole),
    ("job.serve.prompt_tokens", Kind::Whole),
    ("job.serve.new_tokens", Kind::Whole),
    ("job.train.micro_batch", Kind::Whole),
    ("job.train.seq_len", Kind::Whole),
    ("job.train.gradient_accumulation", Kind::Whole),
    ("job.train.precision", Kind::Text),
    ("job.train.optimizer", Kind::Text),
    ("job.train.optimizer_impl", Kind::Text),
    ("job.train.zero_stage", Kind::Whole),
    ("job.train.fsdp", Kind::Text),
    ("job.train.offload_optimizer", Kind::Flag),
    ("job.train.offload_params", Kind::Flag),
    ("job.train.reduce_bucket_elements", Kind::Whole),
    ("job.train.checkpointing", Kind::Text),
    ("job.train.attention", Kind::Text),
    ("job.train.loss", Kind::Text),
    ("job.train.hold_outputs", Kind::Flag),
    ("job.train.padding_mask", Kind::Flag),
    ("job.train.lora.rank", Kind::Whole),
    ("job.train.lora.targets", Kind::Names),
    ("job.train.base_quantization", Kind::Text),
    ("measured.weights_bytes", Kind::Bytes),
    ("measured.kv_available_bytes", Kind::Bytes),
    ("measured.activation_peak_bytes", Kind::Bytes),
    ("measured.non_torch_bytes", Kind::Bytes),
    ("measured.cuda_graph_bytes", Kind::Bytes),
    ("measured.device_used_bytes", Kind::Bytes),
];

/// How the field at `path` is typed.
pub fn kind(path: &str) -> Kind {
    FIELDS.iter().find(|(p, _)| *p == path).map_or(Kind::Text, |(_, kind)| *kind)
}

/// The form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    values: BTreeMap<&'static str, String>,
    /// A dropped or pasted config, as text; used in place of the preset.
    pub config: Option<String>,
    /// The tensors of a checkpoint that was dropped, as `weights.file` of the document.
    pub file: Option<Value>,
    /// Fields of the config to replace; they come with an address or a document, not from a field.
    overrides: Option<Value>,
}

impl Form {
    /// What people see first: the issue's own example.
    pub fn first() -> Form {
        let mut form = Form::default();
        for (path, value) in [
            ("model.preset", "llama-3.1-8b"),
            ("device.preset", "h100-80gb"),
            ("weights.dtype", "bf16"),
            ("job.serve.engine", "vllm"),
            ("job.serve.max_model_len", "8192"),
            ("job.serve.prefix_caching", "true"),
            ("job.serve.sequences", "16"),
            ("job.serve.prompt_tokens", "1024"),
            ("job.serve.new_tokens", "256"),
        ] {
            form.set(path, value);
        }
        form
    }

    /// Takes `config` in place of the preset; without one the preset stands again. A file that was read belongs to
    /// no other model, and neither does its scheme.
    pub fn take_config(&mut self, config: Option<String>) {
        self.config = config.filter(|text| !text.trim().is_empty());
        if self.config.is_none() && self.file.take().is_some() {
            self.set("weights.quantization", "");
        }
    }

    /// What stands in the field, empty where nothing was typed.
    pub fn get(&self, path: &str) -> &str {
        self.values.get(path).map_or("", String::as_str)
    }

    /// Puts `value` into the field.
    pub fn set(&mut self, path: &str, value: &str) {
        if let Some((path, _)) = FIELDS.iter().find(|(p, _)| *p == path) {
            self.values.insert(path, value.to_owned());
        }
    }

    /// Whether the job is training.
    pub fn training(&self) -> bool {
        self.get(JOB) == "train"
    }

    /// The Scenario document.
    ///
    /// Errors: one problem for each field at fault that can be told apart.
    pub fn scenario(&self) -> Result<Scenario, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut root = Map::new();
        insert(&mut root, "schema", 1.into());
        for (path, kind) in FIELDS {
            let typed = self.get(path).trim();
            if typed.is_empty() || self.hidden(path) {
                continue;
            }
            match read(path, typed, *kind) {
                Ok(value) => insert(&mut root, path, value),
                Err(problem) => problems.push(problem),
            }
        }
        if self.training() {
            complete_training(&mut root);
        }
        if let Some(text) = &self.config {
            match oom_ledger_core::model::parse_json("model.config", text) {
                Ok(config) => insert(&mut root, "model.config", config),
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(overrides) = &self.overrides {
            insert(&mut root, "model.overrides", overrides.clone());
        }
        if let Some(file) = &self.file {
            insert(&mut root, "weights.file", file.clone());
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Scenario::from_json(Value::Object(root)).map_err(|problem| vec![problem])
    }

    // A preset beside a config or a typed size would contradict it: the typed one is what the person means.
    fn hidden(&self, path: &str) -> bool {
        match path {
            JOB => true,
            "model.preset" => self.config.is_some(),
            "device.preset" => !self.get("device.total_bytes").trim().is_empty(),
            _ if self.training() => path.starts_with("job.serve."),
            _ => path.starts_with("job.train."),
        }
    }

    /// The form of a Scenario.
    pub fn of(scenario: &Scenario) -> Form {
        let document = serde_json::to_value(scenario).unwrap_or_default();
        let mut form = Form::default();
        for (path, _) in FIELDS {
            let at = path.split('.').try_fold(&document, |value, name| value.get(name));
            let text = match at {
                None | Some(Value::Null | Value::Object(_)) => continue,
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(names)) => {
                    names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
                }
                Some(other) => other.to_string(),
            };
            form.set(path, &text);
        }
        if document.pointer("/job/train").is_some() {
            form.set(JOB, "train");
        }
        let ones =
            ["device.count", "parallel.tensor", "parallel.pipeline", "parallel.data", "parallel.expert"];
        for path in ones.into_iter().chain(["parallel.context"]) {
            if form.get(path) == "1" {
                form.set(path, "");
            }
        }
        if let Some(config) = document.pointer("/model/config") {
            form.config = serde_json::to_string_pretty(config).ok();
        }
        form.file = document.pointer("/weights/file").filter(|file| !file.is_null()).cloned();
        form.overrides = document.pointer("/model/overrides").cloned();
        form
    }
}

/// A training job with every default is still a training job; adapters of a rank alone go to every linear layer.
fn complete_training(root: &mut Map<String, Value>) {
    let job = root.entry("job").or_insert_with(|| Value::Object(Map::new()));
    if job.get("train").is_none() {
        job["train"] = Value::Object(Map::new());
    }
    if let Some(Value::Object(lora)) = job["train"].get_mut("lora") {
        lora.entry("targets").or_insert_with(|| "all-linear".into());
    }
}

fn read(path: &str, typed: &str, kind: Kind) -> Result<Value, Problem> {
    Ok(match kind {
        Kind::Text => typed.into(),
        Kind::Flag => (typed == "true").into(),
        Kind::Names if typed == "all-linear" => typed.into(),
        Kind::Names => typed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
        Kind::Whole => parse_count(path, typed)?.into(),
        Kind::Bytes => parse_bytes(path, typed)?.0.into(),
        Kind::Real => match typed.parse::<f64>() {
            Ok(real) if real.is_finite() => real.into(),
            _ => return Err(Problem::not_accepted(path, typed, "0 < x ≤ 1")),
        },
    })
}

fn insert(root: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            root.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = root.entry(head).or_insert_with(|| Value::Object(Map::new()));
            if let Some(inner) = inner.as_object_mut() {
                insert(inner, rest, value);
            }
        }
    }
}
