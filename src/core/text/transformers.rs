//! Texts of the transformers engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "transformers.encoder_decoder",
        "{model_type} is an encoder-decoder model; its generation in transformers is not modelled yet. Choose a decoder-only model or another engine.",
        "{model_type} 是编码器-解码器模型；它在 transformers 中的生成过程尚未建模。请改选仅解码器模型或其他引擎。",
    ),
    (
        "transformers.no_sdpa",
        "The transformers class of {model_type} refuses sdpa (soft-capped scores or sink column); the figures are for eager attention.",
        "{model_type} 的 transformers 类不支持 sdpa（分数软上限或 sink 列）；此处按 eager 注意力计算。",
    ),
    (
        "transformers.tensor_parallel",
        "Tensor parallelism of degree {t} in transformers is modelled for weights only; KV cache and activations are counted whole, an upper bound.",
        "transformers 中 {t} 路张量并行只对权重建模；KV 缓存和激活值按整份计算，是上界。",
    ),
    (
        "transformers.device_map",
        "Without device_map, layers over {devices} devices are taken as split evenly in order, with embedding and head on the fullest device. Set device_map to get the split that transformers itself makes.",
        "未设置 device_map 时，假定各层按顺序均分到 {devices} 个设备，词嵌入和输出头算在最满的设备上。设置 device_map 可得到 transformers 自己的切分。",
    ),
    (
        "transformers.spread",
        "device_map=\"{device_map}\" puts modules on {devices} devices in order, by the rule of get_balanced_memory and infer_auto_device_map; the fullest device is shown. Free memory is taken as the device total less its context and other processes. Copies of masks and rotary tables made for other devices are counted once per layer.",
        "device_map=\"{device_map}\" 按 get_balanced_memory 和 infer_auto_device_map 的规则，把各模块依次放到 {devices} 个设备；此处显示最满的设备。空闲显存按设备总量减去上下文和其他进程计算。为其他设备复制的掩码和旋转表按每层一份计。",
    ),
    (
        "transformers.spread_to_host",
        "{bytes} of weights do not fit and stay on the host; they are fetched to the first device module by module, which is slow.",
        "有 {bytes} 权重放不下，留在主机内存；运行时逐个模块取到第一个设备，速度很慢。",
    ),
    (
        "transformers.recurrent",
        "Temporary tensors of the recurrent layers depend on which kernels are installed; they are bounded, not exact. Their state is exact.",
        "循环层的临时张量取决于安装了哪些内核；此处给出界限而非精确值。循环状态是精确的。",
    ),
    (
        "transformers.untraced",
        "The modelling code of {model_type} has not been traced; temporary tensors follow the nearest traced class and may be {percent} % off.",
        "尚未跟踪 {model_type} 的建模代码；临时张量按最接近的已跟踪类计算，可能有 {percent}% 的偏差。",
    ),
    (
        "transformers.vision",
        "Text only: temporary tensors of the vision tower are not modelled.",
        "仅计文本：视觉塔的临时张量未建模。",
    ),
    (
        "transformers.dequantised",
        "Quantised layers may restore their weight to the compute dtype while they run: up to {bytes} at a time, counted in activations.",
        "量化层运行时可能把权重还原为计算精度：每次至多 {bytes}，计入激活值。",
    ),
    (
        "transformers.restored",
        "The checkpoint declares {scheme}. transformers restores it to {dtype} while loading unless extra kernels are installed, and that is what is counted; set the quantisation to {scheme} if it stays.",
        "该检查点声明了 {scheme}。除非另装内核，transformers 会在加载时把它还原为 {dtype}，此处按还原后计算；若保持量化，请把量化设为 {scheme}。",
    ),
    (
        "transformers.measured_activations",
        "A measured activation peak replaces the modelled {modelled} of temporary tensors.",
        "实测的激活峰值替换了建模得到的 {modelled} 临时张量。",
    ),
    (
        "transformers.no_pool",
        "transformers has no KV pool, so measured.kv_available_bytes changes nothing here.",
        "transformers 没有 KV 池，因此 measured.kv_available_bytes 在此不起作用。",
    ),
    (
        "transformers.drawn",
        "Drawing tokens is counted with temperature, top_k and top_p all in use; with fewer of them less is copied. Kept scores (output_scores) are not modelled.",
        "采样按 temperature、top_k 和 top_p 全部启用计算；启用得越少，复制越少。保留的分数（output_scores）未建模。",
    ),
    (
        "transformers.answers",
        "generate refuses {answers} answers of {beams} beams: num_return_sequences may exceed num_beams only where tokens are drawn (do_sample) with one beam",
        "generate 拒绝从 {beams} 个 beam 返回 {answers} 个结果：只有在单 beam 采样（do_sample）时，num_return_sequences 才能超过 num_beams",
    ),
    (
        "transformers.reserved",
        "Allocated bytes: what torch.cuda.max_memory_allocated shows. The allocator may reserve more, because a cache that grows by concatenation leaves gaps; that excess is not modelled.",
        "这是已分配字节，即 torch.cuda.max_memory_allocated 的数值。以拼接方式增长的缓存会留下空隙，分配器保留的内存可能更多；这部分未建模。",
    ),
];
