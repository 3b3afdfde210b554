//! What kinds of errors mean, one line each.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "evidence.kind.torch_oom",
        "PyTorch found no memory on the device (its caching allocator)",
        "PyTorch 缓存分配器在设备上找不到显存",
    ),
    (
        "evidence.kind.torch_oom_legacy",
        "PyTorch found no memory on the device (message of 1.x to 2.0)",
        "PyTorch 在设备上找不到显存（1.x 至 2.0 的报错格式）",
    ),
    ("evidence.kind.thc_oom", "PyTorch 0.x found no memory on the device", "PyTorch 0.x 在设备上找不到显存"),
    (
        "evidence.kind.backend_oom",
        "another accelerator (MPS, NPU, XPU) found no memory",
        "其他加速器（MPS、NPU、XPU）内存不足",
    ),
    (
        "evidence.kind.torch_size_bug",
        "a request of more than 1 EB: a wrong size, not a lack of memory",
        "请求超过 1 EB：是尺寸错误，并非显存不足",
    ),
    (
        "evidence.kind.nvml_assert",
        "an NVML assertion of PyTorch that hides a lack of memory (MIG, containers)",
        "PyTorch 的 NVML 断言掩盖了显存不足（MIG、容器）",
    ),
    (
        "evidence.kind.cuda_error_oom",
        "CUDA itself found no memory: asked for outside PyTorch's allocator",
        "CUDA 自身找不到显存：该请求不经过 PyTorch 分配器",
    ),
    (
        "evidence.kind.cublas_alloc_failed",
        "cuBLAS found no memory for its handle or workspace",
        "cuBLAS 的句柄或工作区分配失败",
    ),
    (
        "evidence.kind.cublas_not_initialized",
        "cuBLAS could not start: often a full device",
        "cuBLAS 未能初始化：常因显存已满",
    ),
    ("evidence.kind.cudnn_alloc_failed", "cuDNN or cuRAND found no memory", "cuDNN 或 cuRAND 分配失败"),
    ("evidence.kind.nccl_oom", "NCCL found no memory for its buffers", "NCCL 的缓冲区分配失败"),
    (
        "evidence.kind.vllm_free_on_startup",
        "vLLM refused to start: less is free than gpu_memory_utilization asks for",
        "vLLM 拒绝启动：空闲显存少于 gpu_memory_utilization 的要求",
    ),
    (
        "evidence.kind.vllm_no_cache_blocks",
        "vLLM has nothing left for the KV cache",
        "vLLM 没有剩余显存可用于 KV 缓存",
    ),
    (
        "evidence.kind.vllm_kv_needed",
        "vLLM's KV pool is too small for one request of max_model_len",
        "vLLM 的 KV 池容不下一个 max_model_len 长度的请求",
    ),
    (
        "evidence.kind.vllm_profiling_assert",
        "more memory became free while vLLM profiled: a neighbour ended",
        "vLLM 测量期间空闲显存变多：有其他进程退出",
    ),
    (
        "evidence.kind.vllm_sampler_warmup",
        "vLLM ran out while warming up the sampler",
        "vLLM 预热采样器时显存不足",
    ),
    (
        "evidence.kind.vllm_cumem_oom",
        "vLLM's sleep allocator found no memory on waking up",
        "vLLM 休眠分配器在唤醒时找不到显存",
    ),
    (
        "evidence.kind.vllm_preemption",
        "vLLM preempted a request: its KV pool is full",
        "vLLM 抢占了请求：KV 池已满",
    ),
    (
        "evidence.kind.sglang_not_enough_memory",
        "SGLang: the static share is smaller than the weights",
        "SGLang：静态份额小于权重",
    ),
    (
        "evidence.kind.sglang_graph_capture",
        "SGLang ran out while capturing CUDA graphs",
        "SGLang 捕获 CUDA 图时显存不足",
    ),
    (
        "evidence.kind.sglang_prefill_oom",
        "SGLang: the token pool is too small for the prefill",
        "SGLang：token 池不足以完成 prefill",
    ),
    (
        "evidence.kind.sglang_decode_oom",
        "SGLang: the token pool is too small for the decode step",
        "SGLang：token 池不足以完成 decode",
    ),
    (
        "evidence.kind.sglang_retract",
        "SGLang retracted requests: its pool is full",
        "SGLang 收回了部分请求：池已满",
    ),
    ("evidence.kind.tgi_warmup", "TGI ran out while warming up", "TGI 预热时显存不足"),
    (
        "evidence.kind.trtllm_cuda_oom",
        "TensorRT-LLM: cudaMalloc found no memory",
        "TensorRT-LLM：cudaMalloc 找不到显存",
    ),
    (
        "evidence.kind.trtllm_executor_oom",
        "TensorRT-LLM could not create its executor for lack of memory",
        "TensorRT-LLM 因显存不足无法创建执行器",
    ),
    (
        "evidence.kind.ggml_backend_buffer",
        "llama.cpp found no memory for weights or the KV cache",
        "llama.cpp 的权重或 KV 缓存分配失败",
    ),
    (
        "evidence.kind.ggml_gallocr",
        "llama.cpp found no memory for its compute buffer",
        "llama.cpp 的计算缓冲区分配失败",
    ),
    (
        "evidence.kind.ggml_cuda_oom",
        "ggml: CUDA found no memory while running",
        "ggml：运行中 CUDA 找不到显存",
    ),
    (
        "evidence.kind.ollama_no_fit",
        "ollama: the model fits into no set of devices",
        "ollama：模型放不进任何设备组合",
    ),
    (
        "evidence.kind.xla_resource_exhausted",
        "XLA found no memory (JAX, TensorFlow)",
        "XLA 内存不足（JAX、TensorFlow）",
    ),
    ("evidence.kind.tensorflow_oom", "TensorFlow found no memory for a tensor", "TensorFlow 张量分配失败"),
    ("evidence.kind.lmdeploy_oom", "LMDeploy: CUDA found no memory", "LMDeploy：CUDA 找不到显存"),
    (
        "evidence.kind.hami_oom",
        "the share of the device granted by HAMi is used up",
        "HAMi 分配的显存份额已用尽",
    ),
    (
        "evidence.kind.host_oom",
        "the kernel or a container limit ended the process: host memory",
        "进程被内核或容器限制终止：主机内存",
    ),
    ("evidence.kind.host_alloc_failed", "host memory could not be allocated", "主机内存分配失败"),
    (
        "evidence.kind.ray_oom",
        "Ray ended the worker: the node ran low on host memory",
        "Ray 终止了 worker：节点主机内存不足",
    ),
    ("evidence.kind.shm_full", "shared memory (/dev/shm) is full", "共享内存（/dev/shm）已满"),
    (
        "evidence.kind.bitsandbytes_oom",
        "bitsandbytes found no managed memory for the paged optimizer",
        "bitsandbytes 分页优化器的托管内存分配失败",
    ),
    (
        "evidence.kind.allocator_pressure",
        "the allocator gave back its cache under pressure: an early sign",
        "分配器在压力下清空缓存：早期征兆",
    ),
    (
        "evidence.kind.illegal_memory_access",
        "an illegal address: a fault in a kernel, not a lack of memory",
        "非法地址访问：内核错误，并非显存不足",
    ),
    (
        "evidence.kind.device_assert",
        "an assertion in a kernel: often an index out of range",
        "设备端断言：常为索引越界",
    ),
    ("evidence.kind.misaligned_address", "a misaligned address: a fault in a kernel", "地址未对齐：内核错误"),
    ("evidence.kind.launch_failure", "a kernel failed: not a lack of memory", "内核执行失败：并非显存不足"),
    (
        "evidence.kind.no_kernel_image",
        "no kernel for this device in the build",
        "该构建没有适用于此设备的内核",
    ),
    ("evidence.kind.driver_too_old", "the driver is older than the runtime needs", "驱动版本低于运行时要求"),
    (
        "evidence.kind.triton_shared_memory",
        "a Triton kernel asks for more on-chip memory than there is",
        "Triton 内核所需的片上内存超出上限",
    ),
    (
        "evidence.kind.nccl_error",
        "NCCL failed, with no word of memory: see the first rank that failed",
        "NCCL 出错，未提及内存：请看最先失败的 rank",
    ),
    ("evidence.kind.xid13", "Xid 13: a fault in a kernel", "Xid 13：内核执行异常"),
    (
        "evidence.kind.xid31",
        "Xid 31: a page that is not mapped, a fault in a kernel",
        "Xid 31：页未映射，内核错误",
    ),
    ("evidence.kind.xid43", "Xid 43: a channel ended after a fault", "Xid 43：故障后通道终止"),
    (
        "evidence.kind.xid45",
        "Xid 45: a channel ended, often by a normal kill",
        "Xid 45：通道终止，常因进程被正常结束",
    ),
    (
        "evidence.kind.xid48",
        "Xid 48: a memory error that ECC could not mend",
        "Xid 48：ECC 无法纠正的显存错误",
    ),
    ("evidence.kind.xid63", "Xid 63: a row or page of memory retired", "Xid 63：显存行或页被停用"),
    ("evidence.kind.xid64", "Xid 64: retiring a row or page failed", "Xid 64：停用显存行或页失败"),
    ("evidence.kind.xid74", "Xid 74: NVLink", "Xid 74：NVLink 错误"),
    ("evidence.kind.xid79", "Xid 79: the device fell off the bus", "Xid 79：设备从总线掉线"),
    ("evidence.kind.xid94", "Xid 94: a contained memory error", "Xid 94：已隔离的显存错误"),
    ("evidence.kind.xid95", "Xid 95: an uncontained memory error", "Xid 95：未隔离的显存错误"),
    ("evidence.kind.xid_other", "an Xid of the driver: not a lack of memory", "驱动 Xid 错误：并非显存不足"),
    (
        "evidence.kind.hidden_cause",
        "this line hides the cause: the lines above it are needed",
        "该行掩盖了真正原因：需要其上方的日志",
    ),
];
