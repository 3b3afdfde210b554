//! Where layers lie: devices first, the host last (`llama_model::load_tensors` in src/llama-model.cpp).

use crate::units::Problem;

/// Backend of every layer and of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) homes: Vec<usize>,
    pub(super) output_home: usize,
    /// The host: the number of devices.
    pub(super) host: usize,
    pub(super) experts_on_host: u64,
}

/// The last `gpu_layers` of layers and output go to devices, in order, by shares.
pub(super) fn place(layers: usize, gpu_layers: u64, shares: &[f64], output_first: bool) -> Placement {
    let host = shares.len();
    let all = layers as u64 + 1;
    let from = if output_first {
        all.saturating_sub(gpu_layers)
    } else {
        (layers as u64).saturating_sub(gpu_layers)
    };
    let on_devices = gpu_layers.min(all);
    // The engine counts in single precision; a layer belongs to the first device whose share ends beyond it.
    let total: f32 = shares.iter().map(|s| *s as f32).sum();
    let mut end = 0.0_f32;
    let ends: Vec<f32> = shares
        .iter()
        .map(|share| {
            end += *share as f32;
            end / total
        })
        .collect();
    let home = |layer: u64| {
        if layer < from || layer - from >= on_devices {
            return host;
        }
        let at = (layer - from) as f32 / on_devices as f32;
        ends.iter().position(|end| *end > at).unwrap_or(host.saturating_sub(1))
    };
    let homes = (0..layers as u64).map(home).collect();
    Placement { homes, output_home: home(layers as u64), host, experts_on_host: 0 }
}

/// Shares of devices as `--tensor-split` gives them: `3,1`; equal where none are given.
///
/// Errors: names the field where the text is no list of numbers, or longer than the devices.
pub(super) fn shares(text: Option<&str>, devices: usize) -> Result<Vec<f64>, Problem> {
    let Some(text) = text.map(str::trim).filter(|t| !t.is_empty()) else { return Ok(vec![1.0; devices]) };
    let bad = || {
        let accepted = format!("up to {devices} numbers from 0, e.g. 3,1");
        Problem::not_accepted("job.serve.tensor_split", text, accepted)
    };
    let mut out = Vec::new();
    for part in text.split([',', '/']) {
        let share: f64 = part.trim().parse().map_err(|_| bad())?;
        if !share.is_finite() || share < 0.0 {
            return Err(bad());
        }
        out.push(share);
    }
    if out.len() > devices || out.iter().sum::<f64>() <= 0.0 {
        return Err(bad());
    }
    out.resize(devices, 0.0);
    Ok(out)
}
