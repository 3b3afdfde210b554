//! What SGLang prints. Its `GB` is 2^30 bytes.
//!
//! Sources: `python/sglang/srt/model_executor/model_runner.py` (`load_model`, `init_memory_pool`),
//! `python/sglang/srt/mem_cache/memory_pool.py` (`MHATokenToKVPool`, `MLATokenToKVPool`, `MambaPool`),
//! `python/sglang/srt/managers/schedule_batch.py` (`alloc_token_slots`, `retract_decode`),
//! `python/sglang/srt/managers/scheduler.py`; github.com/sgl-project/sglang, 0.1 to 0.5.

use crate::evidence::fact::Figure;
use crate::evidence::found::Found;
use crate::evidence::number::Unit::{Binary, Count, Real, Word};
use crate::evidence::rule::{Rule, Take};
use crate::evidence::window::Window;

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("sglang")
}

const POOL: &[Take] = &[Take::after("kv_tokens", "#tokens:", Count)];

const SERVER_ARGS: &[Take] = &[
    Take::after("model", "model_path=", Word),
    Take::after("dtype", " dtype=", Word),
    Take::after("tp", "tp_size=", Count),
    Take::after("pp", "pp_size=", Count),
    Take::after("dp", "dp_size=", Count),
    Take::after("mem_fraction_static", "mem_fraction_static=", Real),
    Take::after("max_model_len", "context_length=", Count),
    Take::after("kv_cache_dtype", "kv_cache_dtype=", Word),
    Take::after("quantization", " quantization=", Word),
    Take::after("max_num_seqs", "max_running_requests=", Count),
    Take::after("max_num_batched_tokens", "chunked_prefill_size=", Count),
    Take::after("block_size", " page_size=", Count),
];

const SHORT: &[Take] = &[
    Take::after("tokens_wanted", "Try to allocate", Count),
    Take::after("tokens_available", "Available tokens:", Count),
    Take::after("tokens_available", "Avaliable tokens:", Count),
    Take::after("tokens_available", "Available full tokens:", Count),
    Take::after("tokens_available_swa", "Available swa:", Count),
    Take::after("tokens_evictable", "full_evictable_size_=", Count),
    Take::after("tokens_evictable", "evictable_size()=", Count),
    Take::after("tokens_evictable", "+ evictable_size=", Count),
];

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    rule("Please try to increase --mem-fraction-static")
        .kind("sglang_not_enough_memory")
        .reach(120)
        .takes(&[Take::after("mem_fraction_static", "mem_fraction_static=", Real)]),
    rule("Capture cuda graph failed:").kind("sglang_graph_capture").needs(&["out of memory"]).reach(300),
    rule("Capture CUDA graph failed:").kind("sglang_graph_capture").needs(&["out of memory"]).reach(300),
    rule("Prefill out of memory. Try to lower your batch size").kind("sglang_prefill_oom").takes(SHORT),
    rule("Decode out of memory. Try to lower your batch size").kind("sglang_decode_oom").takes(SHORT),
    rule("Decode out of memory happened.").kind("sglang_retract").reach(80).takes(RETRACT),
    rule("KV cache pool is full. Retract requests.").kind("sglang_retract").reach(80).takes(RETRACT),
    rule("server_args=ServerArgs(").reach(6000).takes(SERVER_ARGS),
    rule("Load weight begin.").one_line().reach(60).takes(&[Take::after(
        "initial_free",
        "avail mem=",
        Binary,
    )]),
    rule("Load weight end.").reach(200).one_line().takes(&[
        Take::after("weights", "mem usage=", Binary),
        Take::after("free_after_load", "avail mem=", Binary),
        Take::after("dtype", "dtype=torch.", Word),
        Take::after("quantization", "quant=", Word),
    ]),
    rule("KV Cache is allocated.").reach(160).one_line().takes(POOL).more(pool),
    rule("SWAKVPool mem usage:").reach(40).takes(&[Take::after("kv_available", "", Binary)]),
    rule("Mamba Cache is allocated.").reach(240).one_line().more(states),
    rule("Memory pool end. avail mem=").reach(20).takes(&[Take::after("free_after_pool", "", Binary)]),
    rule("Capture cuda graph end.").reach(100).one_line().takes(GRAPHS),
    rule("decode CUDA graph end.").reach(100).one_line().takes(GRAPHS),
    rule("verify CUDA graph end.").reach(100).one_line().takes(GRAPHS),
    rule("max_total_num_tokens=").reach(240).one_line().takes(&[
        Take::after("kv_tokens", "", Count),
        Take::after("max_num_batched_tokens", "chunked_prefill_size=", Count),
        Take::after("max_num_seqs", "max_running_requests=", Count),
        Take::after("max_model_len", "context_len=", Count),
        Take::after("free_after_graphs", "available_gpu_mem=", Binary),
    ]),
    rule("Decode batch")
        .needs(&["#running-req:", "token usage:"])
        .reach(160)
        .one_line()
        .takes(&[Take::after("token_usage", "token usage:", Real)]),
];

const RETRACT: &[Take] = &[Take::after("retracted", "#retracted_reqs:", Count)];

const GRAPHS: &[Take] = &[
    Take::after("cuda_graphs", "mem usage=", Binary),
    Take::after("free_after_graphs", "avail mem=", Binary),
];

fn bytes_after(window: &Window, marker: &str) -> Option<(i64, usize)> {
    let (_, at) = window.find(marker, 0, window.len())?;
    match window.figure(at, Binary)? {
        (Figure::Bytes(bytes), _) => Some((bytes, at)),
        _ => None,
    }
}

/// A pool prints K and V apart, or one size where keys and values share a latent.
fn pool(window: &Window, found: &mut Found) {
    let parts = [bytes_after(window, "K size:"), bytes_after(window, "V size:")];
    let both = parts.iter().flatten().fold(0i64, |sum, (bytes, _)| sum.saturating_add(*bytes));
    let whole = match parts {
        [Some((_, at)), Some(_)] => Some((both, at)),
        _ => bytes_after(window, "KV size:"),
    };
    if let Some((bytes, at)) = whole {
        found.fact(window, at, "kv_available", Figure::Bytes(bytes));
    }
}

/// Recurrent states: convolutions, states, and what speculation keeps between steps.
fn states(window: &Window, found: &mut Found) {
    let markers = [
        "conv_state size:",
        " ssm_state size:",
        "intermediate_ssm_state_cache size:",
        "intermediate_conv_window_cache size:",
    ];
    let parts: Vec<_> = markers.iter().filter_map(|m| bytes_after(window, m)).collect();
    if let Some((_, at)) = parts.first() {
        let sum = parts.iter().fold(0i64, |sum, (bytes, _)| sum.saturating_add(*bytes));
        found.fact(window, *at, "recurrent_state", Figure::Bytes(sum));
    }
}
