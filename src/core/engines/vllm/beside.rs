//! What lies beside the model's own weights on the device, and what of them lies on the host.

use super::profile::Span;
use super::version::Version;
use crate::engines::Inputs;
use crate::engines::pooled::{SERVING, product, row};
use crate::memory::weights::{AdapterSlots, Layout, adapter_slots, weights_by_stage, weights_figures};
use crate::memory::{Parallel, Provenance, Residency, Term, TermId, WeightsSpec, Working};
use crate::model::{AttentionKind, Model, TensorClass};
use crate::units::Problem;

/// Ranks that `--max-lora-rank` takes (`LoRAConfig`); the larger ones came with later versions.
const RANKS: [u64; 9] = [1, 8, 16, 32, 64, 128, 256, 320, 512];

/// Models whose embedding and head take adapters (`embedding_modules`).
const VOCABULARY: [&str; 8] =
    ["llama", "mistral", "mixtral", "granite", "granitemoe", "granitemoehybrid", "jamba", "nemotron"];

/// Slots of adapters and the draft model. A printed figure of the weights holds both already.
///
/// Errors: a rank that vLLM does not take; a draft model that cannot be split so.
pub(super) fn beside(inputs: &Inputs<'_>, version: Version, layout: Layout) -> Result<Vec<Term>, Problem> {
    let mut out = Vec::new();
    let (serve, measured) = (inputs.serve, inputs.measured.weights_bytes.is_some());
    let loras = serve.max_loras.or(serve.max_lora_rank.map(|_| 1)).unwrap_or(0);
    if let Some(rank) = serve.max_lora_rank.filter(|r| !RANKS.contains(r)) {
        let accepted = RANKS.map(|r| r.to_string()).join(", ");
        return Err(Problem::not_accepted("job.serve.max_lora_rank", rank, accepted));
    }
    if loras > 0 && !measured {
        let slots = AdapterSlots {
            slots: loras,
            rank: serve.max_lora_rank.unwrap_or(16),
            element: inputs.weights.dtype.bytes(),
            experts: version.adapts_experts(),
            vocabulary: VOCABULARY.contains(&inputs.model.model_type.as_str()),
        };
        let term = adapter_slots(inputs.model, inputs.parallel, slots, layout)?;
        out.push(Term { phases: SERVING.to_vec(), ..term });
    }
    if let Some(draft) = inputs.draft.filter(|_| !measured) {
        let spec = WeightsSpec { quantization: None, ..inputs.weights.clone() };
        // The draft model runs on the last pipeline stage, over the same tensor-parallel ranks.
        let parallel = Parallel { pipeline: 1, ..inputs.parallel };
        let term = weights_figures(draft, &spec, parallel, layout, None)?;
        let working = Working::new("Σ count · bytes(shape / t, dtype)", term.bytes);
        out.push(Term { id: TermId::DraftModel, phases: SERVING.to_vec(), working, ..term });
    }
    if serve.num_speculative_tokens > 0 && inputs.draft.is_none() && !measured {
        out.extend(own_draft(inputs, layout)?);
    }
    Ok(out)
}

/// The model's own draft layers (MTP): each is a decoder layer like the last one that attends, a projection of state
/// and embedding to one state, and norms. Embedding and head are the model's, or, in the high end, held again.
///
/// Source: `DeepSeekMultiTokenPredictorLayer` in vllm/model_executor/models/deepseek_mtp.py, `qwen3_5_mtp.py`.
fn own_draft(inputs: &Inputs<'_>, layout: Layout) -> Result<Option<Term>, Problem> {
    let model = inputs.model;
    let recurrent = |l: &crate::model::Layer| matches!(l.attention.kind, AttentionKind::Recurrent(_));
    // Neither first nor last, so that a stage of one layer holds neither embedding nor head.
    let inner = model.layers.len().saturating_sub(1);
    let like = (1..inner).rev().find(|i| !recurrent(&model.layers[*i]));
    let (Some(like), 1..) = (like, model.mtp_layers) else { return Ok(None) };
    let one_each = Parallel { pipeline: model.layers.len() as u64, ..inputs.parallel };
    let stages = weights_by_stage(model, inputs.weights, one_each, layout)?;
    let element = inputs.weights.dtype.bytes();
    let table = product(&[model.rotary_table_elements, element]);
    let layer = stages.get(like).copied().unwrap_or(0).saturating_sub(table);
    let projection = product(&[2, model.hidden_size, model.hidden_size, element]);
    let point = product(&[model.mtp_layers.min(64), layer.saturating_add(projection)]);
    let tensor = inputs.parallel.tensor.max(1);
    let tables = product(&[2, model.vocab_size.div_ceil(tensor), model.hidden_size, element]);
    let working = Working::new("layers · (layer + 2 · d · d · e)", 0)
        .with("layers", model.mtp_layers, "layers")
        .with("layer", layer, "B")
        .with("d", model.hidden_size, "")
        .with("e", element, "B/element");
    let span = Span { point, low: point, high: point.saturating_add(tables) };
    let term = row(TermId::DraftModel, span, Residency::Resident, SERVING, working);
    let source = "vllm/model_executor/models/deepseek_mtp.py, qwen3_5_mtp.py";
    Ok(Some(Term { provenance: Provenance::Bounded, source, ..term }))
}

/// Models that vLLM loads without their encoder where no picture is allowed, of those modelled here
/// (<https://docs.vllm.ai/en/latest/models/supported_models/>: Llama 4, Step3, Mistral 3, Qwen3.5).
const TEXT_ONLY: [&str; 4] = [
    "Llama4ForConditionalGeneration",
    "Mistral3ForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
];

/// The model without its encoder, where the options leave it out.
pub(super) fn text_only(inputs: &Inputs<'_>, version: Version) -> Option<Model> {
    let asked = inputs.serve.images_per_prompt == Some(0) && version.drops_encoders();
    (asked && TEXT_ONLY.contains(&inputs.model.class.as_str())).then(|| {
        let mut model = inputs.model.clone();
        model.tensors.retain(|group| group.class != TensorClass::Encoder);
        model
    })
}

/// The weights once `--cpu-offload-gb` has kept its share of each rank on the host: whole parameters of the layers,
/// in order, until the share is reached (`maybe_offload_to_cpu`). Embedding and head stay on the device.
pub(super) fn offload(inputs: &Inputs<'_>, term: Term) -> (Term, Span) {
    let asked = inputs.serve.cpu_offload_bytes.unwrap_or(0);
    if asked == 0 || inputs.measured.weights_bytes.is_some() {
        return (term, Span::default());
    }
    let model = inputs.model;
    let table = product(&[
        model.vocab_size.div_ceil(inputs.parallel.tensor.max(1)),
        model.hidden_size,
        inputs.weights.dtype.bytes(),
    ]);
    let tables = if model.tied_embeddings { table } else { table.saturating_mul(2) };
    let layers = term.bytes.saturating_sub(tables);
    let least = asked.min(layers);
    // The parameter that reaches the share goes as a whole: at most one layer's matrices.
    let count = (model.layers.len() as u64).div_ceil(inputs.parallel.pipeline.max(1)).max(1);
    let most = asked.saturating_add(layers / count).min(layers);
    let moved = Span { point: least, low: least, high: most };
    let bytes = term.bytes - least;
    let working = Working::new("weights - cpu_offload_bytes", bytes)
        .with("weights", term.bytes, "B")
        .with("cpu_offload_bytes", asked, "B")
        .with("layers", layers, "B");
    let low = term.low.saturating_sub(most);
    let high = term.high.saturating_sub(least);
    (Term { bytes, low, high, provenance: Provenance::Bounded, working, ..term }, moved)
}
