//! The static share where it is not given: what is kept for activations and graphs, as the version reckons it.

use super::version::{Choice, Version};

/// What the reserve is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserve {
    /// MiB that nvidia-smi prints as total.
    pub(super) smi_mib: u64,
    /// Tensor times pipeline ranks.
    pub(super) ranks: u64,
    /// Tensor-parallel ranks.
    pub(super) tensor: u64,
    /// Tokens of a prefill chunk.
    pub(super) chunk: u64,
    /// Largest captured decode batch.
    pub(super) graphs: u64,
    /// Captured prefill sizes.
    pub(super) buckets: u64,
    /// Groups of data-parallel attention; 0 without it.
    pub(super) groups: u64,
    /// Latent attention.
    pub(super) mla: bool,
    /// Speculative decoding with a draft model.
    pub(super) drafts: bool,
    /// Layers and width of the vision tower.
    pub(super) vision: Option<(u64, u64)>,
}

/// The share that SGLang takes by itself. Source: `ServerArgs.__post_init__`, from 0.5.3
/// `_handle_gpu_memory_settings`, from 0.5.20 `handle_gpu_memory_settings` in `arg_groups/memory_hook.py`.
pub(super) fn fraction(version: Version, r: &Reserve) -> f64 {
    let total = (r.smi_mib as f64).max(1.0);
    let share = match version.choice() {
        Choice::ByRanks => by_ranks(version, r.tensor),
        Choice::ByRanksAndSize if r.smi_mib <= 81_920 => by_ranks(version, r.ranks),
        Choice::ByRanksAndSize if r.smi_mib > 98_304 => {
            (0.88 + 49_152.0 * 0.12 / total).min((total - 18_432.0) / total)
        }
        Choice::ByRanksAndSize => 0.88,
        Choice::ReserveBySize => rounded(total, by_size(version, r)),
        Choice::ReserveByWork => rounded(total, by_work(version, r)),
    };
    let share = match r.vision {
        Some((layers, width)) if version.shrinks_for_vision() => share * for_vision(layers, width),
        _ => share,
    };
    // A reserve larger than the device leaves nothing, which the refusal then says.
    share.clamp(0.001, 1.0)
}

fn rounded(total: f64, reserve: f64) -> f64 {
    ((total - reserve) / total * 1000.0).round() / 1000.0
}

fn by_ranks(version: Version, ranks: u64) -> f64 {
    match ranks {
        16.. => 0.79,
        8.. => version.share_of_eight(),
        4.. => 0.85,
        2.. => 0.87,
        _ => 0.88,
    }
}

fn by_size(version: Version, r: &Reserve) -> f64 {
    let ranks = r.ranks as f64;
    let gib = match r.smi_mib {
        0..35_840 => 2.8 + ranks / 10.0,
        35_840..92_160 => 9.5 + ranks / 2.0,
        92_160..163_840 => 12.0 + ranks / 2.0,
        _ => 32.0,
    };
    let draft = if r.drafts { version.draft_reserve() as f64 } else { 0.0 };
    gib * 1024.0 + draft + if r.groups > 0 { 4096.0 } else { 0.0 }
}

fn by_work(version: Version, r: &Reserve) -> f64 {
    let graphs = r.graphs as f64;
    let mut mib = 512.0 + r.chunk.max(2048) as f64 * 1.5 + graphs * 2.0 + r.ranks as f64 / 8.0 * 1024.0;
    if r.groups > 0 {
        let each = graphs * r.groups as f64;
        mib += each * if r.graphs > 300 { 4.5 } else { 3.0 };
    }
    if r.buckets > 0 {
        mib += if r.mla { 1536.0 } else { r.buckets as f64 * 8.0 };
    }
    if r.smi_mib > 61_440 {
        mib = mib.max(10_240.0);
    }
    mib + if r.drafts { version.draft_reserve() as f64 } else { 0.0 }
}

/// Factor for a vision tower, 1 part in 10 for every doubling of ViT-L/14's 24 layers of 1024.
fn for_vision(layers: u64, width: u64) -> f64 {
    let size = layers as f64 * (width as f64).powi(2);
    let baseline = 24.0 * 1024.0 * 1024.0;
    0.95 * (1.0 - 0.1 * (size / baseline - 1.0)).clamp(0.8, 1.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h100(buckets: u64) -> Reserve {
        Reserve {
            smi_mib: 81_559,
            ranks: 1,
            tensor: 1,
            chunk: 8192,
            graphs: 256,
            buckets,
            groups: 0,
            mla: false,
            drafts: false,
            vision: None,
        }
    }

    /// sgl-project/sglang#39713: 0.83 with 58 captured prefill sizes; 0.835 without.
    #[test]
    fn shares_of_one_h100() {
        let share = |text, r| fraction(Version::parse(Some(text)), &r);
        assert!((share("0.5.12", h100(58)) - 0.83).abs() < 1e-9, "{}", share("0.5.12", h100(58)));
        assert!((share("0.5.6", h100(0)) - 0.835).abs() < 1e-9, "{}", share("0.5.6", h100(0)));
        assert!((share("0.4.9", h100(0)) - 0.874).abs() < 1e-9, "{}", share("0.4.9", h100(0)));
        assert!((share("0.4.2", h100(0)) - 0.88).abs() < 1e-9);
        let eight = Reserve { ranks: 8, tensor: 8, ..h100(0) };
        assert!((share("0.4.2", eight) - 0.81).abs() < 1e-9);
    }

    #[test]
    fn a_reserve_larger_than_the_device_leaves_next_to_nothing() {
        let tiny = Reserve { smi_mib: 1024, ..h100(0) };
        assert!(fraction(Version::parse(Some("0.5.6")), &tiny) <= 0.001);
    }
}
