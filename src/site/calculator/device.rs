//! The device: one of the table, by family, or a size typed in.

use super::field::{Typed, Wrong, id_of};
use crate::answer::Session;
use crate::words::{now, t};
use leptos::prelude::*;
use oom_ledger_core::hardware::{GPUS, Gpu, Vendor, gpu};
use oom_ledger_core::units::{Bytes, bytes_exact, bytes_human};

const PATH: &str = "device.preset";

/// The order shown: what people serve on comes first.
const ORDER: &[&str] =
    &["gpu.datacenter", "gpu.workstation", "gpu.geforce", "gpu.amd", "gpu.mig", "gpu.unified"];

/// Which group of the list a device stands in.
fn group_of(g: &Gpu) -> &'static str {
    let named = |words: &[&str]| words.iter().any(|w| g.name.contains(w));
    if named(&["MIG"]) {
        "gpu.mig"
    } else if g.unified {
        "gpu.unified"
    } else if g.vendor == Vendor::Amd {
        "gpu.amd"
    } else if named(&["GeForce"]) {
        "gpu.geforce"
    } else if named(&["RTX", "Quadro", "TITAN"]) {
        "gpu.workstation"
    } else {
        "gpu.datacenter"
    }
}

/// The part of the form.
#[component]
pub fn Device() -> impl IntoView {
    let session = expect_context::<Session>();
    let chosen = Memo::new(move |_| session.form.with(|f| f.get(PATH).to_owned()));
    let groups = ORDER
        .iter()
        .map(|group| {
            let rows = GPUS
                .iter()
                .filter(|g| group_of(g) == *group)
                .map(|g| {
                    view! {
                        <option value=g.id selected=move || chosen.get() == g.id>
                            {format!("{} — {}", g.name, bytes_human(Bytes(g.total_bytes)))}
                        </option>
                    }
                })
                .collect_view();
            view! { <optgroup label=t(group)>{rows}</optgroup> }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for=id_of(PATH)>{t("input.gpu")}</label>
            <select
                id=id_of(PATH)
                data-testid="gpu-select"
                prop:value=move || chosen.get()
                on:change=move |event| {
                    session.form.update(|f| f.set("device.total_bytes", ""));
                    session.set(PATH, &event_target_value(&event), true);
                }
            >
                {groups}
            </select>
            <Wrong path=PATH/>
            {move || {
                let typed = session.form.with(|f| !f.get("device.total_bytes").trim().is_empty());
                let row = gpu(&chosen.get());
                row.filter(|_| !typed).map(|g| view! {
                    <p class="hint">
                        {move || now(if g.reported { "gpu.reported" } else { "gpu.derived" })}
                        " " {bytes_exact(Bytes(g.total_bytes))}
                    </p>
                    <details class="more hint">
                        <summary>{t("gpu.source")}</summary>
                        <p>{g.source}</p>
                    </details>
                    {g.unified.then(|| view! { <p class="hint">{t("gpu.unified_hint")}</p> })}
                })
            }}
        </div>
        <div class="pair">
            <Typed path="device.total_bytes" label="input.gpu_bytes" default="24564 MiB" testid="gpu-bytes"/>
            <Typed path="device.count" label="input.count" default="1"/>
        </div>
        <Typed path="device.other_processes_bytes" label="input.other_processes" default="0"/>
    }
}
