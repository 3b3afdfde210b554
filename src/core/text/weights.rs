//! Texts of weights, quantisation and devices.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    ("part.mla_absorbed", "latent projections expanded for decoding", "为解码展开的潜变量投影"),
    (
        "part.allocator_rounding",
        "rests of 2 MiB segments that stay with large tensors",
        "大张量所占 2 MiB 段中未用而计入的余量",
    ),
    (
        "problem.tensor_heads",
        "parallel.tensor: {given} ranks cannot share {heads} query heads and {kv_heads} key/value heads evenly; degrees that work for this model: {accepted}",
        "parallel.tensor：{given} 个进程无法均分 {heads} 个查询头和 {kv_heads} 个键值头；此模型可用的并行度：{accepted}",
    ),
    (
        "problem.tensor_split",
        "parallel.tensor: {given} ranks cannot split the dimension of {size} in {name} evenly; choose a degree that divides it",
        "parallel.tensor：{name} 中大小为 {size} 的维度无法由 {given} 个进程均分；请选择能整除它的并行度",
    ),
    (
        "problem.gguf_type",
        "weights.quantization: \"{given}\" is not a GGUF file type; accepted after \"gguf:\": {accepted}",
        "weights.quantization：“{given}”不是 GGUF 文件类型；“gguf:”之后可用：{accepted}",
    ),
    (
        "weights.quantization_declared",
        "weights are counted as {scheme}, because the checkpoint's own quantization_config says so; name a scheme to override it",
        "权重按 {scheme} 计算，因为检查点自带的 quantization_config 如此声明；如需覆盖，请指定量化方案",
    ),
    (
        "weights.quantization_replaces",
        "weights are counted as {scheme} as asked, although the checkpoint declares {declared}: this needs a converted checkpoint",
        "按要求以 {scheme} 计算权重，但检查点声明的是 {declared}：需要转换后的检查点",
    ),
    (
        "weights.experts_only",
        "{scheme} quantises experts only, and this model has none: every weight keeps its dtype; for a dense model choose another scheme, such as nvfp4 or fp8",
        "{scheme} 只量化专家，而此模型没有专家：所有权重保持原 dtype；稠密模型请选择其他方案，如 nvfp4 或 fp8",
    ),
];
