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
        "scenario.empty",
        "the document is empty; give a Scenario, such as {\"model\": {\"preset\": \"llama-3.1-8b\"}, \"device\": {\"preset\": \"h100-80gb\"}}",
        "文档是空的；请提供一个 Scenario，例如 {\"model\": {\"preset\": \"llama-3.1-8b\"}, \"device\": {\"preset\": \"h100-80gb\"}}",
    ),
    (
        "scenario.broken",
        "this is not valid JSON: {what} at line {line}, column {column}; compare that place with its neighbours (a comma, a quote or a brace is missing or one too many)",
        "这不是有效的 JSON：第 {line} 行第 {column} 列，{what}；请检查该处是否缺少或多出逗号、引号或括号",
    ),
    (
        "scenario.not_an_object",
        "a Scenario is a JSON object with the fields model, device and job",
        "Scenario 应该是一个 JSON 对象，包含 model、device 和 job 字段",
    ),
    (
        "scenario.is_config",
        "this is a model's config.json, not a Scenario; put it into a Scenario as model.config, or name the file as the model (--model config.json)",
        "这是模型的 config.json，不是 Scenario；请把它放在 Scenario 的 model.config 里，或把文件指定为模型（--model config.json）",
    ),
    (
        "scenario.is_result",
        "this is a result of this tool, not a Scenario; give the Scenario it was computed from",
        "这是本工具输出的结果，不是 Scenario；请提供用来计算它的 Scenario",
    ),
    (
        "scenario.newer",
        "schema: this document has version {given}, made by a newer OOM Ledger; this one reads up to {accepted}: update it, or reload the page",
        "schema：文档版本是 {given}，由更新的 OOM Ledger 生成；当前程序最高支持 {accepted}：请更新程序或刷新页面",
    ),
    (
        "scenario.missing",
        "{field} is missing, and it has no default; give {accepted}",
        "缺少 {field}，而且它没有默认值；请提供 {accepted}",
    ),
    (
        "scenario.unknown_near",
        "{field} is not a field; did you mean {near}? accepted here: {accepted}",
        "没有 {field} 这个字段；是不是想写 {near}？此处可接受：{accepted}",
    ),
    (
        "scenario.unknown_place",
        "{field} is not a field; one of this name stands at {near}; accepted here: {accepted}",
        "没有 {field} 这个字段；同名字段在 {near}；此处可接受：{accepted}",
    ),
    (
        "scenario.unknown",
        "{field} is not a field; accepted here: {accepted}",
        "没有 {field} 这个字段；此处可接受：{accepted}",
    ),
    ("scenario.unreadable", "the document cannot be read: {what}", "无法读取文档：{what}"),
    (
        "scenario.two_jobs",
        "job: both serve and train are given; keep one",
        "job：同时给出了 serve 和 train；请只保留一个",
    ),
    (
        "scenario.two_models",
        "model has both a preset and a config; keep one (fields of a preset are replaced with overrides)",
        "model 同时给出了 preset 和 config；请只保留一个（替换预设的字段请用 overrides）",
    ),
    (
        "scenario.no_model",
        "no model is given; pick a preset (model.preset) or give a config.json (model.config)",
        "没有指定模型；请选择预设（model.preset）或提供 config.json（model.config）",
    ),
    (
        "scenario.no_device",
        "no device is given; pick a preset (device.preset) or give a device total (device.total_bytes)",
        "没有指定设备；请选择预设（device.preset）或给出设备总量（device.total_bytes）",
    ),
    (
        "scenario.not_known",
        "{field}: \"{given}\" is not in the list; closest: {near}; all of them: oom-ledger list {list}",
        "{field}：列表中没有“{given}”；最接近的：{near}；全部列表：oom-ledger list {list}",
    ),
    (
        "scenario.too_few_devices",
        "the parallelism needs {needed} devices (tensor {tensor} × pipeline {pipeline} × data {data}, expert {expert}), but device.count is {count}; raise device.count or lower a degree",
        "该并行方式需要 {needed} 个设备（tensor {tensor} × pipeline {pipeline} × data {data}，expert {expert}），但 device.count 是 {count}；请增加 device.count 或降低并行度",
    ),
    (
        "permalink.not_one",
        "the part of the address behind # is not a permalink of this page; those begin with \"1.\"",
        "地址中 # 后面的部分不是本页面的永久链接；永久链接以“1.”开头",
    ),
    (
        "permalink.newer",
        "this link has version {given}, made by a newer OOM Ledger; this one reads up to {accepted}: reload the page or update the program",
        "该链接的版本是 {given}，由更新的 OOM Ledger 生成；当前最高支持 {accepted}：请刷新页面或更新程序",
    ),
    (
        "permalink.cut",
        "this link is incomplete: it ends after {length} characters; mail and chat programs cut long addresses, so copy it again as a whole",
        "该链接不完整：只有 {length} 个字符；邮件和聊天软件会截断长地址，请重新完整复制",
    ),
    (
        "permalink.damaged",
        "this link is damaged: its checksum does not match its content; copy it again as a whole from where it was made",
        "该链接已损坏：校验和与内容不符；请从生成它的地方重新完整复制",
    ),
    (
        "permalink.too_large",
        "the model's config has {given}, and a link holds at most {accepted}; pass on the Scenario as a file instead",
        "模型的 config 有 {given}，而链接最多容纳 {accepted}；请改为以文件形式分享 Scenario",
    ),
    (
        "permalink.too_long",
        "the model's config makes this link {given} characters long, and programs cut links longer than {accepted}; pass on the Scenario as a file instead",
        "模型的 config 使链接长达 {given} 个字符，超过 {accepted} 的链接会被截断；请改为以文件形式分享 Scenario",
    ),
];
