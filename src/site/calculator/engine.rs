//! The engine and its options, under the engine's own names. Only options that matter for it are shown.

use super::field::{Choice, Flag, Typed, Wrong, id_of};
use crate::answer::Session;
use crate::form::{self, Kind};
use crate::words::t;
use leptos::prelude::*;
use oom_ledger_core::engines::{ENGINES, EngineOption, engine, kv_choices};

const PATH: &str = "job.serve.engine";
/// Options that stand open; the rest unfolds.
const SHOWN: usize = 7;

/// The choices of options that are chosen from a list; the first stands for the default.
fn choices(field: &str, engine: &str) -> Option<Vec<(String, String)>> {
    let same = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), (*id).to_owned())).collect();
    // Left open: the engine decides.
    let open = |ids: &[&str]| {
        let mut all: Vec<(String, String)> = vec![(String::new(), "option.by_engine".to_owned())];
        all.extend(ids.iter().filter(|id| **id != "auto").map(|id| ((*id).to_owned(), (*id).to_owned())));
        all
    };
    Some(match field {
        "kv_cache_dtype" => same(kv_choices(engine)),
        "kv_cache_dtype_v" => open(kv_choices(engine)),
        // llama.cpp turns its flash attention on or off; there is no third way.
        "attention" if engine == "transformers" => open(&["flash", "sdpa", "eager"]),
        "attention" => open(&["flash", "eager"]),
        "split_mode" => open(&["layer", "row", "none"]),
        "device_map" => open(&["auto", "balanced", "balanced_low_0", "sequential"]),
        "logits" => same(&["last", "all"]),
        "cache" => {
            same(&["dynamic", "static", "sliding", "quantized", "offloaded", "offloaded_static", "none"])
        }
        _ => return None,
    })
}

/// The part of the form.
#[component]
pub fn Engine() -> impl IntoView {
    let session = expect_context::<Session>();
    let chosen = Memo::new(move |_| session.form.with(|f| f.get(PATH).to_owned()));
    let rows = ENGINES
        .iter()
        .map(|e| {
            let (id, name) = (e.id(), e.name());
            view! { <option value=id selected=move || chosen.get() == id>{name}</option> }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for=id_of(PATH)>{t("input.engine")}</label>
            <select
                id=id_of(PATH)
                data-testid="engine-select"
                prop:value=move || chosen.get()
                on:change=move |event| session.set(PATH, &event_target_value(&event), true)
            >
                {rows}
            </select>
            <Wrong path=PATH/>
        </div>
        {move || {
            let options = engine(&chosen.get()).map(oom_ledger_core::engines::Engine::options).unwrap_or_default();
            let id = chosen.get();
            let (first, rest) = options.split_at(options.len().min(SHOWN));
            let one = |option| one(option, &id);
            let set = |option: &EngineOption| {
                session.form.with_untracked(|f| f.get(&format!("job.serve.{}", option.field)).to_owned())
            };
            // What a person, or a link, has set is not folded away.
            let open = rest.iter().any(|option| !matches!(set(option).as_str(), "" | "false" | "0" | "auto"));
            let more = rest.iter().filter_map(one).collect_view();
            view! {
                {first.iter().filter_map(one).collect_view()}
                {(!rest.is_empty()).then(|| view! {
                    <details class="more" open=open>
                        <summary>{t("option.more")}</summary>
                        {more}
                    </details>
                })}
            }
        }}
    }
}

fn one(option: &EngineOption, engine: &str) -> Option<AnyView> {
    let (path, _) = form::FIELDS.iter().find(|(p, _)| p.strip_prefix("job.serve.") == Some(option.field))?;
    // The load has a place of its own.
    if ["sequences", "prompt_tokens", "new_tokens", "engine"].contains(&option.field) {
        return None;
    }
    let label = label_of(option.field);
    let flag = if option.flag == option.field { "" } else { option.flag };
    if let Some(options) = choices(option.field, engine) {
        let unset = match option.field {
            "kv_cache_dtype" => "auto",
            "logits" => "last",
            "cache" => "dynamic",
            _ => "",
        };
        return Some(view! { <Choice path label flag options unset/> }.into_any());
    }
    Some(match form::kind(path) {
        Kind::Flag => view! { <Flag path label flag/> }.into_any(),
        _ => view! { <Typed path label flag default=option.default/> }.into_any(),
    })
}

/// Key of the label of an engine option.
fn label_of(field: &str) -> &'static str {
    const LABELS: &[(&str, &str)] = &[
        ("engine_version", "option.engine_version"),
        ("kv_cache_dtype", "option.kv_cache_dtype"),
        ("block_size", "option.block_size"),
        ("max_model_len", "option.max_model_len"),
        ("gpu_memory_utilization", "option.gpu_memory_utilization"),
        ("max_num_seqs", "option.max_num_seqs"),
        ("max_num_batched_tokens", "option.max_num_batched_tokens"),
        ("enforce_eager", "option.enforce_eager"),
        ("num_speculative_tokens", "option.num_speculative_tokens"),
        ("prefix_caching", "option.prefix_caching"),
        ("attention", "option.attention"),
        ("logits", "option.logits"),
        ("cache", "option.cache"),
        ("padding_mask", "option.padding_mask"),
        ("mem_fraction_static", "option.mem_fraction_static"),
        ("ubatch", "option.ubatch"),
        ("gpu_layers", "option.gpu_layers"),
        ("cpu_offload_bytes", "option.cpu_offload_bytes"),
        ("swap_space_bytes", "option.swap_space_bytes"),
        ("kv_cache_memory_bytes", "option.kv_cache_memory_bytes"),
        ("num_gpu_blocks_override", "option.num_gpu_blocks_override"),
        ("max_cudagraph_capture_size", "option.max_cudagraph_capture_size"),
        ("max_loras", "option.max_loras"),
        ("max_lora_rank", "option.max_lora_rank"),
        ("sleep_level", "option.sleep_level"),
        ("images_per_prompt", "option.images_per_prompt"),
        ("max_logprobs", "option.max_logprobs"),
        ("prompt_logprobs", "option.prompt_logprobs"),
        ("free_gpu_memory_fraction", "option.free_gpu_memory_fraction"),
        ("max_total_tokens", "option.max_total_tokens"),
        ("swa_full_tokens_ratio", "option.swa_full_tokens_ratio"),
        ("mamba_full_memory_ratio", "option.mamba_full_memory_ratio"),
        ("dp_attention", "option.dp_attention"),
        ("kv_cache_dtype_v", "option.kv_cache_dtype_v"),
        ("swa_full", "option.swa_full"),
        ("kv_unified", "option.kv_unified"),
        ("tensor_split", "option.tensor_split"),
        ("split_mode", "option.split_mode"),
        ("no_mmap", "option.no_mmap"),
        ("no_kv_offload", "option.no_kv_offload"),
        ("n_cpu_moe", "option.n_cpu_moe"),
        ("num_beams", "option.num_beams"),
        ("num_return_sequences", "option.num_return_sequences"),
        ("do_sample", "option.do_sample"),
        ("device_map", "option.device_map"),
    ];
    LABELS.iter().find(|(f, _)| *f == field).map_or("option.other", |(_, key)| key)
}

/// Figures from the person's own log, which replace modelled terms.
#[component]
pub fn Measured() -> impl IntoView {
    let session = expect_context::<Session>();
    let any = session.form.with_untracked(|f| {
        form::FIELDS.iter().any(|(p, _)| p.starts_with("measured.") && !f.get(p).is_empty())
    });
    view! {
        <details class="more" open=any>
            <summary>{t("input.measured_summary")}</summary>
            <Typed path="measured.weights_bytes" label="measured.weights" default="14.99 GiB"/>
            <Typed path="measured.kv_available_bytes" label="measured.kv"/>
            <Typed path="measured.activation_peak_bytes" label="measured.activation"/>
            <Typed path="measured.non_torch_bytes" label="measured.non_torch"/>
            <Typed path="measured.cuda_graph_bytes" label="measured.graphs"/>
            <Typed path="measured.device_used_bytes" label="measured.device_used"/>
        </details>
    }
}
