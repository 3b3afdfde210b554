//! What every pipeline stage holds.

use super::costs::Costs;
use crate::engines::Inputs;
use crate::memory::weights::{Layout, weights_by_stage};
use crate::memory::{RankShare, Term, TermId};
use crate::units::Problem;

/// One share per pipeline stage: the tensor-parallel ranks of a stage hold the same. Blocks are as many on every
/// rank as the fullest can hold (`get_kv_cache_configs` takes the minimum).
///
/// Errors: as the weights.
pub(super) fn ranks(
    inputs: &Inputs<'_>,
    costs: &Costs,
    blocks: u64,
    terms: &[Term],
    peak: u64,
) -> Result<Vec<RankShare>, Problem> {
    let (tensor, pipeline) = (inputs.parallel.tensor.max(1), inputs.parallel.pipeline.max(1));
    if tensor.saturating_mul(pipeline) <= 1 {
        return Ok(Vec::new());
    }
    let of = |id| terms.iter().find(|t| t.id == id).map_or(0, |t| t.bytes);
    let weights = of(TermId::Weights);
    let pool = of(TermId::KvCache) + of(TermId::RecurrentState);
    let by_stage = if pipeline == 1 {
        vec![weights]
    } else {
        let arch = inputs.device.gpu.map(|g| g.arch);
        let all = weights_by_stage(inputs.model, inputs.weights, inputs.parallel, Layout::serving(arch))?;
        // What was printed, or kept on the host, changes each stage as it changes the fullest.
        let most = all.iter().copied().max().unwrap_or(0).max(1);
        all.iter().map(|b| (u128::from(*b) * u128::from(weights) / u128::from(most)) as u64).collect()
    };
    let mut out: Vec<RankShare> = by_stage
        .iter()
        .enumerate()
        .map(|(stage, bytes)| {
            let kv = costs.layout.stage_block(stage).saturating_mul(blocks).min(pool);
            let less = (weights - bytes).saturating_add(pool - kv);
            RankShare {
                first: stage as u64 * tensor,
                count: tensor,
                stage: stage as u64,
                weights_bytes: *bytes,
                kv_bytes: kv,
                peak_bytes: peak.saturating_sub(less),
                fullest: false,
            }
        })
        .collect();
    if let Some(fullest) = out.iter_mut().max_by_key(|r| r.peak_bytes) {
        fullest.fullest = true;
    }
    Ok(out)
}
