//! From what a log says to a Scenario: the settings that it states, and the figures that it measured.

use super::{Job, ModelRef, Scenario};
use crate::engines::{ENGINES, ServeSettings};
use crate::evidence::{Evidence, Fact, Figure};
use crate::hardware::GPUS;
use crate::memory::kv_cache::kv_dtype;
use crate::memory::{Measured, Parallel};
use crate::model::{DType, PRESETS, Quantization};
use crate::units::Message;

/// A Scenario filled in from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The document.
    pub scenario: Scenario,
    /// Paths of the fields that the log states, with the line that each came from.
    pub stated: Vec<(&'static str, u32)>,
    /// What the log states and this build cannot take over.
    pub open: Vec<Message>,
}

/// `base` with every field that `evidence` states in its place, and its measured figures; a field that it does not
/// state stays. None where the log names no engine that is known here.
///
/// ```
/// use oom_ledger_core::{evidence, share};
/// let log = b"INFO 10-21 06:12:11 [core.py:84] Initializing a V1 LLM engine (v0.10.1) with config: \
///     model='meta-llama/Llama-3.1-8B-Instruct', dtype=torch.bfloat16, max_seq_len=8192, \
///     tensor_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto";
/// let base = share::Scenario::from_json_str(r#"{"schema":1,"model":{"preset":"llama-3.1-70b"},
///     "device":{"preset":"h100-80gb"},"job":{"serve":{}}}"#).unwrap();
/// let filled = share::from_log(&base, &evidence::read(log).evidence).unwrap();
/// assert_eq!(filled.scenario.model.preset.as_deref(), Some("llama-3.1-8b"));
/// ```
pub fn from_log(base: &Scenario, evidence: &Evidence) -> Option<Filled> {
    let engine = evidence.text("engine").filter(|id| ENGINES.iter().any(|e| e.id() == *id))?.to_owned();
    let mut filled = Filled { scenario: base.clone(), stated: Vec::new(), open: Vec::new() };
    let mut serve = match &base.job {
        Job::Serve(serve) if serve.engine == engine => serve.clone(),
        _ => ServeSettings { engine: engine.clone(), ..ServeSettings::default() },
    };
    let mut taking = Taking { evidence, filled: &mut filled };
    taking.state("engine", "job.serve.engine");
    taking.settings(&mut serve);
    taking.parallel();
    taking.weights();
    taking.model();
    taking.device();
    taking.measured();
    filled.scenario.job = Job::Serve(serve);
    Some(filled)
}

struct Taking<'a> {
    evidence: &'a Evidence,
    filled: &'a mut Filled,
}

impl Taking<'_> {
    fn state(&mut self, key: &str, path: &'static str) {
        if let Some(fact) = self.evidence.get(key) {
            self.filled.stated.push((path, fact.line));
        }
    }

    fn open(&mut self, path: &'static str, given: &str) {
        let message =
            Message::new("evidence.open.not_taken").with("field", path).with("given", given.to_owned());
        self.filled.open.push(message);
    }

    fn count(&mut self, key: &str, path: &'static str, place: &mut Option<u64>) {
        if let Some(count) = self.evidence.count(key).filter(|n| *n > 0) {
            *place = Some(count);
            self.state(key, path);
        }
    }

    fn real(&mut self, key: &str, path: &'static str, place: &mut Option<f64>) {
        if let Some(real) = self.evidence.real(key).filter(|r| (0.0..=1.0).contains(r)) {
            *place = Some(real);
            self.state(key, path);
        }
    }

    fn settings(&mut self, serve: &mut ServeSettings) {
        if let Some(version) = self.evidence.text("engine_version") {
            // The two cores of vLLM 0.8 to 0.10 share their versions: the log names the core.
            let old = self.evidence.text("engine_core") == Some("V0") && !version.contains('(');
            serve.engine_version = Some(if old { format!("{version} (V0)") } else { version.to_owned() });
            self.state("engine_version", "job.serve.engine_version");
        }
        self.count("max_model_len", "job.serve.max_model_len", &mut serve.max_model_len);
        self.count("max_num_seqs", "job.serve.max_num_seqs", &mut serve.max_num_seqs);
        let tokens = &mut serve.max_num_batched_tokens;
        self.count("max_num_batched_tokens", "job.serve.max_num_batched_tokens", tokens);
        // vLLM rounds the block of a hybrid model up by itself: given back as a setting it would be rounded twice.
        if self.evidence.get("block_size").is_some_and(|f| f.reader == "vllm-log") && serve.engine == "vllm" {
            let printed = self.evidence.count("block_size").filter(|n| *n <= 256);
            serve.block_size = printed.or(serve.block_size);
        }
        self.count("ubatch", "job.serve.ubatch", &mut serve.ubatch);
        self.count("layers_offloaded", "job.serve.gpu_layers", &mut serve.gpu_layers);
        self.real(
            "gpu_memory_utilization",
            "job.serve.gpu_memory_utilization",
            &mut serve.gpu_memory_utilization,
        );
        self.real("mem_fraction_static", "job.serve.mem_fraction_static", &mut serve.mem_fraction_static);
        let free = &mut serve.free_gpu_memory_fraction;
        self.real("free_gpu_memory_fraction", "job.serve.free_gpu_memory_fraction", free);
        if let Some(Fact { value: Figure::Flag(eager), .. }) = self.evidence.get("enforce_eager") {
            serve.enforce_eager = *eager;
            self.state("enforce_eager", "job.serve.enforce_eager");
        }
        if let Some(given) = self.evidence.text("kv_cache_dtype") {
            let plain = given.trim_start_matches("torch.").to_ascii_lowercase();
            if plain == "auto" || kv_dtype(&plain, DType::Bf16).is_ok() {
                serve.kv_cache_dtype = plain;
                self.state("kv_cache_dtype", "job.serve.kv_cache_dtype");
            } else {
                self.open("job.serve.kv_cache_dtype", given);
            }
        }
    }

    fn parallel(&mut self) {
        let mut degrees = [None; 3];
        for ((key, path), place) in
            [("tp", "parallel.tensor"), ("pp", "parallel.pipeline"), ("dp", "parallel.data")]
                .into_iter()
                .zip(degrees.iter_mut())
        {
            self.count(key, path, place);
        }
        let [tensor, pipeline, data] = degrees;
        if degrees.iter().any(Option::is_some) {
            let one = |degree: Option<u64>| degree.unwrap_or(1).min(1 << 16);
            let parallel = Parallel {
                tensor: one(tensor),
                pipeline: one(pipeline),
                data: one(data),
                ..Parallel::default()
            };
            let world = parallel.tensor.saturating_mul(parallel.pipeline).saturating_mul(parallel.data);
            self.filled.scenario.parallel = parallel;
            let count = &mut self.filled.scenario.device.count;
            *count = (*count).max(world);
        }
    }

    fn weights(&mut self) {
        let dtype = match self.evidence.text("dtype") {
            Some("bfloat16" | "bf16") => Some(DType::Bf16),
            Some("float16" | "half" | "fp16") => Some(DType::Fp16),
            Some("float32" | "float" | "fp32") => Some(DType::Fp32),
            _ => None,
        };
        if let Some(dtype) = dtype {
            self.filled.scenario.weights.dtype = dtype;
            self.state("dtype", "weights.dtype");
        }
        let Some(given) = self.evidence.text("quantization").map(str::to_ascii_lowercase) else { return };
        let scheme = match given.as_str() {
            "none" | "null" => None,
            "fp8" | "fbgemm_fp8" | "modelopt" => Some("fp8"),
            "awq" | "awq_marlin" => Some("awq-int4"),
            "gptq" | "gptq_marlin" => Some("gptq-int4"),
            "bitsandbytes" => Some("bnb-nf4"),
            "mxfp4" | "gpt_oss_mxfp4" => Some("mxfp4"),
            "modelopt_fp4" | "petit_nvfp4" => Some("nvfp4"),
            // Other names cover several layouts: which one, the checkpoint says and the log does not.
            other => {
                // llama.cpp prints `Q4_K - Medium` for Q4_K_M.
                let mix =
                    other.replace(" - medium", "_m").replace(" - small", "_s").replace(" - large", "_l");
                let gguf = format!("gguf:{}", mix.to_ascii_uppercase());
                match Quantization::from_id(&gguf) {
                    Some(found) => self.filled.scenario.weights.quantization = Some(found),
                    None => self.open("weights.quantization", other),
                }
                return;
            }
        };
        self.filled.scenario.weights.quantization = scheme.and_then(Quantization::from_id);
        self.filled.scenario.weights.file = None;
        self.state("quantization", "weights.quantization");
    }

    fn model(&mut self) {
        let Some(given) = self.evidence.text("model").map(str::to_owned) else { return };
        match preset_of(&given) {
            Some(id) => {
                self.filled.scenario.model =
                    ModelRef { preset: Some(id.to_owned()), config: None, overrides: None };
                self.state("model", "model.preset");
            }
            None => self.open("model.preset", &given),
        }
    }

    /// The device by the total that the log prints; its name only where the totals of two are alike.
    fn device(&mut self) {
        let Some(total) = self.evidence.bytes("total_capacity").and_then(|b| u64::try_from(b).ok()) else {
            return;
        };
        if total == 0 {
            return;
        }
        let device = &mut self.filled.scenario.device;
        // Two decimals of a GiB leave 5 MiB open.
        let known = GPUS.iter().find(|g| g.total_bytes.abs_diff(total) <= 6 << 20 && g.reported);
        device.preset = known.map(|gpu| gpu.id.to_owned());
        device.total_bytes = if known.is_some() { None } else { Some(total) };
        self.state("total_capacity", "device");
    }

    fn measured(&mut self) {
        let of = |key: &str| self.fullest(key).and_then(|b| u64::try_from(b).ok()).filter(|b| *b > 0);
        let mut measured = Measured {
            weights_bytes: of("weights"),
            kv_available_bytes: of("kv_available"),
            activation_peak_bytes: of("activation_peak"),
            non_torch_bytes: of("non_torch"),
            cuda_graph_bytes: of("cuda_graphs"),
            device_used_bytes: None,
        };
        // SGLang before 0.4.4 prints what was free before and after loading.
        if measured.weights_bytes.is_none()
            && let (Some(before), Some(after)) = (of("initial_free"), of("free_after_load"))
        {
            measured.weights_bytes = before.checked_sub(after);
        }
        // Since 2026 vLLM prints weights and what lies outside the allocator in one figure.
        if let (Some(weights), Some(both), None) =
            (measured.weights_bytes, of("weights_and_non_torch"), measured.non_torch_bytes)
        {
            measured.non_torch_bytes = both.checked_sub(weights);
        }
        for (key, path, some) in [
            ("weights", "measured.weights_bytes", measured.weights_bytes),
            ("kv_available", "measured.kv_available_bytes", measured.kv_available_bytes),
            ("activation_peak", "measured.activation_peak_bytes", measured.activation_peak_bytes),
            ("non_torch", "measured.non_torch_bytes", measured.non_torch_bytes),
            ("cuda_graphs", "measured.cuda_graph_bytes", measured.cuda_graph_bytes),
        ] {
            if some.is_some() {
                self.state(key, path);
            }
        }
        self.filled.scenario.measured = measured;
    }

    /// The figure of one device: of the one that holds most weights where a log prints one for each.
    fn fullest(&self, key: &str) -> Option<i64> {
        let of = |key: &str, device: Option<u32>| {
            self.evidence.facts.iter().rev().find(|f| f.key == key && f.device == device).and_then(
                |f| match f.value {
                    Figure::Bytes(bytes) => Some(bytes),
                    _ => None,
                },
            )
        };
        let devices = self.evidence.facts.iter().filter(|f| f.key == "weights" && f.device.is_some());
        match devices.filter_map(|f| f.device).max_by_key(|d| of("weights", Some(*d))) {
            Some(device) => of(key, Some(device)),
            None => self.evidence.bytes(key),
        }
    }
}

/// The shipped model that a name or a path means: its last part is that of the preset's own name or id, apart from
/// endings that change no shape.
fn preset_of(given: &str) -> Option<&'static str> {
    let wanted = plain(given);
    let all = || PRESETS.iter().filter_map(|p| Some((p, p.document().ok()?)));
    let named = |text: &str| plain(text) == wanted;
    all()
        .find(|(p, document)| {
            p.id == wanted || document["hf_id"].as_str().is_some_and(named) || plain(p.id) == wanted
        })
        .map(|(p, _)| p.id)
}

/// Endings of names of checkpoints with the same shapes.
const ENDINGS: &[&str] = &[
    "-instruct",
    "-chat",
    "-it",
    "-hf",
    "-base",
    "-fp8",
    "-awq",
    "-gptq",
    "-int4",
    "-int8",
    "-gguf",
    "-bf16",
    "-fp16",
    "-dynamic",
    "-quantized.w8a8",
    "-quantized.w4a16",
    "-gptq-int4",
    "-gptq-int8",
    "-bnb-4bit",
    "-fp8-dynamic",
    "-2507",
    ".gguf",
    "-q4-k-m",
    "-q8-0",
    "-nvfp4",
    "-v0.1",
    "-v0.2",
    "-v0.3",
    "-v1.5",
];

fn plain(name: &str) -> String {
    let last = name.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(name);
    // A cache of the hub: `models--meta-llama--Llama-3.1-8B-Instruct`.
    let last = last.rsplit("--").next().unwrap_or(last);
    let mut text = last.to_ascii_lowercase().replace('_', "-");
    text = text.trim_start_matches("meta-").to_owned();
    while let Some(shorter) = ENDINGS.iter().find_map(|end| text.strip_suffix(end)) {
        text = shorter.to_owned();
    }
    text
}
