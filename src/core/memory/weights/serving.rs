//! What serving engines keep beside the checkpoint's tensors and count as weights: rotary tables, the latent
//! projections of MLA at full precision, and what the caching allocator adds to large tensors.

use super::rank::Line;
use super::split::product;
use super::stored::Scheme;
use crate::memory::Part;
use crate::model::{Model, TensorClass};
use crate::units::{Bytes, Problem};

/// One surplus of a rank.
#[derive(Clone, Debug)]
pub(super) struct Extra {
    label: &'static str,
    detail: String,
    pub(super) bytes: u64,
    /// Depends on the allocator's settings: not part of the low end.
    pub(super) uncertain: bool,
}

impl Extra {
    pub(super) fn part(self) -> Part {
        Part { label: self.label.into(), detail: self.detail, bytes: self.bytes }
    }
}

/// Everything a rank with these tensors holds beside them.
pub(super) fn extras(model: &Model, scheme: &Scheme<'_>, lines: &[Line<'_>]) -> Result<Vec<Extra>, Problem> {
    let mut out = Vec::new();
    // They follow the model's positions, not the longest request, and every rank has them.
    if model.rotary_table_elements > 0 {
        out.push(Extra {
            label: "rotary_emb.cos_sin_cache",
            detail: format!("[{}] {}", model.rotary_table_elements, scheme.dtype.id()),
            bytes: product(&[model.rotary_table_elements, scheme.dtype.bytes()])?,
            uncertain: false,
        });
    }
    if scheme.gguf.is_some() || scheme.file.as_ref().is_some_and(|file| file.gguf) {
        return Ok(out);
    }
    let absorbed = absorbed(scheme, lines)?;
    if absorbed > 0 {
        let detail = format!("kv_b_proj {}", scheme.dtype.id());
        out.push(Extra { label: "part.mla_absorbed", detail, bytes: absorbed, uncertain: false });
    }
    let rounding = rounding(lines)?;
    if rounding > 0 {
        let detail = "2 MiB".to_owned();
        out.push(Extra { label: "part.allocator_rounding", detail, bytes: rounding, uncertain: true });
    }
    Ok(out)
}

/// A quantised `kv_b_proj` is expanded once after loading: decoding multiplies by its two halves, at full
/// precision (`get_and_maybe_dequant_weights` of vLLM; the same in SGLang).
fn absorbed(scheme: &Scheme<'_>, lines: &[Line<'_>]) -> Result<u64, Problem> {
    if scheme.file.is_none() && (scheme.quantization.is_none() || scheme.gguf.is_some()) {
        return Ok(0);
    }
    let mut sum = Bytes::ZERO;
    for line in lines {
        let quantised = !["fp32", "fp16", "bf16"].contains(&line.format);
        if quantised
            && line.group.class == TensorClass::AttentionLatent
            && line.group.name.contains("kv_b_proj")
        {
            let bytes = product(&[line.shape.elements()?, scheme.dtype.bytes(), line.count])?;
            sum = sum.add(Bytes(bytes))?;
        }
    }
    Ok(sum.0)
}

const MIB: u64 = 1 << 20;
/// Requests from here on get a segment of their own, a multiple of [`SEGMENT`].
const LARGE: u64 = 10 * MIB;
const SEGMENT: u64 = 2 * MIB;
/// A rest of a segment up to this stays with the block and counts as allocated.
const KEPT_REST: u64 = MIB;

/// What PyTorch's allocator counts for a tensor of `bytes` beyond its size (`CUDACachingAllocator`: kMinLargeAlloc,
/// kRoundLarge, should_split).
fn rest(bytes: u64) -> u64 {
    if bytes < LARGE {
        return 0;
    }
    let rest = bytes.next_multiple_of(SEGMENT).saturating_sub(bytes);
    if rest <= KEPT_REST { rest } else { 0 }
}

/// Tensors that an engine fuses into one.
struct Family<'a> {
    /// What is fused, and where.
    key: (u8, &'a str),
    /// Bytes of one instance.
    main: u64,
    /// Bytes of its scales.
    side: u64,
    /// Instances.
    count: u64,
    /// Whether all members come in equal numbers; else they are not fused.
    equal: bool,
}

/// Rests of all tensors, as serving engines fuse them: q, k, v into one, gate and up into one.
fn rounding(lines: &[Line<'_>]) -> Result<u64, Problem> {
    // A few dozen families: a search through them is quicker than a map.
    let mut families: Vec<Family<'_>> = Vec::with_capacity(lines.len());
    for line in lines {
        let kind = match line.group.class {
            TensorClass::AttentionQ | TensorClass::AttentionK | TensorClass::AttentionV => 1,
            TensorClass::MlpGate | TensorClass::MlpUp => 2,
            _ => 0,
        };
        // `model.layers.*.self_attn.q_proj.weight` → `model.layers.*.self_attn`.
        let name = line.group.name.as_str();
        let key = (kind, if kind == 0 { name } else { name.rsplitn(3, '.').nth(2).unwrap_or(name) });
        let at = families.iter().position(|f| f.key == key).unwrap_or(families.len());
        if at == families.len() {
            families.push(Family { key, main: 0, side: 0, count: line.count, equal: true });
        }
        let family = &mut families[at];
        family.main = family.main.saturating_add(line.main);
        family.side = family.side.saturating_add(line.side);
        family.equal &= family.count == line.count;
    }
    let mut sum = Bytes::ZERO;
    for family in families.iter().filter(|f| f.equal) {
        let rests = rest(family.main).saturating_add(rest(family.side));
        sum = sum.add(Bytes(product(&[rests, family.count])?))?;
    }
    Ok(sum.0)
}
