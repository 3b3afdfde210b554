"""Peaks of transformers' own modelling code without a GPU or weights: rows for own-traces.json.

The model runs on meta tensors. A dispatch mode registers every new storage, rounds it up to 512 bytes as the
CUDA caching allocator does, and drops it when the storage dies; the highest sum is the peak. On meta,
scaled_dot_product_attention always picks the math kernel, so it is replaced by the kernel a GPU would take.

    pip install torch==2.15.0 transformers==5.24.0
    python trace_transformers.py FOLDER_OF_CONFIGS llama-3.2-1b:3,gemma-2-2b:4 eager,sdpa bf16 > rows.jsonl
"""

import json
import sys
import weakref

import torch
import torch.nn.functional as F
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers import AutoConfig, AutoModelForCausalLM, StaticCache, masking_utils

BLOCK = 512
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
# (sequences, prompt tokens, logits_to_keep, cache, padded)
CASES = [
    (1, 512, 0, "dynamic", False),
    (1, 3000, 1, "dynamic", False),
    (2, 8192, 1, "dynamic", False),
    (8, 1500, 0, "dynamic", False),
    (2, 2048, 1, "dynamic", True),
    (2, 2048, 1, "static", False),
]


class Storages(TorchDispatchMode):
    """Counts storages alive on the meta device."""

    def __init__(self):
        super().__init__()
        self.live, self.now, self.peak = {}, 0, 0

    def add(self, tensor):
        storage = tensor.untyped_storage()
        if tensor.device.type != "meta" or storage._cdata in self.live:
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self.live[storage._cdata] = size
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.drop, storage._cdata)

    def drop(self, key):
        self.now -= self.live.pop(key, 0)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for value in tree_flatten(out)[0]:
            if isinstance(value, torch.Tensor):
                self.add(value)
        return out


def sdpa(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Flash where it can run, else the efficient kernel, as on devices before Hopper."""
    half = q.dtype in (torch.float16, torch.bfloat16)
    if attn_mask is None and half and q.shape[-1] == v.shape[-1] <= 256:
        kernel = torch.ops.aten._scaled_dot_product_flash_attention
        return kernel(q, k, v, 0.0, is_causal, False, scale=scale)[0]
    if enable_gqa and k.shape[-3] != q.shape[-3]:
        groups = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(groups, -3), v.repeat_interleave(groups, -3)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            zeros = torch.zeros_like(attn_mask, dtype=q.dtype)
            attn_mask = zeros.masked_fill(attn_mask.logical_not(), float("-inf"))
            del zeros
        attn_mask = attn_mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        width = attn_mask.shape[-1]
        if width % 8:
            attn_mask = F.pad(attn_mask, (0, 8 - width % 8))[..., :width]
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    return kernel(q, k, v, attn_mask, False, 0.0, is_causal, scale=scale)[0]


def build(folder, name, layers, attention, dtype):
    with open(f"{folder}/{name}.json") as file:
        config = json.load(file)
    text = config.get("text_config", config)
    text["num_hidden_layers"] = layers
    for key in ("layer_types", "mlp_layer_types"):
        if text.get(key):
            text[key] = text[key][:layers]
    config = AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention).eval()


def trace(model, sequences, prompt, keep, cache, padded):
    storages = Storages()
    for tensor in [*model.parameters(), *model.buffers()]:
        storages.add(tensor)
    with torch.no_grad(), torch.device("meta"), storages:
        ids = torch.zeros(sequences, prompt, dtype=torch.int64)
        mask = torch.ones_like(ids) if padded else None
        options = {"use_cache": True, "logits_to_keep": keep}
        start = StaticCache(config=model.config, max_cache_len=prompt + 1) if cache == "static" else None
        storages.peak = storages.now
        out = model(input_ids=ids, attention_mask=mask, past_key_values=start, **options)
        prefill, kept = storages.peak, out.past_key_values
        del out
        one = torch.zeros(sequences, 1, dtype=torch.int64)
        mask = torch.ones(sequences, prompt + 1, dtype=torch.int64) if padded else None
        storages.peak = storages.now
        model(input_ids=one, attention_mask=mask, past_key_values=kept, **options)
        return prefill, storages.peak


def main():
    folder, models, attentions, dtype = sys.argv[1:5]
    transformers.logging.set_verbosity_error()
    F.scaled_dot_product_attention = sdpa
    masking_utils.fast_all = lambda mask: False  # a padded position somewhere, and no values to look at
    for entry in models.split(","):
        name, layers = entry.split(":")
        for attention in attentions.split(","):
            model = build(folder, name, int(layers), attention, DTYPES[dtype])
            for sequences, prompt, keep, cache, padded in CASES:
                prefill, decode = trace(model, sequences, prompt, keep, cache, padded)
                row = {
                    "id": f"trace-{name}-{layers}-{attention}-{dtype}-{sequences}x{prompt}-{keep}-{cache}"
                    + ("-pad" if padded else ""),
                    "model": name, "layers": int(layers), "dtype": dtype, "attention": attention,
                    "logits": "last" if keep else "all", "cache": cache, "padding_mask": padded,
                    "sequences": sequences, "prompt_tokens": prompt, "prefill": prefill, "decode": decode,
                }  # fmt: skip
                if cache == "static":
                    row["max_model_len"] = prompt + 1
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
