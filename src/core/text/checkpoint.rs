//! Texts of checkpoint files: safetensors, their index, GGUF.

use super::Row;

/// Key, English, Chinese.
pub(super) const ROWS: &[Row] = &[
    (
        "checkpoint.none",
        "no checkpoint file was given; accepted: .safetensors, model.safetensors.index.json, .gguf",
        "没有给出检查点文件；可接受：.safetensors、model.safetensors.index.json、.gguf",
    ),
    ("checkpoint.empty", "{file} is empty; it may still be downloading", "{file} 是空文件；可能尚未下载完成"),
    (
        "checkpoint.not_one",
        "{file} does not begin like a checkpoint file; accepted: .safetensors (a length of eight bytes, then JSON), model.safetensors.index.json, .gguf",
        "{file} 的开头不像检查点文件；可接受：.safetensors（八字节长度，随后是 JSON）、model.safetensors.index.json、.gguf",
    ),
    (
        "checkpoint.is_pickle",
        "{file} is a PyTorch file (pickle), which cannot be read without running it; give the .safetensors or .gguf of the same model",
        "{file} 是 PyTorch 文件（pickle），不执行其中代码就无法读取；请提供同一模型的 .safetensors 或 .gguf",
    ),
    (
        "checkpoint.is_pointer",
        "{file} is a Git LFS pointer, not the file itself; run \"git lfs pull\" and give the file",
        "{file} 是 Git LFS 指针，而不是文件本身；请运行 “git lfs pull” 后再提供该文件",
    ),
    (
        "checkpoint.is_old_ggml",
        "{file} is a GGML file of 2023, older than GGUF; convert it to GGUF",
        "{file} 是 2023 年的 GGML 文件，早于 GGUF；请转换为 GGUF",
    ),
    (
        "checkpoint.header_too_long",
        "{file}: its header claims {given}, more than {most}; this is no header that a known tool writes",
        "{file}：文件头自称有 {given}，超过 {most}；已知工具不会写出这样的文件头",
    ),
    (
        "checkpoint.header_cut",
        "{file}: its header needs {needed}, but the file has {given}: it is cut, or damaged; download it again",
        "{file}：文件头需要 {needed}，但文件只有 {given}：文件被截断或已损坏；请重新下载",
    ),
    (
        "checkpoint.header_broken",
        "{file}: its header is not valid JSON ({what}); download it again",
        "{file}：文件头不是有效的 JSON（{what}）；请重新下载",
    ),
    (
        "checkpoint.tensor",
        "{file}: {what} of \"{tensor}\" is {given}; accepted: {accepted}",
        "{file}：“{tensor}”的 {what} 为 {given}；可接受：{accepted}",
    ),
    (
        "checkpoint.data_cut",
        "{file} has {given}, but its header names {expected}: it is not complete; counted as the header says",
        "{file} 只有 {given}，但文件头描述了 {expected}：文件不完整；按文件头计算",
    ),
    (
        "checkpoint.data_over",
        "{file} has {given}, more than the {expected} that its header names; counted as the header says",
        "{file} 有 {given}，多于文件头描述的 {expected}；按文件头计算",
    ),
    (
        "checkpoint.not_an_index",
        "{file} is JSON without a weight_map; accepted: model.safetensors.index.json",
        "{file} 是没有 weight_map 的 JSON；可接受：model.safetensors.index.json",
    ),
    (
        "checkpoint.index_name",
        "{file}: weight_map names the file {given}; accepted: a plain file name beside the index",
        "{file}：weight_map 给出的文件名为 {given}；可接受：与索引同目录的普通文件名",
    ),
    (
        "checkpoint.big_endian",
        "{file} is a big-endian GGUF, which only big-endian machines read; give the little-endian file",
        "{file} 是大端序 GGUF，只有大端序机器才能读取；请提供小端序文件",
    ),
    (
        "checkpoint.gguf_version",
        "{file} is GGUF of version {given}; accepted: 1, 2, 3",
        "{file} 的 GGUF 版本为 {given}；可接受：1、2、3",
    ),
    (
        "checkpoint.type_unknown",
        "{file} holds tensors of a storage type that is not known here ({given}); their bytes follow from their places in the file",
        "{file} 含有此处未知存储类型（{given}）的张量；其字节数由它们在文件中的位置得出",
    ),
    (
        "checkpoint.no_tensors",
        "the files name no tensor and no total: give the .safetensors files that the index lists, beside it",
        "这些文件既没有列出张量，也没有给出总量：请同时提供索引所列的 .safetensors 文件",
    ),
    (
        "checkpoint.mixed",
        "these files belong to different kinds of checkpoint: {file}; give the files of one",
        "这些文件属于不同类型的检查点：{file}；请只提供其中一种",
    ),
    (
        "checkpoint.stranger",
        "{file} is no part of the same checkpoint; its files: {expected}",
        "{file} 不属于同一检查点；其文件为：{expected}",
    ),
    (
        "checkpoint.twice",
        "{count} tensors stand in several of the files; each is counted once",
        "{count} 个张量出现在多个文件中；每个只计一次",
    ),
    (
        "checkpoint.split_files",
        "the file says that it is one of {expected}, and {given} were given; give all of them under their own names",
        "该文件自称是 {expected} 个文件之一，但只给出了 {given} 个；请以原文件名提供全部文件",
    ),
    (
        "checkpoint.split_count",
        "the files hold {given} tensors, but say that there are {expected}",
        "这些文件共有 {given} 个张量，但其自称有 {expected} 个",
    ),
    (
        "checkpoint.arch_unknown",
        "the file's weights take {weights}, but models of architecture \"{given}\" are not modelled: KV cache and activations cannot be counted; modelled: {accepted}",
        "该文件的权重占 {weights}，但架构“{given}”尚未建模：无法计算 KV 缓存和激活；已建模：{accepted}",
    ),
    (
        "checkpoint.arch_differs",
        "the file's weights take {weights}, but its tensors are not those of the model that its metadata (\"{given}\") describes here: this variant is not modelled; give its config.json beside it, or one of: {accepted}",
        "该文件的权重占 {weights}，但其张量与其元数据（“{given}”）在此处描述的模型不符：该变体尚未建模；请同时提供其 config.json，或使用：{accepted}",
    ),
    (
        "checkpoint.key",
        "the GGUF header's {key} is {given}; accepted: {accepted}",
        "GGUF 文件头的 {key} 为 {given}；可接受：{accepted}",
    ),
    (
        "checkpoint.shards_missing",
        "{count} files of the checkpoint are missing ({names}); the others hold {weights}: put all of them beside one another",
        "检查点缺少 {count} 个文件（{names}）；其余文件共 {weights}：请把全部文件放在同一处",
    ),
    (
        "checkpoint.needs_config",
        "the weights take {weights}, but a safetensors file does not say how the model is built, which KV cache and activations follow from: give the model's config.json with it",
        "权重占 {weights}，但 safetensors 文件不包含模型结构，而 KV 缓存和激活取决于它：请同时提供该模型的 config.json",
    ),
];
