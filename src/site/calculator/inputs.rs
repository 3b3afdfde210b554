//! The input half. On a phone it opens from a summary line, so that the answer comes first.

use super::config::Config;
use super::device::Device;
use super::engine::{Engine, Measured};
use super::field::{Choice, Typed};
use super::model::ModelSearch;
use super::training::{Job, Training};
use crate::answer::Session;
use crate::form::Form;
use crate::words::t;
use leptos::prelude::*;
use oom_ledger_core::model::Quantization;

/// All inputs.
#[component]
pub fn Inputs() -> impl IntoView {
    let session = expect_context::<Session>();
    // On a wide window always open; on a phone the answer comes first.
    let wide = crate::browser::wide();
    let dtypes = ["bf16", "fp16", "fp32"].map(|d| (d.to_owned(), d.to_owned())).to_vec();
    let training = Memo::new(move |_| session.form.with(Form::training));
    view! {
        <details class="inputs" prop:open=move || wide.get()>
        <summary class="sheet">{t("site.change_inputs")}</summary>
        <form aria-label=t("site.inputs") on:submit=|event| event.prevent_default()>
            <Job/>
            <fieldset>
                <legend>{t("input.model")}</legend>
                <ModelSearch/>
                <Config/>
                // In training the precision scheme says it.
                <div class="pair" hidden=move || training.get()>
                    <Choice path="weights.dtype" label="input.dtype" options=dtypes unset="bf16"/>
                    <Choice path="weights.quantization" label="input.quantization" options=quantizations()/>
                </div>
            </fieldset>
            <fieldset>
                <legend>{t("input.device")}</legend>
                <Device/>
            </fieldset>
            {move || if training.get() { view! { <Training/> }.into_any() } else { serving().into_any() }}
        </form>
        </details>
    }
}

fn quantizations() -> Vec<(String, String)> {
    // Every mix: a file that is dropped may have any.
    let gguf = oom_ledger_core::memory::weights::gguf_types();
    std::iter::once((String::new(), "input.no_quantization".to_owned()))
        .chain(Quantization::NAMED.iter().map(|(id, _)| ((*id).to_owned(), (*id).to_owned())))
        .chain(gguf.map(|kind| (format!("gguf:{kind}"), format!("GGUF {kind}"))))
        .collect()
}

/// Load, engine and parallelism of a serving job.
fn serving() -> impl IntoView {
    let session = expect_context::<Session>();
    view! {
            <fieldset>
                <legend>{t("input.load")}</legend>
                <div class="pair">
                    <Typed path="job.serve.prompt_tokens" label="input.prompt_tokens" default="1024"/>
                    <Typed path="job.serve.new_tokens" label="input.new_tokens" default="256"/>
                </div>
                <Typed path="job.serve.sequences" label="input.sequences" default="1"/>
            </fieldset>
            <fieldset>
                <legend>{t("input.engine")}</legend>
                <Engine/>
            </fieldset>
            <fieldset>
                <legend>{t("input.parallel")}</legend>
                <div class="pair">
                    <Typed path="parallel.tensor" label="input.tensor" default="1"/>
                    <Typed path="parallel.pipeline" label="input.pipeline" default="1"/>
                </div>
                <details class="more" open=move || session.form.with_untracked(|f| {
                    ["parallel.data", "parallel.expert", "parallel.context"].iter().any(|p| !f.get(p).is_empty())
                })>
                    <summary>{t("input.more_parallel")}</summary>
                    <div class="pair">
                        <Typed path="parallel.data" label="input.data" default="1"/>
                        <Typed path="parallel.expert" label="input.expert" default="1"/>
                    </div>
                    <Typed path="parallel.context" label="input.context" default="1"/>
                </details>
            </fieldset>
            <fieldset>
                <legend>{t("input.measured")}</legend>
                <Measured/>
            </fieldset>
    }
}
