//! Texts that engines with a reserved pool share.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "part.attention_replicated",
        "attention and embedding held once per group (data-parallel attention)",
        "每组各持有一份的注意力与词嵌入（数据并行注意力）",
    ),
    (
        "pooled.version_not_given",
        "engine_version is not given: the rules of {taken} are taken",
        "没有给出 engine_version：按 {taken} 的规则计算",
    ),
    (
        "pooled.version_assumed",
        "engine_version \"{given}\" names no release: the rules of {taken} are taken",
        "engine_version“{given}”不是发布版本：按 {taken} 的规则计算",
    ),
    (
        "pooled.length_of_model",
        "the longest request is not set: {engine} takes the model's own maximum, {longest} tokens",
        "未设置最大请求长度：{engine} 采用模型自身的上限 {longest} 个 token",
    ),
    (
        "pooled.unified_memory",
        "this device shares its memory with the host: what the operating system and page cache hold counts as used",
        "该设备与主机共享内存：操作系统与页缓存占用也计入已用",
    ),
    (
        "pooled.request_too_long",
        "{engine} does not serve requests of {tokens} tokens: {option} is {longest}",
        "{engine} 不会处理 {tokens} 个 token 的请求：{option} 为 {longest}",
    ),
    (
        "pooled.more_than_seats",
        "{sequences} sequences of {tokens} tokens at once exceed the {seats} that {engine} runs ({option}): the rest waits",
        "同时 {sequences} 个 {tokens} token 的序列超过 {engine} 可同时运行的 {seats} 个（{option}）：其余需要等待",
    ),
    (
        "pooled.load_waits",
        "{sequences} sequences of {tokens} tokens exceed the pool of {engine} ({pool} tokens): about {at_once} run at once, the rest waits or is preempted",
        "{sequences} 个 {tokens} token 的序列超过 {engine} 的池（{pool} 个 token）：约 {at_once} 个可同时运行，其余等待或被抢占",
    ),
];
