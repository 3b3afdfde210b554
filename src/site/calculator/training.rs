//! The settings of a training step, under the names that Hugging Face and PyTorch use.

use super::field::{Choice, Flag, Typed};
use crate::answer::Session;
use crate::form::Form;
use crate::words::t;
use leptos::prelude::*;

/// Values that are their own names.
fn same(ids: &[&str]) -> Vec<(String, String)> {
    ids.iter().map(|id| ((*id).to_owned(), (*id).to_owned())).collect()
}

/// Values with a text each: `<prefix>.<value>`.
fn named(prefix: &str, ids: &[&str]) -> Vec<(String, String)> {
    ids.iter().map(|id| ((*id).to_owned(), format!("{prefix}.{id}"))).collect()
}

/// Which job: the rest of the form follows it.
#[component]
pub fn Job() -> impl IntoView {
    let session = expect_context::<Session>();
    let chosen = Memo::new(move |_| session.form.with(Form::training));
    let choice = move |training: bool, label: &'static str, id: &'static str| {
        view! {
            <label class="job">
                <input
                    type="radio"
                    name="job"
                    data-testid=id
                    prop:checked=move || chosen.get() == training
                    on:change=move |_| session.set("job", if training { "train" } else { "" }, true)
                />
                <span>{t(label)}</span>
            </label>
        }
    };
    view! {
        <fieldset class="jobs">
            <legend>{t("input.job")}</legend>
            {choice(false, "input.serve", "job-serve")}
            {choice(true, "input.train", "job-train")}
        </fieldset>
    }
}

/// The settings of a step.
#[component]
pub fn Training() -> impl IntoView {
    let session = expect_context::<Session>();
    let more = session.form.with_untracked(|f| {
        ["gradient_accumulation", "zero_stage", "fsdp", "offload_optimizer", "offload_params"]
            .iter()
            .any(|name| !matches!(f.get(&format!("job.train.{name}")), "" | "0" | "1" | "false"))
    });
    view! {
        <fieldset>
            <legend>{t("input.step")}</legend>
            <div class="pair">
                <Typed path="job.train.micro_batch" label="train.micro_batch" default="1"/>
                <Typed path="job.train.seq_len" label="train.seq_len" default="2048"/>
            </div>
            <Choice path="job.train.precision" label="train.precision" unset="bf16"
                options=named("precision", &["bf16", "bf16-mixed", "fp16-mixed", "bf16-master", "fp32"])/>
            <Choice path="job.train.attention" label="option.attention" unset="sdpa" options=same(&["sdpa", "flash", "eager"])/>
            <Choice path="job.train.checkpointing" label="train.checkpointing" unset="none"
                options=named("checkpointing", &["none", "selective", "full"])/>
            <Choice path="job.train.loss" label="train.loss" unset="hf" options=named("loss", &["hf", "plain", "fused"])/>
        </fieldset>
        <fieldset>
            <legend>{t("input.optimizer")}</legend>
            <div class="pair">
                <Choice path="job.train.optimizer" label="train.optimizer" unset="adamw"
                    options=same(&["adamw", "adamw8bit", "paged_adamw8bit", "adafactor", "sgd", "sgd_momentum", "lion", "muon"])/>
                <Choice path="job.train.optimizer_impl" label="train.optimizer_impl" unset="foreach"
                    options=same(&["foreach", "fused", "forloop"])/>
            </div>
        </fieldset>
        <fieldset>
            <legend>"LoRA"</legend>
            <div class="pair">
                <Typed path="job.train.lora.rank" label="train.lora_rank"/>
                <Typed path="job.train.lora.targets" label="train.lora_targets" default="all-linear"/>
            </div>
            <Choice path="job.train.base_quantization" label="train.base_quantization"
                options=vec![(String::new(), "train.base_plain".to_owned()), ("bnb-nf4".to_owned(), "bnb-nf4".to_owned()),
                    ("bnb-int8".to_owned(), "bnb-int8".to_owned())]/>
        </fieldset>
        <fieldset>
            <legend>{t("input.sharding")}</legend>
            <details class="more" open=more>
                <summary>{t("input.sharding_summary")}</summary>
                <div class="pair">
                    <Typed path="job.train.zero_stage" label="train.zero_stage" default="0"/>
                    <Typed path="parallel.data" label="input.data" default="1"/>
                </div>
                <div class="pair">
                    <Typed path="job.train.fsdp" label="train.fsdp"/>
                    <Typed path="job.train.gradient_accumulation" label="train.gradient_accumulation" default="1"/>
                </div>
                <div class="pair">
                    <Typed path="parallel.tensor" label="input.tensor" default="1"/>
                    <Typed path="parallel.pipeline" label="input.pipeline" default="1"/>
                </div>
                <Flag path="job.train.offload_optimizer" label="train.offload_optimizer"/>
                <Flag path="job.train.offload_params" label="train.offload_params"/>
            </details>
        </fieldset>
    }
}
