//! Texts of training.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "training.one_device",
        "{field}: of training spread over several devices only data parallelism (DDP, ZeRO, FSDP) is modelled yet, and this tool does not guess.",
        "{field}：跨多个设备的训练目前只对数据并行（DDP、ZeRO、FSDP）建模，本工具不做猜测。",
    ),
    (
        "training.no_offload",
        "{field}: offloading to host memory is not modelled yet; leave it false.",
        "{field}：尚未对卸载到主机内存建模；请保持 false。",
    ),
    (
        "training.frozen_base",
        "{field}: a quantised base takes no gradient; give job.train.lora as well, or leave this out.",
        "{field}：量化的底座不接受梯度；请同时给出 job.train.lora，或省略该字段。",
    ),
    (
        "training.data_parallel",
        "One of {ranks} data-parallel ranks; they hold the same. Buffers that NCCL allocates outside PyTorch are not counted.",
        "这是 {ranks} 个数据并行 rank 之一，各 rank 占用相同。NCCL 在 PyTorch 之外分配的缓冲区未计入。",
    ),
    (
        "training.reserved",
        "Allocated bytes: what torch.cuda.max_memory_allocated shows from the second step on. The allocator may reserve more, because tensors of changing size leave gaps, and kernels may take scratch space of their own; that excess is not modelled.",
        "“已分配”即从第二步起 torch.cuda.max_memory_allocated 显示的值。由于张量大小变化会留下空隙，分配器保留的可能更多，内核也可能自用暂存空间；这部分超出未建模。",
    ),
    (
        "training.sharded_base",
        "{field}: a quantised base sharded over devices is not modelled yet.",
        "{field}：尚未对跨设备分片的量化底座建模。",
    ),
    (
        "training.recurrent",
        "{model_type} has recurrent layers; what their kernels keep for the backward pass is not modelled.",
        "{model_type} 含有循环层；其内核为反向传播保留的内容尚未建模。",
    ),
    (
        "training.class",
        "What the modelling code of {model_type} keeps for the backward pass has not been traced, and this tool does not guess.",
        "尚未跟踪 {model_type} 的建模代码为反向传播保留了什么，本工具不做猜测。",
    ),
    (
        "training.vision",
        "Text only: no image runs through the vision tower, so it gets neither gradients nor optimizer states; its weights are counted.",
        "仅计文本：没有图像经过视觉塔，因此它没有梯度和优化器状态；其权重已计入。",
    ),
];
