//! What ollama prints about its estimates and runners.
//!
//! Sources: `llm/memory.go` (`MemoryEstimate.LogValue`), `ml/device.go` (`DeviceMemory`), `server/sched.go`,
//! `llm/server.go`; github.com/ollama/ollama, 0.1 to 0.13.

use crate::evidence::found::Found;
use crate::evidence::number::Unit::{Binary, Count, Word};
use crate::evidence::rule::{Rule, Take};
use crate::evidence::window::Window;

const fn rule(anchor: &'static str) -> Rule {
    Rule::new(anchor).engine("ollama")
}

const OFFLOAD: &[Take] = &[
    Take::after("layers_total", "layers.model=", Count),
    Take::after("layers_offloaded", "layers.offload=", Count),
    Take::after("free", "memory.available=\"[", Binary),
    Take::after("required_full", "memory.required.full=\"", Binary),
    Take::after("required_partial", "memory.required.partial=\"", Binary),
    Take::after("kv_available", "memory.required.kv=\"", Binary),
    Take::after("weights", "memory.weights.total=\"", Binary),
    Take::after("activation_peak", "memory.graph.full=\"", Binary),
    Take::after("projector", "projector.weights=\"", Binary),
];

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    rule("msg=\"offload to").reach(1200).one_line().takes(OFFLOAD),
    rule("msg=offload library=").reach(1200).one_line().takes(OFFLOAD),
    rule("model requires more system memory (").kind("host_alloc_failed").reach(120).takes(&[
        Take::after("host_needed", "system memory (", Binary),
        Take::after("host_limit", "than is available (", Binary),
    ]),
    rule("insufficient memory - required allocations:").kind("ollama_no_fit").reach(60),
    rule("gpu VRAM usage didn't recover within timeout").reach(40),
    rule("runtime OOM detected; expiring loaded models").kind("ggml_cuda_oom").reach(40),
    rule("msg=\"model weights\" device=")
        .reach(80)
        .one_line()
        .more(|w, f| sized(w, f, "weights", "weights_host")),
    rule("msg=\"kv cache\" device=").reach(80).one_line().more(|w, f| sized(w, f, "kv_available", "kv_host")),
    rule("msg=\"compute graph\" device=")
        .reach(80)
        .one_line()
        .more(|w, f| sized(w, f, "activation_peak", "compute_host")),
    rule("msg=\"total memory\" size=\"").reach(20).takes(&[Take::after("required_full", "", Binary)]),
    rule("msg=\"inference compute\"").reach(400).one_line().takes(&[
        Take::after("gpu", "description=\"", crate::evidence::number::Unit::Phrase),
        Take::after("total_capacity", " total=\"", Binary),
        Take::after("free", " available=\"", Binary),
    ]),
    rule("KvSize:").reach(20).takes(&[Take::after("max_model_len", "", Count)]),
    rule("Listening on").needs(&["(version"]).reach(60).one_line().takes(&[Take::after(
        "engine_version",
        "(version",
        Word,
    )]),
];

/// `device=CUDA0 size="797.5 MiB"`.
fn sized(window: &Window, found: &mut Found, key: &'static str, host_key: &'static str) {
    let Some((_, name)) = window.find("device=", 0, window.len()) else { return };
    let Some((_, at)) = window.find("size=\"", name, window.len()) else { return };
    let Some((figure, _)) = window.figure(at, Binary) else { return };
    let device = window.slice(name, at);
    if device.starts_with("CPU") {
        found.fact(window, at, host_key, figure);
        return;
    }
    found.fact(window, at, key, figure);
    let digits: String =
        device.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    found.device(digits.parse().ok());
}
