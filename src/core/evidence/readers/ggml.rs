//! What ggml and llama.cpp print: refused buffers, and the buffers allocated at start.
//!
//! Sources: `ggml/src/ggml-cuda/ggml-cuda.cu` (`ggml_backend_cuda_buffer_type_alloc_buffer`), `ggml/src/ggml-alloc.c`
//! (`ggml_gallocr_reserve_n`, `alloc_tensor_range`), `src/llama-model.cpp` (`load_tensors`), `src/llama-kv-cache*.cpp`,
//! `src/llama-context.cpp`, `common/fit.cpp` (`common_memory_breakdown_print`); github.com/ggml-org/llama.cpp.

use crate::evidence::fact::Figure;
use crate::evidence::found::Found;
use crate::evidence::number::Unit::{Binary, Bytes, Count, Mib, Phrase, Word};
use crate::evidence::rule::{Rule, Take};
use crate::evidence::window::Window;

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("llama_cpp")
}

/// Errors.
pub(crate) const ERRORS: &[Rule] = &[
    Rule::new("allocating").needs(&["cudaMalloc failed: out of memory"]).reach(400).more(refused),
    rule("alloc_tensor_range: failed to allocate").needs(&["buffer of size"]).reach(60).more(buffer),
    rule("ggml_gallocr_reserve_n").needs(&["failed to allocate", "buffer of size"]).reach(90).more(buffer),
    Rule::new("CUDA error: out of memory")
        .needs(&["current device:"])
        .kind("ggml_cuda_oom")
        .engine("llama_cpp")
        .reach(300)
        .takes(&[Take::after("device", "current device:", Count)]),
    Rule::new("CUDA error 2 at")
        .needs(&["out of memory"])
        .kind("ggml_cuda_oom")
        .engine("llama_cpp")
        .reach(200),
    rule("failed to fit params to free device memory").reach(120),
    rule("failed to allocate compute").needs(&["buffers"]).kind("ggml_gallocr").reach(30),
    rule("compute buffer allocation failed, retrying without pipeline parallelism").reach(20),
    rule("failed to allocate buffer for kv cache").kind("ggml_backend_buffer").reach(20),
    rule("error loading model: unable to allocate").kind("ggml_backend_buffer").reach(40),
];

/// Buffers and settings at start.
pub(crate) const START: &[Rule] = &[
    rule("load_tensors:")
        .needs(&["model buffer size"])
        .reach(90)
        .one_line()
        .more(|w, f| sized(w, f, "weights")),
    rule("llm_load_tensors:")
        .needs(&["buffer size"])
        .reach(90)
        .one_line()
        .more(|w, f| sized(w, f, "weights")),
    rule("llama_kv_cache")
        .needs(&["KV buffer size"])
        .reach(110)
        .one_line()
        .more(|w, f| sized(w, f, "kv_available")),
    rule("llama_memory_recurrent:")
        .needs(&["RS buffer size"])
        .reach(90)
        .one_line()
        .more(|w, f| sized(w, f, "recurrent_state")),
    rule("llama_new_context_with_model:")
        .needs(&["compute buffer size"])
        .reach(110)
        .one_line()
        .more(|w, f| sized(w, f, "activation_peak")),
    rule("llama_init_from_model:")
        .needs(&["compute buffer size"])
        .reach(110)
        .one_line()
        .more(|w, f| sized(w, f, "activation_peak")),
    rule("llama_context:")
        .needs(&["compute buffer size"])
        .reach(110)
        .one_line()
        .more(|w, f| sized(w, f, "activation_peak")),
    rule("sched_reserve:")
        .needs(&["compute buffer size"])
        .reach(110)
        .one_line()
        .more(|w, f| sized(w, f, "activation_peak")),
    rule("graph_reserve:")
        .needs(&["compute buffer size"])
        .reach(110)
        .one_line()
        .more(|w, f| sized(w, f, "activation_peak")),
    rule("output buffer size =").reach(20).takes(&[Take::after("output_buffer", "", Binary)]),
    rule("KV self size =").reach(20).takes(&[Take::after("kv_total", "", Binary)]),
    rule("llama_kv_cache: size =")
        .reach(60)
        .one_line()
        .takes(&[Take::after("kv_total", "size =", Binary), Take::before("kv_tokens", "cells", Count)]),
    rule("llama_kv_cache_unified: size =")
        .reach(60)
        .one_line()
        .takes(&[Take::after("kv_total", "size =", Binary), Take::before("kv_tokens", "cells", Count)]),
    rule("offloaded")
        .needs(&["layers to GPU"])
        .reach(40)
        .one_line()
        .takes(&[Take::after("layers_offloaded", "", Count), Take::after("layers_total", "/", Count)]),
    rule("n_ctx =").reach(20).takes(&[Take::after("max_model_len", "", Count)]),
    rule("n_ubatch =").reach(20).takes(&[Take::after("ubatch", "", Count)]),
    rule("n_seq_max =").reach(20).takes(&[Take::after("max_num_seqs", "", Count)]),
    rule("common_memory_breakdown_print:").reach(200).one_line().more(breakdown),
    rule("llama_memory_breakdown_print:").reach(200).one_line().more(breakdown),
    rule("load_model: loading model '").reach(300).one_line().takes(&[Take::after(
        "model",
        "loading model",
        Word,
    )]),
    rule("general.name =").reach(60).one_line().takes(&[Take::after("model", "", Phrase)]),
    rule("general.name str =").reach(60).one_line().takes(&[Take::after("model", "", Phrase)]),
    rule("print_info: file type =").reach(30).one_line().takes(&[Take::after("quantization", "", Phrase)]),
    rule("llm_load_print_meta: model ftype =").reach(30).one_line().takes(&[Take::after(
        "quantization",
        "",
        Phrase,
    )]),
    rule("ggml_cuda_init: found").reach(120).takes(&[Take::after("gpu", "Device 0:", Phrase)]),
];

/// `allocating {f} MiB on device {i}: cudaMalloc failed`: what it was for stands on the next lines.
fn refused(window: &Window, found: &mut Found) {
    let (_, head) = window.find("allocating", 0, window.len()).unwrap_or((0, 0));
    let Some((Figure::Bytes(bytes), _)) = window.figure(head, Binary) else { return };
    let compute = window.has("ggml_gallocr_reserve_n", 0, window.len());
    found.error(if compute { "ggml_gallocr" } else { "ggml_backend_buffer" }, window);
    found.fact(window, 0, "engine", Figure::Text("llama_cpp".to_owned()));
    // The next line has the same size to the byte.
    let exact = window
        .find("buffer of size", 0, window.len())
        .and_then(|(_, at)| window.figure(at, Bytes).map(|(figure, _)| (figure, at)));
    let near = |f: &Figure| matches!(f, Figure::Bytes(n) if (n - bytes).abs() <= 1 << 20);
    match exact.filter(|(figure, _)| near(figure)) {
        Some((figure, at)) => found.fact(window, at, "tried_to_allocate", figure),
        None => found.fact(window, head, "tried_to_allocate", Figure::Bytes(bytes)),
    }
    if let Some((_, at)) = window.find("on device", 0, window.len())
        && let Some((Figure::Count(device), _)) = window.figure(at, Count)
    {
        found.device(u32::try_from(device).ok());
    }
}

/// `ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size {n}`, alone or after the line above.
fn buffer(window: &Window, found: &mut Found) {
    let Some((_, at)) = window.find("buffer of size", 0, window.len()) else { return };
    let Some((figure, _)) = window.figure(at, Bytes) else { return };
    let graph = window.has("ggml_gallocr_reserve_n", 0, window.len());
    found.error(if graph { "ggml_gallocr" } else { "ggml_backend_buffer" }, window);
    found.fact(window, at, "tried_to_allocate", figure);
}

/// One buffer: its size, and the device or the host it lies on.
fn sized(window: &Window, found: &mut Found, key: &'static str) {
    let Some((start, end)) = window.find("size =", 0, window.len()) else { return };
    let Some((figure, _)) = window.figure(end, Mib) else { return };
    let head = window.slice(0, start);
    let host = ["CPU", "Host", "host", "AMX"].iter().any(|h| head.contains(h));
    let host_key = match key {
        "weights" => "weights_host",
        "kv_available" => "kv_host",
        "activation_peak" => "compute_host",
        _ => key,
    };
    let device = ["CUDA", "ROCm", "SYCL", "Vulkan", "Metal", "CANN", "MUSA"].iter().find_map(|name| {
        let rest = head.split(name).nth(1)?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok()
    });
    found.fact(window, end, if host { host_key } else { key }, figure);
    found.device(device);
}

/// `- CUDA0 (RTX 5090) | 32606 = 30330 + (21832 = 16386 + 4950 + 495) + …`: whole MiB of total, free, self, model,
/// context, compute.
fn breakdown(window: &Window, found: &mut Found) {
    let Some((_, bar)) =
        window.find("|", 0, window.len()).and_then(|(_, first)| window.find("|", first, window.len()))
    else {
        return;
    };
    let mut figures = Vec::new();
    let mut at = bar;
    while at < window.len() && figures.len() < 6 {
        match window.figure(at, Mib) {
            Some((Figure::Bytes(bytes), end)) => {
                figures.push((at, bytes));
                at = end;
            }
            _ => at += 1,
        }
    }
    if figures.len() < 6 || window.has("breakdown [MiB]", 0, window.len()) || window.has("Host", 0, bar) {
        return;
    }
    let keys = ["total_capacity", "free", "this_process", "weights", "kv_available", "activation_peak"];
    for (key, (at, bytes)) in keys.into_iter().zip(figures) {
        found.fact(window, at, key, Figure::Bytes(bytes));
    }
    let device = window
        .slice(0, bar)
        .split("CUDA")
        .nth(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    found.device(device.and_then(|d| d.parse().ok()));
}
