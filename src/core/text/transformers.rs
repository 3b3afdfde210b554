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
        "transformers.quantized",
        "A quantized cache is counted as quanto keeps it: groups of 64 elements with a scale and a shift each, up to 128 latest tokens as they are, one whole layer restored at a time. The inside of its quantize kernel is not modelled, nor are HQQ and fp8.",
        "量化缓存按 quanto 的存储方式计算：每 64 个元素一组，各带一个缩放和一个偏移；最近至多 128 个 token 保持原样；每次还原一整层。其量化内核的内部开销以及 HQQ、fp8 后端未建模。",
    ),
    (
        "transformers.quantized_layers",
        "{model_type} has layers other than full attention; transformers refuses a quantized cache for it. Choose dynamic or static.",
        "{model_type} 含有全注意力以外的层；transformers 不允许为它使用量化缓存。请改选 dynamic 或 static。",
    ),
    (
        "transformers.assisted",
        "Assisted generation: every pass verifies {candidates} candidates and its own token, with logits for all; the assistant's weights and cache stay on the device. The assistant's own passes are taken as lower than the model's.",
        "辅助生成：每次前向验证 {candidates} 个候选 token 及自身的一个 token，并为全部位置计算 logits；辅助模型的权重和缓存留在设备上。假定辅助模型自身的前向低于主模型。",
    ),
    (
        "transformers.lookup",
        "Every pass verifies {candidates} candidates. No assistant model is given, so they are taken from the prompt (prompt_lookup_num_tokens) and cost no weights.",
        "每次前向验证 {candidates} 个候选 token。未给出辅助模型，因此按从提示中查找（prompt_lookup_num_tokens）计算，不占权重。",
    ),
    (
        "transformers.not_cropped",
        "assisted generation needs a cache that can be cut back: dynamic, sliding or offloaded, and no recurrent layers",
        "辅助生成需要可回退的缓存：dynamic、sliding 或 offloaded，且模型不含循环层",
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
