//! Settings of other tools, read into the Scenario.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    ("imports.key", "{key} (line {line})", "{key}（第 {line} 行）"),
    ("imports.taken", "{key} → {path} = {value}", "{key} → {path} = {value}"),
    (
        "imports.implied",
        "{key} not given, its default → {path} = {value}",
        "未给出 {key}，取其默认值 → {path} = {value}",
    ),
    ("imports.unknown", "not known, not read: {keys}", "无法识别，未读取：{keys}"),
    ("imports.not_modelled", "changes memory, but is not modelled: {keys}", "会影响显存，但尚未建模：{keys}"),
    (
        "imports.open",
        "left open here, settled by the command or another file: {keys}",
        "此处未定，由命令或其他文件决定：{keys}",
    ),
    ("imports.used", "read together with another option: {keys}", "与其他选项一并读取：{keys}"),
    ("imports.no_memory", "without effect on memory: {keys}", "不影响显存：{keys}"),
    ("imports.file_named", "{file} is read as {format}", "{file} 按 {format} 读取"),
    (
        "imports.not_known",
        "this file is none of the kinds that can be imported: {known}",
        "该文件不属于可导入的类型：{known}",
    ),
    ("imports.broken", "cannot be read at line {line}: {what}", "第 {line} 行无法读取：{what}"),
    ("imports.no_options", "the file holds no options by name", "文件中没有按名称给出的选项"),
    (
        "imports.too_long",
        "the file is longer than {limit} bytes: not a file of settings",
        "文件超过 {limit} 字节：不是配置文件",
    ),
    (
        "imports.too_deep",
        "line {line}: nested deeper than {limit} levels",
        "第 {line} 行：嵌套超过 {limit} 层",
    ),
    (
        "imports.alias",
        "line {line}: a YAML alias is not read; write the value out",
        "第 {line} 行：不读取 YAML 别名；请直接写出该值",
    ),
    (
        "imports.twice",
        "{key} stands twice; the one in line {line} counts",
        "{key} 出现两次；以第 {line} 行为准",
    ),
    (
        "imports.bad",
        "{key} = {given} cannot be used; accepted: {accepted}",
        "{key} = {given} 无法使用；可接受：{accepted}",
    ),
    (
        "imports.batch_product",
        "train_batch_size {all} is no multiple of {micro} × {steps} (micro batch × accumulation): DeepSpeed refuses this",
        "train_batch_size {all} 不是 {micro} × {steps}（微批 × 累积步数）的整数倍：DeepSpeed 会拒绝",
    ),
    (
        "imports.processes",
        "num_processes {all} is no multiple of the {each} devices that hold one copy of the model: the data-parallel degree stays open",
        "num_processes {all} 不是单份模型所占 {each} 个设备的整数倍：数据并行度未定",
    ),
    (
        "imports.both_precisions",
        "bf16 and fp16 are both on, which is refused: the precision is left as it was",
        "bf16 与 fp16 同时开启，这会被拒绝：精度保持不变",
    ),
    (
        "imports.fp16_as_bf16",
        "fp16 beside fp32 master weights takes the bytes of bf16-master, and is read as that",
        "fp16 加 fp32 主权重与 bf16-master 占用相同，按其读取",
    ),
    (
        "imports.loaded_in_fp32",
        "{key}: read as fp32 parameters under autocast; where the model is loaded in bf16, set job.train.precision=bf16",
        "{key}：按 fp32 参数加 autocast 读取；若模型以 bf16 加载，请设 job.train.precision=bf16",
    ),
    (
        "imports.under_deepspeed",
        "{key}: under DeepSpeed {given} is bf16-master, half-precision parameters beside fp32 master weights",
        "{key}：在 DeepSpeed 下 {given} 即 bf16-master，半精度参数加 fp32 主权重",
    ),
    (
        "imports.offload_stage",
        "offloading parameters needs ZeRO stage 3; the file says stage {stage}",
        "参数卸载需要 ZeRO 第 3 阶段；文件写的是第 {stage} 阶段",
    ),
    (
        "imports.section_unused",
        "{section} is not read: distributed_type is {how}",
        "未读取 {section}：distributed_type 为 {how}",
    ),
    (
        "imports.other_file",
        "{key} names another file; give that one with --import too",
        "{key} 指向另一个文件；请同样用 --import 给出",
    ),
    (
        "imports.fsdp_version",
        "{key} has no effect in version 2 of FSDP, which reads reshard_after_forward",
        "{key} 在 FSDP 第 2 版中无效，该版本读取 reshard_after_forward",
    ),
    (
        "imports.no_targets",
        "{key} is not given: PEFT chooses the layers by architecture; name them to have adapters counted",
        "未给出 {key}：PEFT 按架构选择层；请写明这些层，适配器才会计入",
    ),
    (
        "imports.finds_batch",
        "auto_find_batch_size shrinks the batch after each out-of-memory error; the batch given here is the first one tried",
        "auto_find_batch_size 会在每次显存不足后缩小批大小；此处给出的是首次尝试的值",
    ),
    (
        "imports.liger",
        "use_liger_kernel is read as a fused loss; its other kernels are not modelled",
        "use_liger_kernel 按融合损失读取；其余内核尚未建模",
    ),
    (
        "imports.conflict",
        "{path}: {first} says {first_value}, {second} says {second_value}; the latter counts",
        "{path}：{first} 为 {first_value}，{second} 为 {second_value}；以后者为准",
    ),
];
