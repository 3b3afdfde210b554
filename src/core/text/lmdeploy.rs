//! Texts of the LMDeploy engine.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "lmdeploy.not_modelled",
        "LMDeploy (TurboMind): the accounting of {what} is not modelled, and this tool does not guess",
        "LMDeploy（TurboMind）：尚未为 {what} 建模，本工具不做猜测",
    ),
    (
        "lmdeploy.length_unknown",
        "job.serve.max_model_len: the model's config states no longest length, so LMDeploy has no default; give max_model_len (--session-len)",
        "job.serve.max_model_len：模型的 config 未给出最大长度，LMDeploy 没有默认值；请指定 max_model_len（--session-len）",
    ),
    (
        "lmdeploy.refusal.load",
        "LMDeploy ends with CUDA out of memory while loading: the weights of one device ({weights}) exceed what is free by {over} (device total {total}). Spread them over more devices (--tp), or quantise them.",
        "LMDeploy 在加载时因 CUDA 显存不足而退出：单个设备上的权重（{weights}）超出空闲显存 {over}（设备总量 {total}）。请分到更多设备上（--tp），或对权重做量化。",
    ),
    (
        "lmdeploy.refusal.no_blocks",
        "LMDeploy serves nothing: No enough blocks. The share for the cache ({pool}) is smaller than one block ({block}). Raise --cache-max-entry-count, or quantise weights or cache.",
        "LMDeploy 无法处理请求：No enough blocks。缓存的份额（{pool}）小于一个块（{block}）。请提高 --cache-max-entry-count，或对权重或缓存做量化。",
    ),
    (
        "lmdeploy.refusal.share_of_total",
        "LMDeploy ends with CUDA out of memory: this version takes {share} of the device total ({total}) for the cache, {pool}, but only {free} are free beside the weights. Lower --cache-max-entry-count.",
        "LMDeploy 因 CUDA 显存不足而退出：该版本把设备总量（{total}）的 {share}，即 {pool}，用作缓存，而除权重外只有 {free} 空闲。请降低 --cache-max-entry-count。",
    ),
    (
        "lmdeploy.truncated",
        "No enough blocks for session_len ({session_len}): LMDeploy shortens it to {tokens}, what the pool holds",
        "No enough blocks for session_len（{session_len}）：LMDeploy 将其缩短为池可容纳的 {tokens}",
    ),
    (
        "lmdeploy.session_above_pool",
        "the pool holds {tokens} tokens, fewer than session_len {session_len}: longer requests end early",
        "池可容纳 {tokens} 个 token，少于 session_len {session_len}：更长的请求会提前结束",
    ),
    (
        "lmdeploy.share_of_total",
        "in this version cache_max_entry_count ({share}) is a share of the device total; since 0.2.2 it is a share of what the weights leave free",
        "在该版本中，cache_max_entry_count（{share}）是设备总量的份额；自 0.2.2 起是权重之外空闲显存的份额",
    ),
    (
        "lmdeploy.over_device",
        "weights, cache, buffers and the forward pass together exceed the device total ({total}) by {over}: expect CUDA out of memory on a long prompt. Lower --cache-max-entry-count, --max-prefill-token-num or --max-batch-size",
        "权重、缓存、缓冲与前向计算合计超出设备总量（{total}）{over}：遇到长提示时可能显存不足。请降低 --cache-max-entry-count、--max-prefill-token-num 或 --max-batch-size",
    ),
];
