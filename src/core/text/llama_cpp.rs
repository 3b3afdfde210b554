//! Texts of the llama.cpp and Ollama engines.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "llama_cpp.not_modelled",
        "llama.cpp: the accounting of {what} is not modelled, and this tool does not guess",
        "llama.cpp：尚未为 {what} 建模，本工具不做猜测",
    ),
    (
        "llama_cpp.refusal.quantized_v",
        "llama.cpp refuses to start: a quantized V cache ({type}) requires flash attention, which is off",
        "llama.cpp 拒绝启动：量化的 V 缓存（{type}）需要开启 flash attention，而它处于关闭状态",
    ),
    (
        "llama_cpp.version_not_given",
        "engine_version is not given: the rules of the newest build known here are taken; older builds differ in padding, sliding windows, latent caches and defaults",
        "没有给出 engine_version：按此处已知的最新构建计算；旧构建在补齐、滑动窗口、潜变量缓存与默认值上有所不同",
    ),
    (
        "llama_cpp.version_assumed",
        "engine_version \"{given}\" names no build (b4567, ik): the rules of the newest build known here are taken",
        "engine_version“{given}”不是构建编号（如 b4567、ik）：按此处已知的最新构建计算",
    ),
    (
        "llama_cpp.host",
        "in host memory, not counted on the device: weights {weights}, KV cache and states {kv}, compute buffer {compute}",
        "位于主机内存、不计入设备：权重 {weights}，KV 缓存与状态 {kv}，计算缓冲区 {compute}",
    ),
    (
        "llama_cpp.context_reduced",
        "no context is given: the model's own ({from}) does not fit, so --fit reduces it; n_ctx {n_ctx} is the largest that fits here. The engine also leaves --fit-target (1 GiB) free.",
        "没有给出上下文长度：模型自身的长度（{from}）放不下，--fit 会将其缩小；这里能放下的最大 n_ctx 为 {n_ctx}。引擎还会另留 --fit-target（1 GiB）。",
    ),
    (
        "llama_cpp.context_default",
        "no context is given: this build starts with n_ctx {n_ctx}",
        "没有给出上下文长度：该构建以 n_ctx {n_ctx} 启动",
    ),
    (
        "llama_cpp.context_padded",
        "the context of {asked} tokens becomes n_ctx {n_ctx}: cells are padded, for each sequence where those are separate",
        "{asked} 个 token 的上下文变为 n_ctx {n_ctx}：缓存单元会补齐；各序列分开存放时逐序列补齐",
    ),
    (
        "llama_cpp.more_than_slots",
        "{sequences} sequences at once need as many slots; --parallel gives {slots}, the rest waits",
        "同时 {sequences} 个序列需要同样多的槽位；--parallel 提供 {slots} 个，其余需等待",
    ),
    (
        "llama_cpp.longer_than_slot",
        "a request of {tokens} tokens is longer than a slot, which holds {slot}",
        "{tokens} 个 token 的请求超过单个槽位的容量（{slot}）",
    ),
    (
        "llama_cpp.more_than_cells",
        "the load needs {tokens} cells together; the shared cache has {cells}",
        "该负载合计需要 {tokens} 个单元；共享缓存只有 {cells} 个",
    ),
    (
        "llama_cpp.layers_assumed",
        "gpu_layers is not given: all layers are taken to lie on the device. Builds before b6325 keep all of them on the host unless --n-gpu-layers says otherwise.",
        "没有给出 gpu_layers：按全部层都在设备上计算。b6325 之前的构建若不指定 --n-gpu-layers，则全部留在主机。",
    ),
    (
        "llama_cpp.fit_moves_layers",
        "more than the device by {over}: with --fit the engine itself would keep layers (experts first) on the host; set gpu_layers or n_cpu_moe to see that",
        "超出设备 {over}：启用 --fit 时引擎会自行把部分层（专家优先）留在主机；设置 gpu_layers 或 n_cpu_moe 可查看结果",
    ),
    (
        "llama_cpp.fails_to_allocate",
        "more than the device by {over}: the engine ends with \"unable to allocate\" while it loads. Lower gpu_layers, max_model_len or ubatch.",
        "超出设备 {over}：引擎会在加载时以“unable to allocate”退出。请降低 gpu_layers、max_model_len 或 ubatch。",
    ),
    (
        "llama_cpp.no_window",
        "swa_full changes nothing: this model has no sliding-window cache in this build",
        "swa_full 不起作用：该模型在此构建中没有滑动窗口缓存",
    ),
    (
        "llama_cpp.rows_as_layers",
        "split_mode row: matrices are split by rows over the devices; what is shown places whole layers, so the sum is right and the share of each device is not exact",
        "split_mode row：矩阵按行分到各设备；此处按整层放置显示，总和正确，但每个设备的份额并不精确",
    ),
    (
        "llama_cpp.projector_not_counted",
        "the vision tower lies in a file of its own (--mmproj) and is not counted",
        "视觉塔位于单独的文件（--mmproj），未计入",
    ),
    (
        "llama_cpp.draft_not_modelled",
        "a draft model, its cache and its compute buffer are not counted for this engine",
        "该引擎未计入草稿模型及其缓存和计算缓冲区",
    ),
    (
        "llama_cpp.fork",
        "ik_llama.cpp: every layer keeps the whole context; the compute buffer of some of its versions is one row of the batch larger (up to 3 %)",
        "ik_llama.cpp：每层都保留完整上下文；其部分版本的计算缓冲区会多出一行批数据（最多 3 %）",
    ),
    (
        "llama_cpp.fork_latent",
        "ik_llama.cpp: the compute buffer of its latent attention is not modelled; logs print several times what is shown here",
        "ik_llama.cpp：尚未为其潜变量注意力的计算缓冲区建模；日志中的数值是此处的数倍",
    ),
    (
        "ollama.runs_llama_cpp",
        "Ollama starts the runner for n_ctx {n_ctx}: num_ctx {num_ctx} times {parallel} parallel requests. The buffers are those of llama.cpp about {build}; models that run in Ollama's own engine lay out caches of sliding windows differently.",
        "Ollama 以 n_ctx {n_ctx} 启动 runner：num_ctx {num_ctx} 乘以 {parallel} 个并行请求。缓冲区按约 {build} 的 llama.cpp 计算；使用 Ollama 自有引擎的模型，其滑动窗口缓存的布局有所不同。",
    ),
    (
        "ollama.estimate",
        "Ollama's own estimate, as its log prints it: {layers} of {of} layers offloaded; required full {full}, partial {partial}, kv {kv}; graph full {graph_full}, partial {graph_partial}. It decides the layers; the rows here are what the runner then takes.",
        "Ollama 自身的估计（与其日志一致）：卸载 {of} 层中的 {layers} 层；required full {full}，partial {partial}，kv {kv}；graph full {graph_full}，partial {graph_partial}。它决定层数；此处各行是 runner 实际占用。",
    ),
    (
        "ollama.version_not_given",
        "engine_version is not given: the rules of the newest release known here (0.30) are taken; defaults of num_ctx and num_parallel changed with 0.7 and 0.15.5",
        "没有给出 engine_version：按此处已知的最新版本（0.30）计算；num_ctx 与 num_parallel 的默认值在 0.7 与 0.15.5 有变化",
    ),
    (
        "llama_cpp.mmap",
        "weights on the host are mapped from the file: they count as page cache and can be dropped under pressure; with no_mmap they are read into memory",
        "主机上的权重由文件映射：算作页缓存，内存紧张时可被丢弃；使用 no_mmap 时会读入内存",
    ),
];
