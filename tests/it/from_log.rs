//! A log fills in a Scenario: what it states is taken over, what it does not stays, and its ledger closes.

use oom_ledger_core::engines::ServeSettings;
use oom_ledger_core::evidence::read;
use oom_ledger_core::share::{Job, Scenario, from_log};

fn base() -> Scenario {
    Scenario::from_json_str(
        r#"{"schema":1,"model":{"preset":"qwen2.5-7b"},"device":{"preset":"a100-80gb"},
            "job":{"serve":{"engine":"vllm","max_num_seqs":64}}}"#,
    )
    .unwrap()
}

fn serve(scenario: &Scenario) -> &ServeSettings {
    match &scenario.job {
        Job::Serve(serve) => serve,
        Job::Train(_) => panic!("a serving job"),
    }
}

/// Figures of vllm-project/vllm issues of 0.10, put together for one 8B job; lines as that release prints them.
const VLLM: &str = "\
INFO 10-21 06:12:00 [api_server.py:1805] vLLM API server version 0.10.1
INFO 10-21 06:12:11 [core.py:74] Initializing a V1 LLM engine (v0.10.1) with config: model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=None, tokenizer='meta-llama/Llama-3.1-8B-Instruct', dtype=torch.bfloat16, max_seq_len=8192, download_dir=None, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda
INFO 10-21 06:12:31 [gpu_model_runner.py:2007] Model loading took 14.9889 GiB and 9.1 seconds
INFO 10-21 06:13:01 [gpu_worker.py:276] Available KV cache memory: 54.62 GiB
INFO 10-21 06:13:01 [kv_cache_utils.py:849] GPU KV cache size: 447,440 tokens
INFO 10-21 06:13:01 [kv_cache_utils.py:853] Maximum concurrency for 8,192 tokens per request: 54.62x
INFO 10-21 06:13:21 [gpu_model_runner.py:2708] Graph capturing finished in 20 secs, took 0.54 GiB
INFO 10-21 06:13:21 [gpu_worker.py:391] Free memory on device (78.57/79.11 GiB) on startup. Desired GPU memory utilization is (0.9, 71.2 GiB). Actual usage is 14.99 GiB for weight, 1.23 GiB for peak activation, 0.36 GiB for non-torch memory, and 0.54 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=58011938816` (54.03 GiB) to fit into requested memory, or `--kv-cache-memory=65970012160` (61.44 GiB) to fully utilize gpu memory. Current kv cache memory in use is 54.62 GiB.
";

#[test]
fn a_vllm_log_fills_the_calculator_and_the_ledger_closes() {
    let filled = from_log(&base(), &read(VLLM.as_bytes()).evidence).unwrap();
    let scenario = &filled.scenario;
    assert_eq!(scenario.model.preset.as_deref(), Some("llama-3.1-8b"));
    assert_eq!(serve(scenario).engine_version.as_deref(), Some("0.10.1"));
    assert_eq!(serve(scenario).max_model_len, Some(8192));
    assert_eq!(serve(scenario).gpu_memory_utilization, Some(0.9));
    // Not stated by the log: kept.
    assert_eq!(serve(scenario).max_num_seqs, Some(64));
    let gib = |x: f64| (x * f64::from(1 << 30)).round() as u64;
    assert_eq!(scenario.measured.kv_available_bytes, Some(gib(54.62)));
    assert_eq!(scenario.measured.activation_peak_bytes, Some(gib(1.23)));
    assert_eq!(scenario.measured.non_torch_bytes, Some(gib(0.36)));
    assert_eq!(scenario.measured.cuda_graph_bytes, Some(gib(0.54)));
    assert!(filled.open.is_empty(), "{:?}", filled.open);
    let estimate = scenario.resolve().unwrap().estimate().unwrap();
    // The tokens that the log printed follow from its pool: to the rounding of 54.62 GiB.
    let tokens = estimate.kv.as_ref().unwrap().tokens;
    assert!(tokens.abs_diff(447_440) <= 447_440 / 5000, "{tokens}");
}

#[test]
fn a_model_that_is_not_shipped_is_left_open() {
    let text = VLLM.replace("meta-llama/Llama-3.1-8B-Instruct", "acme/Unheard-9B");
    let filled = from_log(&base(), &read(text.as_bytes()).evidence).unwrap();
    assert_eq!(filled.scenario.model.preset.as_deref(), Some("qwen2.5-7b"));
    assert_eq!(filled.open.len(), 1);
}

#[test]
fn degrees_give_devices_and_a_text_without_an_engine_gives_nothing() {
    let text = "INFO [core.py:1] Initializing an LLM engine (v0.8.5) with config: model='Qwen/Qwen2.5-7B-Instruct', \
        dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=2, pipeline_parallel_size=2, quantization=awq_marlin";
    let filled = from_log(&base(), &read(text.as_bytes()).evidence).unwrap();
    let scenario = &filled.scenario;
    assert_eq!((scenario.parallel.tensor, scenario.parallel.pipeline, scenario.device.count), (2, 2, 4));
    assert_eq!(serve(scenario).engine_version.as_deref(), Some("0.8.5 (V0)"));
    assert_eq!(scenario.weights.dtype.id(), "fp16");
    assert_eq!(
        scenario.weights.quantization.as_ref().map(oom_ledger_core::model::Quantization::id).as_deref(),
        Some("awq-int4")
    );
    assert!(scenario.resolve().is_ok());
    assert!(from_log(&base(), &read(b"CUDA out of memory. Tried to allocate 2.00 GiB").evidence).is_none());
}
