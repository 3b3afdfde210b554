//! Texts of limits and projections.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "plan.draft_not_modelled",
        "draft_model is not modelled for this engine: its weights and cache come on top of what is shown.",
        "draft_model：尚未对此引擎的草稿模型建模；它的权重与缓存不在下列数字之内。",
    ),
    (
        "plan.limits_for_shorter",
        "max_model_len is not set, and the engine refuses the model's own maximum. The limits hold for an engine started for just the length they need.",
        "未设置 max_model_len，而引擎会拒绝模型自身的最大长度。下列上限适用于按所需长度启动的引擎。",
    ),
    (
        "plan.used_below",
        "The device showed {used}, and the rows come to {peak}: {less} more than was seen. The reading may have been taken before the peak, or a row is too high.",
        "设备显示已用 {used}，各行合计 {peak}，多出 {less}。读数可能取在峰值之前，或某一行偏高。",
    ),
    ("plan.tokens", "tokens", "token"),
    ("plan.sequences", "sequences", "个序列"),
    ("plan.served", "fits", "放得下"),
    ("plan.not_served", "does not fit", "放不下"),
    ("plan.most_here", "most sequences at these tokens:", "此长度下最多序列数："),
    ("plan.kv_used", "KV cache in use", "已用 KV 缓存"),
    (
        "plan.summary_pool_crossing",
        "The engine takes {high} beforehand; from {from} to {to} {axis} the KV cache in use goes from {used_low} to {used_high}, and the largest load that fits is {crossing} {axis}.",
        "引擎预先占用 {high}；从 {from} 到 {to} {axis}，已用 KV 缓存从 {used_low} 增至 {used_high}，最多放得下 {crossing} {axis}。",
    ),
    (
        "plan.summary_pool_all",
        "The engine takes {high} beforehand; from {from} to {to} {axis} the KV cache in use goes from {used_low} to {used_high}; all of it fits.",
        "引擎预先占用 {high}；从 {from} 到 {to} {axis}，已用 KV 缓存从 {used_low} 增至 {used_high}；全部放得下。",
    ),
    ("plan.empty", "nothing to show", "无内容可显示"),
    (
        "plan.summary_crossing",
        "From {from} to {to} {axis} memory goes from {low} to {high}; the largest load that fits is {crossing} {axis}.",
        "从 {from} 到 {to} {axis}，显存从 {low} 变为 {high}；最多放得下 {crossing} {axis}。",
    ),
    (
        "plan.summary_all",
        "From {from} to {to} {axis} memory goes from {low} to {high}; all of it fits.",
        "从 {from} 到 {to} {axis}，显存从 {low} 变为 {high}；全部放得下。",
    ),
    (
        "plan.summary_none",
        "From {from} to {to} {axis} memory goes from {low} to {high}; none of it fits.",
        "从 {from} 到 {to} {axis}，显存从 {low} 变为 {high}；全部放不下。",
    ),
    (
        "plan.settings_of_another_engine",
        "{engine} does not take these settings, so they change nothing here: {fields}",
        "{engine} 不使用以下设置，它们在此不起作用：{fields}",
    ),
];
