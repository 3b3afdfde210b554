//! Texts of the vLLM engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "vllm.not_modelled",
        "vLLM: the accounting of {what} is not modelled, and this tool does not guess",
        "vLLM：尚未为 {what} 建模，本工具不做猜测",
    ),
    (
        "vllm.refusal.free_memory",
        "vLLM refuses to start: free memory on the device ({free} of {total}) is less than the desired utilization ({utilization}, {requested}). Lower gpu_memory_utilization or stop other processes.",
        "vLLM 拒绝启动：设备空闲显存（{free}／{total}）少于所需利用率（{utilization}，{requested}）。请降低 gpu_memory_utilization 或停止其他进程。",
    ),
    (
        "vllm.refusal.load",
        "vLLM ends with CUDA out of memory while loading: the weights of one device ({weights}) and what is there before them ({around}) exceed the device total ({total}). Spread them over more devices (--tensor-parallel-size), or quantise them.",
        "vLLM 在加载时因 CUDA 显存不足而退出：单个设备上的权重（{weights}）与加载前已占用的部分（{around}）超过设备总量（{total}）。请分到更多设备上（--tensor-parallel-size），或对权重做量化。",
    ),
    (
        "vllm.refusal.no_blocks",
        "vLLM refuses to start: no available memory for the cache blocks. The budget is short by {short} before the first block of {block}. Raise gpu_memory_utilization, or lower max_num_seqs or max_num_batched_tokens, or spread the weights over more devices.",
        "vLLM 拒绝启动：没有可用于缓存块的显存。在第一个 {block} 的块之前，预算还差 {short}。请提高 gpu_memory_utilization，或降低 max_num_seqs、max_num_batched_tokens，或把权重分到更多设备上。",
    ),
    (
        "vllm.refusal.too_long",
        "vLLM refuses to start: one request of max_model_len {max_model_len} needs {needed} of KV cache, more than the available {available}. The estimated maximum model length is {estimated}.",
        "vLLM 拒绝启动：一个长度为 max_model_len {max_model_len} 的请求需要 {needed} 的 KV 缓存，超过可用的 {available}。估计的最大模型长度为 {estimated}。",
    ),
    (
        "vllm.refusal.too_long_no_estimate",
        "vLLM refuses to start: one request of max_model_len {max_model_len} needs {needed} of KV cache, more than the available {available}. This version does not say so, but up to {estimated} tokens would start.",
        "vLLM 拒绝启动：一个长度为 max_model_len {max_model_len} 的请求需要 {needed} 的 KV 缓存，超过可用的 {available}。该版本不会提示，但长度不超过 {estimated} 时可以启动。",
    ),
    (
        "vllm.refusal.too_long_v0",
        "vLLM refuses to start: the model's max seq len ({max_model_len}) is larger than the maximum number of tokens that can be stored in KV cache ({tokens}). Lower max_model_len or raise gpu_memory_utilization.",
        "vLLM 拒绝启动：模型的最大序列长度（{max_model_len}）大于 KV 缓存可存放的最大 token 数（{tokens}）。请降低 max_model_len 或提高 gpu_memory_utilization。",
    ),
    (
        "vllm.refusal.state_blocks",
        "vLLM refuses to start: max_num_seqs ({max_num_seqs}) exceeds the available state cache blocks ({blocks}); every sequence needs one. Lower max_num_seqs to {blocks} or less.",
        "vLLM 拒绝启动：max_num_seqs（{max_num_seqs}）超过可用的状态缓存块数（{blocks}）；每个序列需要一块。请将 max_num_seqs 降到 {blocks} 或更小。",
    ),
    (
        "vllm.version_not_given",
        "engine_version is not given: the rules of {taken} are taken",
        "没有给出 engine_version：按 {taken} 的规则计算",
    ),
    (
        "vllm.version_assumed",
        "engine_version \"{given}\" names no release: the rules of {taken} are taken",
        "engine_version“{given}”不是发布版本：按 {taken} 的规则计算",
    ),
    (
        "vllm.batch_of_large_devices",
        "the device is given by size only: vLLM's defaults for H100 and larger are taken (max_num_seqs {max_num_seqs}); an A100 of that size would run {other} and a smaller profile batch",
        "仅给出设备大小：按 H100 及更大设备的默认值计算（max_num_seqs {max_num_seqs}）；同样大小的 A100 则为 {other}，且 profile 批更小",
    ),
    (
        "vllm.length_of_model",
        "max_model_len is not set: vLLM takes the model's own maximum, {max_model_len} tokens",
        "未设置 max_model_len：vLLM 采用模型自身的上限 {max_model_len} 个 token",
    ),
    (
        "vllm.refusal.longer_than_model",
        "vLLM refuses to start: max_model_len {max_model_len} is greater than what the model's config allows ({of_model}). Lower it, add a rope_scaling to the config that extends the range, or, at the risk of wrong answers, set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
        "vLLM 拒绝启动：max_model_len {max_model_len} 超过模型配置允许的 {of_model}。请降低它，在配置中加入扩展范围的 rope_scaling，或在接受答案可能出错的前提下设置 VLLM_ALLOW_LONG_MAX_MODEL_LEN=1。",
    ),
    (
        "vllm.padding_layers",
        "vLLM adds {layers} padding layers so that its KV cache groups have equal size; their share of the pool stays unused",
        "vLLM 添加了 {layers} 个填充层以使各 KV 缓存组大小相同；它们占用的份额不会被使用",
    ),
    (
        "vllm.state_pages",
        "attention blocks grow to {tokens} tokens so that a page holds a recurrent state; the state's page is padded by {percent} %",
        "注意力块扩大到 {tokens} 个 token，使一页能放下循环状态；状态页填充 {percent} %",
    ),
    (
        "vllm.window_ignored",
        "this version keeps every token also in sliding-window and chunked layers; later versions keep the window only",
        "该版本在滑动窗口层和分块层中也保留全部 token；更新的版本只保留窗口",
    ),
    (
        "vllm.expert_buffers",
        "buffers that expert parallelism exchanges tokens through are not modelled: they come on top",
        "未对专家并行交换 token 所用的缓冲建模：需另外计算",
    ),
    (
        "vllm.unified_memory",
        "this device shares its memory with the host: what the operating system and page cache hold counts as used, and graph estimates have been several GiB off",
        "该设备与主机共享内存：操作系统与页缓存占用也计入已用，CUDA Graph 的估计曾有数 GiB 偏差",
    ),
    (
        "vllm.own_draft",
        "the model's own draft layers (MTP) are taken to be like its last layer; the row \"draft model\" holds them, and their KV cache is in the pool",
        "模型自带的草稿层（MTP）按其最后一层估算：权重列在“草稿模型”一项，KV 缓存计入池中",
    ),
    (
        "vllm.draft_not_modelled",
        "speculative tokens are set, but a draft model is not modelled: its weights and KV cache come on top",
        "设置了投机 token，但未对草稿模型建模：其权重和 KV 缓存需另外计算",
    ),
    (
        "vllm.length_unknown",
        "job.serve.max_model_len: the model's config states no longest length, so vLLM has no default; give max_model_len",
        "job.serve.max_model_len：模型的 config 未给出最大长度，vLLM 没有默认值；请指定 max_model_len",
    ),
    (
        "vllm.graphs_outside",
        "in this version CUDA graphs (about {bytes}) come on top of the budget",
        "在该版本中，CUDA Graph（约 {bytes}）不计入预算，需额外占用",
    ),
    (
        "vllm.unexplained",
        "the printed pool leaves {bytes} of the budget that no term explains: see the term \"unexplained\"",
        "按日志给出的池大小，预算中还有 {bytes} 没有任何项目能解释：见“未解释”一项",
    ),
    (
        "vllm.over_budget",
        "weights and the printed pool exceed the budget by {bytes}: device total, utilization or weights do not belong to that log",
        "权重与日志给出的池合计超出预算 {bytes}：设备总量、利用率或权重与该日志不符",
    ),
    (
        "vllm.above_budget",
        "the peak is {over} above the budget, and that is meant: outside of it lie, in this version, the CUDA context ({context}), CUDA graphs ({graphs}) and other processes ({others})",
        "峰值比预算高 {over}，这是预期行为：该版本的预算不包含 CUDA 上下文（{context}）、CUDA Graph（{graphs}）和其他进程（{others}）",
    ),
    (
        "vllm.over_device",
        "budget, context and CUDA graphs together exceed the device total ({total}) by {over}: expect an out-of-memory error while graphs are captured; lower gpu_memory_utilization",
        "预算、上下文与 CUDA Graph 合计超出设备总量（{total}）{over}：捕获 graph 时可能显存不足；请降低 gpu_memory_utilization",
    ),
    (
        "vllm.kv_replicated",
        "{tensor} tensor-parallel ranks share {kv_heads} KV heads: the cache of each head is held {copies} times, which data or pipeline parallelism would not do",
        "{tensor} 个张量并行 rank 共用 {kv_heads} 个 KV 头：每个头的缓存存了 {copies} 份；改用数据并行或流水线并行可避免",
    ),
    (
        "vllm.prompt_logprobs",
        "log probabilities of the prompt take up to {bytes} beside the budget, for {tokens} tokens in one step: no profile run has counted them, so they end in CUDA out of memory while serving, not at start",
        "提示的 logprobs 最多另占 {bytes}（一步 {tokens} 个 token），不在预算内：profile 运行没有计入，因此会在服务过程中而不是启动时显存不足",
    ),
    (
        "vllm.asleep_1",
        "asleep at level 1, {left} stay on the device (context, libraries, CUDA graphs); {weights} of weights wait in host memory",
        "以级别 1 休眠时，设备上仍占 {left}（上下文、库、CUDA Graph）；{weights} 的权重保存在主机内存",
    ),
    (
        "vllm.asleep_2",
        "asleep at level 2, {left} stay on the device (context, libraries, CUDA graphs); the weights ({weights}) are dropped and must be loaded again",
        "以级别 2 休眠时，设备上仍占 {left}（上下文、库、CUDA Graph）；权重（{weights}）被丢弃，唤醒后需重新加载",
    ),
    (
        "vllm.kv_memory_suggestion",
        "with --kv-cache-memory-bytes set to {bytes} the next start keeps to the budget with its CUDA graphs in it, and skips profiling; the log of this version suggests that figure",
        "将 --kv-cache-memory-bytes 设为 {bytes}，下次启动即可把 CUDA Graph 也放进预算并跳过 profile；该版本的日志会给出这个建议值",
    ),
    (
        "vllm.pool_given",
        "kv_cache_memory_bytes is set: vLLM profiles nothing and does not keep to gpu_memory_utilization, so nothing but the device total limits the sum",
        "已设置 kv_cache_memory_bytes：vLLM 不再做 profile，也不受 gpu_memory_utilization 限制，总和只受设备总量约束",
    ),
    (
        "vllm.request_too_long",
        "requests of {tokens} tokens are refused: max_model_len is {max_model_len}",
        "{tokens} 个 token 的请求会被拒绝：max_model_len 为 {max_model_len}",
    ),
    (
        "vllm.more_than_max_num_seqs",
        "{sequences} sequences at once exceed max_num_seqs {max_num_seqs}: the rest waits",
        "同时 {sequences} 个序列超过 max_num_seqs {max_num_seqs}：其余需要等待",
    ),
    (
        "vllm.load_waits",
        "{sequences} sequences of {tokens} tokens need {blocks} blocks, the pool has {pool}: about {at_once} run at once, the rest waits or is preempted",
        "{sequences} 个 {tokens} token 的序列需要 {blocks} 个块，池中有 {pool} 个：约 {at_once} 个可同时运行，其余等待或被抢占",
    ),
];
