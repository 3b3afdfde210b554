//! Texts of the SGLang engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "sglang.not_modelled",
        "SGLang: the accounting of {what} is not modelled, and this tool does not guess",
        "SGLang：尚未为 {what} 建模，本工具不做猜测",
    ),
    (
        "sglang.length_unknown",
        "job.serve.max_model_len: the model's config states no longest length, so SGLang has no default; give max_model_len (--context-length)",
        "job.serve.max_model_len：模型的 config 未给出最大长度，SGLang 没有默认值；请指定 max_model_len（--context-length）",
    ),
    (
        "sglang.refusal.load",
        "SGLang ends with CUDA out of memory while loading: the weights of one device ({weights}) exceed what is free before loading ({free} of {total}). Spread them over more devices (--tp-size), or quantise them.",
        "SGLang 在加载时因 CUDA 显存不足而退出：单个设备上的权重（{weights}）超过加载前的空闲显存（{free}／{total}）。请分到更多设备上（--tp-size），或对权重做量化。",
    ),
    (
        "sglang.refusal.no_tokens",
        "SGLang refuses to start: Not enough memory. Please try to increase --mem-fraction-static. It is {f}; from {least} on there is room for the KV cache.",
        "SGLang 拒绝启动：Not enough memory. Please try to increase --mem-fraction-static. 当前为 {f}；从 {least} 起才有 KV 缓存的空间。",
    ),
    (
        "sglang.refusal.raise_above",
        "SGLang refuses to start: loaded weights ({loaded} of {free} free) leave no GPU memory for the KV cache under --mem-fraction-static={f}. Raise --mem-fraction-static above {least}.",
        "SGLang 拒绝启动：在 --mem-fraction-static={f} 下，已加载的权重（空闲 {free} 中的 {loaded}）没有给 KV 缓存留下显存。请将 --mem-fraction-static 提高到 {least} 以上。",
    ),
    (
        "sglang.refusal.no_share",
        "SGLang refuses to start: loading takes {loaded} of the {free} that are free; no --mem-fraction-static (now {f}) leaves room for the KV cache. Spread the weights over more devices, or quantise them.",
        "SGLang 拒绝启动：加载占用空闲 {free} 中的 {loaded}；无论 --mem-fraction-static（当前 {f}）取多少，都没有 KV 缓存的空间。请把权重分到更多设备上，或做量化。",
    ),
    (
        "sglang.refusal.states",
        "SGLang refuses to start: its recurrent-state cache is too small to serve any request. It has {slots} slots of {state}, and one request takes {each}. Raise --mem-fraction-static or --mamba-full-memory-ratio.",
        "SGLang 拒绝启动：循环状态缓存太小，无法处理任何请求。它有 {slots} 个 {state} 的槽位，而一个请求需要 {each} 个。请提高 --mem-fraction-static 或 --mamba-full-memory-ratio。",
    ),
    (
        "sglang.fraction_chosen",
        "mem_fraction_static is not set: SGLang takes {f} for this device and these options, and keeps {reserve} for graphs and the forward pass",
        "未设置 mem_fraction_static：SGLang 按该设备与选项取 {f}，为 CUDA Graph 与前向计算保留 {reserve}",
    ),
    (
        "sglang.longer_than_model",
        "context_length {context} exceeds what the config states ({of_model}): SGLang accepts it only with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 or a rope_scaling that extends the range",
        "context_length {context} 超过配置中的 {of_model}：只有设置 SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1，或配置了扩展范围的 rope_scaling 时，SGLang 才接受",
    ),
    (
        "sglang.context_above_pool",
        "the pool holds {tokens} tokens, fewer than context_length {context}: SGLang starts, and rejects longer requests",
        "池可容纳 {tokens} 个 token，少于 context_length {context}：SGLang 能启动，但会拒绝更长的请求",
    ),
    (
        "sglang.window_ignored",
        "this version keeps every token also in sliding-window and chunked layers of this model",
        "对该模型，此版本在滑动窗口层和分块层中也保留全部 token",
    ),
    (
        "sglang.window_capped",
        "without a radix cache and with max_running_requests set, this version sizes the sliding-window pool by requests instead of by ratio; that is not modelled, and the full pool will be larger than shown",
        "关闭 radix 缓存并设置 max_running_requests 时，该版本按请求数而非比例确定滑动窗口池的大小；此规则未建模，完整池会比所示更大",
    ),
    (
        "sglang.requests_by_states",
        "{requests} requests run at once at most: each takes {each} of the {slots} recurrent-state slots",
        "最多同时运行 {requests} 个请求：每个占用 {slots} 个循环状态槽位中的 {each} 个",
    ),
    (
        "sglang.dp_attention",
        "data-parallel attention: {groups} groups each have a pool of their own; token figures are those of one group",
        "数据并行注意力：{groups} 个组各有自己的池；token 数为单个组的数值",
    ),
    (
        "sglang.expert_buffers",
        "buffers that expert parallelism exchanges tokens through are not modelled; with DeepEP, graphs have taken up to 20 GiB",
        "未对专家并行交换 token 所用的缓冲建模；使用 DeepEP 时，CUDA Graph 曾占用多达 20 GiB",
    ),
    (
        "sglang.draft_weights",
        "the weights of the model's draft layers (MTP) are not part of the weights shown; their KV cache is counted",
        "模型自带草稿层（MTP）的权重未计入所示权重；其 KV 缓存已计入",
    ),
    (
        "sglang.draft_not_modelled",
        "speculative tokens are set, but no draft model is given: its weights and KV cache come on top",
        "设置了投机 token，但未给出草稿模型：其权重和 KV 缓存需另外计算",
    ),
    (
        "sglang.over_device",
        "weights, pools, graphs and the forward pass together exceed the device total ({total}) by {over}: expect CUDA out of memory while graphs are captured or on a long prompt. Here --mem-fraction-static is too large: lower it, or lower --chunked-prefill-size or --cuda-graph-max-bs",
        "权重、池、CUDA Graph 与前向计算合计超出设备总量（{total}）{over}：捕获 graph 时或遇到长提示时可能显存不足。此时 --mem-fraction-static 过大：请降低它，或降低 --chunked-prefill-size、--cuda-graph-max-bs",
    ),
];
