//! What a pasted text says: warnings about how it was read.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "evidence.open.not_taken",
        "{field}: the log says {given}, which is not taken over: set it by hand",
        "{field}：日志给出 {given}，无法直接采用：请手动设置",
    ),
    (
        "evidence.warn.not_a_size",
        "line {line}: {key} is a number that no memory has (a counter below zero or a limit not set): left out",
        "第 {line} 行：{key} 的数值不可能是内存大小（计数器小于零或未设上限）：已忽略",
    ),
    (
        "evidence.warn.pickle_broken",
        "this pickle ends early or is damaged: write the snapshot again",
        "该 pickle 文件不完整或已损坏：请重新导出快照",
    ),
    (
        "evidence.warn.pickle_other",
        "this pickle is no memory snapshot: torch.cuda.memory._dump_snapshot writes one",
        "该 pickle 文件不是显存快照：可用 torch.cuda.memory._dump_snapshot 导出",
    ),
    (
        "evidence.warn.pickle_refused",
        "this pickle holds more than plain data (opcode {opcode}) and is not read: a memory snapshot has none of it",
        "该 pickle 文件包含普通数据之外的内容（操作码 {opcode}），不予读取：显存快照中不应出现",
    ),
    (
        "evidence.warn.pickle_too_large",
        "this snapshot holds more values than are kept here: record fewer entries (max_entries)",
        "该快照的内容超出此处可保留的数量：请减少记录条目（max_entries）",
    ),
    (
        "evidence.warn.process_unknown",
        "line {line}: the driver does not know this process by its number, as in containers: its own figure is left out",
        "第 {line} 行：驱动不认识该进程号（容器中常见）：其自身的数值已忽略",
    ),
];
