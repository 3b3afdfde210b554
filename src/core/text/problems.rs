//! Texts of input that cannot be used: what was given, what is accepted, what to do.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "problem.not_accepted",
        "{field}: \"{given}\" is not accepted; accepted: {accepted}",
        "{field}：不接受“{given}”；可接受：{accepted}",
    ),
    (
        "problem.too_large",
        "{field}: \"{given}\" is larger than 2^64 bytes; give a smaller figure",
        "{field}：“{given}”超过 2^64 字节；请给出更小的数值",
    ),
    (
        "problem.overflow",
        "a figure exceeds 2^64 bytes: one of the sizes given is not realistic; check layers, lengths and batch",
        "某个数值超过 2^64 字节：给出的尺寸不现实；请检查层数、长度和批大小",
    ),
    (
        "problem.engine_not_modelled",
        "the accounting of {engine} is not modelled yet, and this tool does not guess; modelled: {accepted}",
        "{engine} 的显存核算尚未建模，本工具不做猜测；已建模：{accepted}",
    ),
];
