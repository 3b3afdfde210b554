//! Looks up the names of a Scenario and checks its values.

use super::fields::{self, Kind};
use super::nearest::similar;
use super::read::{SCHEMA, cut};
use super::{DeviceRef, Job, ModelRef, Resolved, Scenario};
use crate::engines::training::{ALL_LINEAR, Targets, TrainSettings};
use crate::engines::{ServeSettings, engine};
use crate::hardware::{Device, GPUS, gpu};
use crate::memory::{Measured, Parallel};
use crate::model::{Model, PRESETS, preset};
use crate::units::{Message, Problem};
use serde_json::Map;

impl Scenario {
    /// Looks up names and checks values.
    ///
    /// Errors: the first field that cannot be used, with what it accepts.
    pub fn resolve(&self) -> Result<Resolved, Problem> {
        if self.schema != SCHEMA {
            return Err(Problem::not_accepted("schema", u64::from(self.schema), SCHEMA.to_string()));
        }
        let (serve, train) = match &self.job {
            Job::Serve(serve) => {
                check_serve(serve)?;
                (serve.clone(), None)
            }
            Job::Train(train) => {
                check_train(train)?;
                (ServeSettings::default(), Some(train.clone()))
            }
        };
        check_measured(&self.measured)?;
        let device = device(&self.device)?;
        check_parallel(&self.parallel, serve.dp_attention, device.count)?;
        Ok(Resolved {
            model: model("model", &self.model)?,
            draft: self.draft_model.as_ref().map(|given| model("draft_model", given)).transpose()?,
            device,
            parallel: self.parallel,
            weights: self.weights.clone(),
            serve,
            train,
            measured: self.measured,
        })
    }
}

fn whole(path: &str, given: u64, kind: Kind) -> Result<(), Problem> {
    match kind {
        Kind::Whole(low, high) if !(low..=high).contains(&given) => {
            Err(Problem::not_accepted(path, given, kind.accepted()))
        }
        _ => Ok(()),
    }
}

fn check_serve(serve: &ServeSettings) -> Result<(), Problem> {
    engine(&serve.engine)?;
    let at = |name: &str| format!("job.serve.{name}");
    for (name, given, kind) in [
        ("block_size", serve.block_size, fields::BLOCK),
        ("max_model_len", serve.max_model_len, fields::TOKENS),
        ("max_num_seqs", serve.max_num_seqs, fields::SEQUENCES),
        ("max_num_batched_tokens", serve.max_num_batched_tokens, fields::TOKENS),
        ("num_speculative_tokens", Some(serve.num_speculative_tokens), fields::SPECULATIVE),
        ("ubatch", serve.ubatch, fields::SEQUENCES),
        ("gpu_layers", serve.gpu_layers, fields::LAYERS),
        ("cpu_offload_bytes", serve.cpu_offload_bytes, fields::BYTES),
        ("swap_space_bytes", serve.swap_space_bytes, fields::BYTES),
        ("kv_cache_memory_bytes", serve.kv_cache_memory_bytes, fields::BYTES),
        ("num_gpu_blocks_override", serve.num_gpu_blocks_override, fields::TOKENS),
        ("max_cudagraph_capture_size", serve.max_cudagraph_capture_size, fields::SEQUENCES0),
        ("max_loras", serve.max_loras, fields::SEQUENCES0),
        ("max_lora_rank", serve.max_lora_rank, fields::SEQUENCES),
        ("sleep_level", serve.sleep_level, fields::SLEEP),
        ("images_per_prompt", serve.images_per_prompt, fields::SEQUENCES0),
        ("max_logprobs", serve.max_logprobs, fields::SEQUENCES0),
        ("max_total_tokens", serve.max_total_tokens, fields::TOKENS),
        ("n_cpu_moe", serve.n_cpu_moe, fields::LAYERS),
        ("num_beams", serve.num_beams, fields::SEQUENCES),
        ("num_return_sequences", serve.num_return_sequences, fields::SEQUENCES),
        ("sequences", Some(serve.sequences), fields::SEQUENCES),
        ("prompt_tokens", Some(serve.prompt_tokens), fields::TOKENS),
        ("new_tokens", Some(serve.new_tokens), fields::NEW_TOKENS),
    ] {
        if let Some(given) = given {
            whole(&at(name), given, kind)?;
        }
    }
    for (name, given) in [
        ("gpu_memory_utilization", serve.gpu_memory_utilization),
        ("mem_fraction_static", serve.mem_fraction_static),
        ("free_gpu_memory_fraction", serve.free_gpu_memory_fraction),
        ("swa_full_tokens_ratio", serve.swa_full_tokens_ratio),
    ] {
        // Written so that NaN is refused.
        if let Some(given) = given
            && !(given > 0.0 && given <= 1.0)
        {
            return Err(Problem::not_accepted(&at(name), given, Kind::Share.accepted()));
        }
    }
    if let Some(given) = serve.mamba_full_memory_ratio
        && !(given > 0.0 && given <= 100.0)
    {
        return Err(Problem::not_accepted(&at("mamba_full_memory_ratio"), given, Kind::Ratio.accepted()));
    }
    for (name, given) in [("split_mode", &serve.split_mode), ("device_map", &serve.device_map)] {
        if let (Some(given), Some(Kind::Choice(all))) = (given, fields::field(&at(name)))
            && !all.contains(&given.as_str())
        {
            return Err(Problem::not_accepted(&at(name), cut(given), all.join(", ")));
        }
    }
    Ok(())
}

fn check_train(train: &TrainSettings) -> Result<(), Problem> {
    let at = |name: &str| format!("job.train.{name}");
    for (name, given, kind) in [
        ("micro_batch", train.micro_batch, fields::SEQUENCES),
        ("seq_len", train.seq_len, fields::TOKENS),
        ("gradient_accumulation", train.gradient_accumulation, fields::SEQUENCES),
        ("zero_stage", train.zero_stage, Kind::Whole(0, 3)),
        ("reduce_bucket_elements", train.reduce_bucket_elements, fields::BYTES),
    ] {
        whole(&at(name), given, kind)?;
    }
    if let Some(lora) = &train.lora {
        whole(&at("lora.rank"), lora.rank, fields::RANK)?;
        if let Targets::Named(name) = &lora.targets
            && name != ALL_LINEAR
        {
            let accepted = format!("{ALL_LINEAR}, [\"q_proj\", …]");
            return Err(Problem::not_accepted(&at("lora.targets"), cut(name), accepted));
        }
    }
    Ok(())
}

fn check_measured(measured: &Measured) -> Result<(), Problem> {
    for (name, given) in [
        ("measured.weights_bytes", measured.weights_bytes),
        ("measured.kv_available_bytes", measured.kv_available_bytes),
        ("measured.activation_peak_bytes", measured.activation_peak_bytes),
        ("measured.non_torch_bytes", measured.non_torch_bytes),
        ("measured.cuda_graph_bytes", measured.cuda_graph_bytes),
        ("measured.device_used_bytes", measured.device_used_bytes),
    ] {
        whole(name, given.unwrap_or(0), fields::BYTES)?;
    }
    Ok(())
}

fn check_parallel(parallel: &Parallel, dp_attention: bool, count: u64) -> Result<(), Problem> {
    for (name, given) in [
        ("parallel.tensor", parallel.tensor),
        ("parallel.pipeline", parallel.pipeline),
        ("parallel.data", parallel.data),
        ("parallel.expert", parallel.expert),
        ("parallel.context", parallel.context),
    ] {
        whole(name, given, fields::DEGREE)?;
    }
    // Each degree is at most 2^16, so the product fits in 64 bits. Expert and context parallelism place their
    // shares on the devices of the other three.
    // Under data-parallel attention (SGLang) the groups are part of the tensor-parallel ranks.
    let groups = if dp_attention { 1 } else { parallel.data };
    let world = parallel.tensor * parallel.pipeline * groups;
    let needed = world.max(parallel.expert);
    if needed > count {
        let message = Message::new("scenario.too_few_devices")
            .with("tensor", parallel.tensor)
            .with("pipeline", parallel.pipeline)
            .with("data", parallel.data)
            .with("expert", parallel.expert)
            .with("needed", needed)
            .with("count", count);
        return Err(Problem::new("device.count", message));
    }
    Ok(())
}

fn model(path: &str, given: &ModelRef) -> Result<Model, Problem> {
    let none = Map::new();
    let overrides = given.overrides.as_ref().unwrap_or(&none);
    match (&given.preset, &given.config) {
        (Some(_), Some(_)) => Err(Problem::new(path, Message::new("scenario.two_models"))),
        (None, None) => Err(Problem::new(path, Message::new("scenario.no_model"))),
        (Some(id), None) => match preset(id) {
            Some(preset) => preset.model_with(overrides),
            None => Err(not_known(&format!("{path}.preset"), id, PRESETS.iter().map(|p| p.id), "models")),
        },
        (None, Some(config)) => Model::from_config_with("config.json", config, overrides),
    }
}

fn device(given: &DeviceRef) -> Result<Device, Problem> {
    whole("device.count", given.count, fields::DEGREE)?;
    let others = given.other_processes_bytes.unwrap_or(0);
    whole("device.other_processes_bytes", others, fields::BYTES)?;
    let (gpu, total_bytes) = match (&given.preset, given.total_bytes) {
        (None, None) => return Err(Problem::new("device", Message::new("scenario.no_device"))),
        (None, Some(total)) => (None, total),
        (Some(id), total) => {
            let gpu =
                gpu(id).ok_or_else(|| not_known("device.preset", id, GPUS.iter().map(|g| g.id), "gpus"))?;
            // A total beside a preset is that card's figure as its own driver reports it.
            (Some(gpu), total.unwrap_or(gpu.total_bytes))
        }
    };
    whole("device.total_bytes", total_bytes, fields::TOTAL)?;
    Ok(Device { gpu, total_bytes, count: given.count, other_processes_bytes: others })
}

fn not_known<'a>(path: &str, given: &str, ids: impl Iterator<Item = &'a str>, list: &'static str) -> Problem {
    let near = similar(given, ids, 5).join(", ");
    let message = Message::new("scenario.not_known")
        .with("field", path)
        .with("given", cut(given))
        .with("near", near)
        .with("list", list);
    Problem::new(path, message)
}
