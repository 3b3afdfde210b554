//! Texts of the TGI engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "tgi.not_modelled",
        "TGI: the accounting of {what} is not modelled, and this tool does not guess",
        "TGI：尚未为 {what} 建模，本工具不做猜测",
    ),
    (
        "tgi.pool_not_given",
        "job.serve.max_total_tokens: TGI before 0.9.4 allocates a pool of as many tokens as --max-batch-total-tokens says; give it",
        "job.serve.max_total_tokens：0.9.4 之前的 TGI 按 --max-batch-total-tokens 指定的 token 数分配池；请给出该值",
    ),
    (
        "tgi.refusal.load",
        "TGI ends with CUDA out of memory while loading: the weights of one device ({weights}) exceed what is free by {over} (device total {total}). Spread them over more devices (--num-shard), or quantise them.",
        "TGI 在加载时因 CUDA 显存不足而退出：单个设备上的权重（{weights}）超出空闲显存 {over}（设备总量 {total}）。请分到更多设备上（--num-shard），或对权重做量化。",
    ),
    (
        "tgi.refusal.prefill",
        "TGI refuses to start: Not enough memory to handle {tokens} prefill tokens. You need to decrease --max-batch-prefill-tokens. Their forward pass and cache take {needed}, of {free} that the weights leave.",
        "TGI 拒绝启动：Not enough memory to handle {tokens} prefill tokens. You need to decrease --max-batch-prefill-tokens。其前向计算与缓存需要 {needed}，而权重之外只剩 {free}。",
    ),
    (
        "tgi.refusal.total_tokens",
        "TGI refuses to start: max_total_tokens must be <= max_batch_total_tokens. Given: {longest} and {tokens}. Lower --max-total-tokens, or give the pool more room.",
        "TGI 拒绝启动：max_total_tokens must be <= max_batch_total_tokens. Given: {longest} and {tokens}。请降低 --max-total-tokens，或给池更多空间。",
    ),
    (
        "tgi.length_chosen",
        "max_total_tokens is not set: TGI takes requests of up to {longest} tokens",
        "未设置 max_total_tokens：TGI 接受最长 {longest} 个 token 的请求",
    ),
    (
        "tgi.prefill_chosen",
        "max_batch_prefill_tokens is not set: TGI takes {tokens} for this version, device and model",
        "未设置 max_batch_prefill_tokens：TGI 按版本、设备与模型取 {tokens}",
    ),
    (
        "tgi.total_ignored",
        "--max-batch-total-tokens is deprecated for Flash Attention models: TGI ignores it and takes what fits",
        "对 Flash Attention 模型，--max-batch-total-tokens 已弃用：TGI 会忽略它，按可容纳的大小分配",
    ),
    (
        "tgi.over_device",
        "weights, pool, graphs and the forward pass together exceed the device total ({total}) by {over}: expect CUDA out of memory while graphs are captured or on a full prefill. Lower --cuda-memory-fraction or --max-batch-prefill-tokens",
        "权重、池、CUDA Graph 与前向计算合计超出设备总量（{total}）{over}：捕获 graph 时或满批预填充时可能显存不足。请降低 --cuda-memory-fraction 或 --max-batch-prefill-tokens",
    ),
];
