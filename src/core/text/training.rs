//! Texts of training.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "training.one_device",
        "{field}: training spread over several devices is not modelled yet, and this tool does not guess; describe one device.",
        "{field}：尚未对跨多个设备的训练建模，本工具不做猜测；请描述单个设备。",
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
