//! What lies beside the model's own weights on the device, and what of them lies on the host.

use super::profile::Span;
use super::version::Version;
use crate::engines::Inputs;
use crate::engines::pooled::{SERVING, product};
use crate::memory::weights::{AdapterSlots, Layout, adapter_slots, weights_figures};
use crate::memory::{Provenance, Term, TermId, WeightsSpec, Working};
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
        let parallel = crate::memory::Parallel { pipeline: 1, ..inputs.parallel };
        let term = weights_figures(draft, &spec, parallel, layout, None)?;
        let working = Working::new("Σ count · bytes(shape / t, dtype)", term.bytes);
        out.push(Term { id: TermId::DraftModel, phases: SERVING.to_vec(), working, ..term });
    }
    Ok(out)
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
