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
    (
        "weights.file_skipped",
        "{bytes} of the checkpoint are not loaded and not counted: layers beyond the model's, a head that is tied, or towers that this model has no use for",
        "检查点中有 {bytes} 不会被加载，未计入：超出模型层数的层、与嵌入共享的输出头，或此模型不使用的塔",
    ),
    (
        "weights.file_strange",
        "{bytes} of the checkpoint belong to tensors whose role is not known here; every rank is taken to hold them whole",
        "检查点中有 {bytes} 属于此处不了解其用途的张量；按每个进程都完整持有计算",
    ),
    (
        "weights.file_lacks",
        "the checkpoint holds nothing for {count} kinds of tensors that the model's config asks for ({names}); they count 0: add the missing files, or check that config and checkpoint belong together",
        "检查点缺少模型配置所需的 {count} 类张量（{names}），它们按 0 计入：请补充缺失的文件，或确认配置与检查点是否匹配",
    ),
    (
        "weights.file_total_only",
        "the index states the bytes of all tensors, not of each: how ranks share them follows from the config; give the .safetensors files for the exact split",
        "索引只给出全部张量的字节数，而没有逐个列出：各进程的份额按配置推算；如需精确划分，请提供 .safetensors 文件",
    ),
    (
        "weights.file_set_aside",
        "weights are counted as {scheme} as asked, not as the checkpoint ({kind}) holds them; leave the scheme out to count the file's own bytes",
        "按要求以 {scheme} 计算权重，而不是检查点（{kind}）中的字节；去掉该方案即可按文件自身的字节计算",
    ),
];
