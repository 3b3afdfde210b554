//! Texts of the TensorRT-LLM engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "tensorrt_llm.not_modelled",
        "TensorRT-LLM: the accounting of {what} is not modelled, and this tool does not guess",
        "TensorRT-LLM：尚未为 {what} 建模，本工具不做猜测",
    ),
    (
        "tensorrt_llm.length_unknown",
        "job.serve.max_model_len: the model's config states no longest length, so TensorRT-LLM has no default; give max_model_len (--max_seq_len)",
        "job.serve.max_model_len：模型的 config 未给出最大长度，TensorRT-LLM 没有默认值；请指定 max_model_len（--max_seq_len）",
    ),
    (
        "tensorrt_llm.refusal.load",
        "Executor creation failed due to insufficient GPU memory. The following component could not be created: Model. The weights of one device ({weights}) exceed what is free by {over} (device total {total}). Spread them over more devices (tensor or pipeline parallelism), or quantise them.",
        "Executor creation failed due to insufficient GPU memory. The following component could not be created: Model。单个设备上的权重（{weights}）超出空闲显存 {over}（设备总量 {total}）。请用张量并行或流水线并行分到更多设备上，或对权重做量化。",
    ),
    (
        "tensorrt_llm.refusal.load_engine",
        "TensorRT-LLM ends with CUDA runtime error: out of memory while it loads the engine: the weights of one device ({weights}) exceed what is free by {over} (device total {total}). Spread them over more devices (tensor or pipeline parallelism), or quantise them.",
        "TensorRT-LLM 在加载引擎时因 CUDA runtime error: out of memory 退出：单个设备上的权重（{weights}）超出空闲显存 {over}（设备总量 {total}）。请用张量并行或流水线并行分到更多设备上，或对权重做量化。",
    ),
    (
        "tensorrt_llm.refusal.profile",
        "Executor creation failed due to insufficient GPU memory. The run that measures it, of {tokens} tokens, and CUDA graphs take {needed}, of {free} that the weights leave (device total {total}): reduce max_num_tokens.",
        "Executor creation failed due to insufficient GPU memory。用于测量的 {tokens} 个 token 的运行与 CUDA Graph 需要 {needed}，而权重之外只剩 {free}（设备总量 {total}）：请减小 max_num_tokens。",
    ),
    (
        "tensorrt_llm.refusal.buffers",
        "TensorRT-LLM ends with CUDA runtime error in cudaMallocAsync: out of memory. Execution context ({tokens} tokens), runtime buffers and decoder ({sequences} sequences) take {needed} before any request, of {free} that the engine leaves (device total {total}). Build with a smaller max_batch_size or max_num_tokens.",
        "TensorRT-LLM 退出：CUDA runtime error in cudaMallocAsync: out of memory。执行上下文（{tokens} 个 token）、运行时缓冲与解码器（{sequences} 个序列）在任何请求之前就需要 {needed}，而引擎之外只剩 {free}（设备总量 {total}）。请以更小的 max_batch_size 或 max_num_tokens 构建。",
    ),
    (
        "tensorrt_llm.refusal.no_blocks",
        "TensorRT-LLM has no block for the KV cache: {free} are free, and their share holds no token of {token}. Raise free_gpu_memory_fraction, or reduce max_batch_size and max_num_tokens.",
        "TensorRT-LLM 没有可用的 KV 缓存块：空闲 {free}，其份额容不下一个 {token} 的 token。请提高 free_gpu_memory_fraction，或减小 max_batch_size 与 max_num_tokens。",
    ),
    (
        "tensorrt_llm.refusal.pool",
        "TensorRT-LLM ends with CUDA runtime error in cudaMallocAsync: out of memory. The KV cache takes {pool}, of {free} free (device total {total}): reduce max_tokens, or give free_gpu_memory_fraction too, whose share then bounds it.",
        "TensorRT-LLM 退出：CUDA runtime error in cudaMallocAsync: out of memory。KV 缓存需要 {pool}，而空闲 {free}（设备总量 {total}）：请减小 max_tokens，或同时给出 free_gpu_memory_fraction 作为上限。",
    ),
    (
        "tensorrt_llm.truncated",
        "max_seq_len {longest} exceeds the pool: TensorRT-LLM reduces it to {tokens}, what the pool holds",
        "max_seq_len {longest} 超过池：TensorRT-LLM 将其减小为池可容纳的 {tokens}",
    ),
    (
        "tensorrt_llm.large_batch",
        "runtime buffers and decoder are allocated for {sequences} sequences, whether or not they come: {buffers}. A smaller max_batch_size gives that to the pool",
        "运行时缓冲与解码器按 {sequences} 个序列分配，无论是否用到：{buffers}。减小 max_batch_size 可将其让给池",
    ),
    (
        "tensorrt_llm.windows_whole",
        "layers with a window are counted whole, as TensorRT-LLM keeps them unless max_attention_window is given; pools per window are not modelled",
        "带窗口的层按完整长度计入：除非给出 max_attention_window，TensorRT-LLM 会保留全部；按窗口划分的池尚未建模",
    ),
    (
        "tensorrt_llm.over_device",
        "weights, pool and the choice of tokens together exceed the device total ({total}) by {over}: expect CUDA out of memory at full load. Lower free_gpu_memory_fraction or max_batch_size",
        "权重、池与选词合计超出设备总量（{total}）{over}：满载时可能显存不足。请降低 free_gpu_memory_fraction 或 max_batch_size",
    ),
];
