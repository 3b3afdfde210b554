//! Texts of models and their configs.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "model.json_empty",
        "the file is empty; give the config.json of a Hugging Face model",
        "文件是空的；请提供 Hugging Face 模型的 config.json",
    ),
    (
        "model.json_too_long",
        "the file has {given} bytes; a config.json is far smaller: at most {accepted} bytes are read",
        "文件有 {given} 字节；config.json 远没有这么大：最多读取 {accepted} 字节",
    ),
    (
        "model.json_broken",
        "this is not valid JSON: {what} at line {line}, column {column}; copy the whole config.json again",
        "这不是有效的 JSON：第 {line} 行第 {column} 列，{what}；请重新复制完整的 config.json",
    ),
    (
        "model.not_an_object",
        "a config.json is an object: it begins with a brace and holds fields such as model_type and hidden_size",
        "config.json 应该是一个对象：以左花括号开头，包含 model_type、hidden_size 等字段",
    ),
    (
        "model.no_model_type",
        "neither model_type nor architectures is given, so it is unknown which tensors the model has; give the config.json of a Hugging Face language model",
        "缺少 model_type 和 architectures，无法知道模型有哪些张量；请提供 Hugging Face 语言模型的 config.json",
    ),
    (
        "model.unsupported",
        "the architecture \"{given}\" is not supported, and its tensors are not guessed; supported model_type values: {accepted}",
        "不支持架构“{given}”，也不会猜测它的张量；支持的 model_type：{accepted}",
    ),
    (
        "model.unsupported_class",
        "architectures: \"{given}\" is not supported; of model_type \"{model_type}\" these are: {accepted}; if only the head differs, put one of them into architectures",
        "architectures：不支持“{given}”；model_type “{model_type}”支持：{accepted}；如果只是输出头不同，可在 architectures 中改用其中之一",
    ),
    (
        "model.is_diffusers",
        "this is the config of a diffusers component (image or video generation); only language models are supported: give the config.json of one",
        "这是 diffusers 组件（图像或视频生成）的配置；仅支持语言模型：请提供语言模型的 config.json",
    ),
    (
        "model.is_tokenizer",
        "this is a tokenizer_config.json; the sizes of the model are in the config.json beside it",
        "这是 tokenizer_config.json；模型的尺寸在同一目录的 config.json 中",
    ),
    (
        "model.is_adapter",
        "this is the config of an adapter (PEFT); give the config.json of its base model",
        "这是适配器（PEFT）的配置；请提供其基座模型的 config.json",
    ),
    (
        "model.is_index",
        "this is the index of weight files; the sizes of the model are in the config.json beside it",
        "这是权重文件的索引；模型的尺寸在同一目录的 config.json 中",
    ),
    (
        "model.is_preprocessor",
        "this is the config of a preprocessor; the sizes of the model are in the config.json beside it",
        "这是预处理器的配置；模型的尺寸在同一目录的 config.json 中",
    ),
    (
        "model.is_generation",
        "this is a generation_config.json; the sizes of the model are in the config.json beside it",
        "这是 generation_config.json；模型的尺寸在同一目录的 config.json 中",
    ),
    (
        "model.note_defaults",
        "the config does not state {fields}; the defaults of {class} are used, as transformers does: if the file is a fragment, give the whole config.json",
        "配置中缺少 {fields}；按 transformers 的做法使用 {class} 的默认值：如果文件只是片段，请提供完整的 config.json",
    ),
    (
        "model.note_mtp",
        "the checkpoint declares {layers} multi-token-prediction layer(s), which are not counted here: they are loaded only for speculative decoding",
        "该权重声明了 {layers} 个多 token 预测层，这里未计入：只有启用推测解码时才会加载",
    ),
    (
        "model.quantization_unknown",
        "quantization_config: the scheme \"{given}\" is not supported; supported: {accepted}; to see the model unquantized, remove the field",
        "quantization_config：不支持量化方案“{given}”；支持：{accepted}；若要查看未量化的模型，请删除该字段",
    ),
];
