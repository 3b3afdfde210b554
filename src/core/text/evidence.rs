//! What a pasted text says: warnings about how it was read.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "evidence.warn.not_a_size",
        "line {line}: {key} is a number that no memory has (a counter below zero or a limit not set): left out",
        "第 {line} 行：{key} 的数值不可能是内存大小（计数器小于零或未设上限）：已忽略",
    ),
    (
        "evidence.warn.process_unknown",
        "line {line}: the driver does not know this process by its number, as in containers: its own figure is left out",
        "第 {line} 行：驱动不认识该进程号（容器中常见）：其自身的数值已忽略",
    ),
];
