//! Texts of the Markdown report and the command line's text output.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    ("report.fact", "{name}: {value}", "{name}：{value}"),
    (
        "report.fits",
        "fits: {model} with {engine} on {count} × {device} peaks at {peak} of {total} per device ({phase}); headroom {headroom} (range {low} … {high})",
        "放得下：{model} 使用 {engine}，{count} × {device}，每个设备峰值 {peak}，设备总量 {total}（阶段：{phase}）；余量 {headroom}（范围 {low} … {high}）",
    ),
    (
        "report.tight",
        "tight: {model} with {engine} on {count} × {device} peaks at {peak} of {total} per device ({phase}); headroom {headroom}, but the range of the estimate reaches {low} (range {low} … {high})",
        "勉强：{model} 使用 {engine}，{count} × {device}，每个设备峰值 {peak}，设备总量 {total}（阶段：{phase}）；余量 {headroom}，但估计范围的上端会使余量降到 {low}（范围 {low} … {high}）",
    ),
    (
        "report.tight_pool",
        "tight: {model} with {engine} on {count} × {device} peaks at {peak} of {total} per device ({phase}); at the unfavourable end of the estimate the KV cache is too small for max_model_len or this load",
        "勉强：{model} 使用 {engine}，{count} × {device}，每个设备峰值 {peak}，设备总量 {total}（阶段：{phase}）；若取估计范围的不利一端，KV 缓存会小到放不下 max_model_len 或该负载",
    ),
    (
        "report.over_total",
        "does not fit: {model} with {engine} on {count} × {device} needs {peak} per device ({phase}; range {peak_range}), {over} more than the device total of {total}",
        "放不下：{model} 使用 {engine}，{count} × {device}，每个设备需要 {peak}（阶段：{phase}；范围 {peak_range}），比设备总量 {total} 多 {over}",
    ),
    (
        "report.refused",
        "does not fit: {engine} would refuse to start {model} on {count} × {device} (device total {total}, memory budget {budget}); its own words follow",
        "放不下：{engine} 会拒绝在 {count} × {device} 上启动 {model}（设备总量 {total}，显存预算 {budget}）；下面是它自己的报错",
    ),
    (
        "report.does_not_fit",
        "does not fit: {model} with {engine} on {count} × {device} cannot serve this load (peak {peak} of {total} per device); the notes say why",
        "放不下：{model} 使用 {engine}，{count} × {device}，无法承载该负载（每个设备峰值 {peak}，设备总量 {total}）；原因见说明",
    ),
    ("report.term", "term", "项"),
    ("report.bytes", "bytes", "字节"),
    ("report.range", "range", "范围"),
    ("report.share", "share of device", "占设备"),
    ("report.origin", "origin", "来源"),
    ("report.workings", "Workings", "算式"),
    ("report.phases", "Phases", "阶段"),
    ("report.phase", "phase", "阶段"),
    ("report.peak", "peak on the device", "设备峰值"),
    ("report.allocated", "allocated", "已分配"),
    ("report.highest", "← highest", "← 最高"),
    ("report.figures", "Figures and limits", "数值与上限"),
    ("report.notes", "Notes", "说明"),
    ("report.scenario", "Scenario", "Scenario 文档"),
    ("report.link", "Open again", "再次打开"),
    ("report.parameters", "parameters", "参数量"),
    ("report.device_total", "device total", "设备总量"),
    ("report.budget", "memory budget", "显存预算"),
    ("report.kv_per_token", "KV cache per token", "每 token 的 KV 缓存"),
    ("report.kv_block_tokens", "tokens per KV block", "每个 KV 块的 token 数"),
    ("report.kv_block_bytes", "bytes per KV block", "每个 KV 块的字节数"),
    ("report.kv_blocks", "KV blocks", "KV 块数"),
    ("report.kv_tokens", "tokens the KV cache holds", "KV 缓存可容纳的 token 数"),
    ("report.kv_token_line", "tokens as the engine's log prints them", "引擎日志打印的 token 数"),
    ("report.kv_concurrency", "requests of max_model_len at once", "可同时处理的 max_model_len 请求数"),
    ("report.limit_max_model_len", "largest max_model_len that fits", "放得下的最大 max_model_len"),
    ("report.limit_max_sequences", "most sequences of this length at once", "该长度下可同时处理的最多序列数"),
    ("report.limit_max_new_tokens", "most new tokens after this prompt", "该提示之后最多可生成的新 token 数"),
    ("report.limit_max_micro_batch", "largest micro-batch that fits", "放得下的最大 micro-batch"),
    ("report.limit_stopped", "{name}: {value} (stopped by {term})", "{name}：{value}（受限于{term}）"),
];
