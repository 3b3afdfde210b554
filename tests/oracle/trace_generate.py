"""Peaks of transformers' own generate() without a GPU or weights: rows for generate-traces.json.

A small model with random weights runs on the CPU. A dispatch mode registers every new storage, rounds it up to 512
bytes as the CUDA caching allocator does, and drops it when the storage dies. scaled_dot_product_attention is
replaced by something that allocates what the kernel of a GPU would (its values do not matter, so they are zeros).
The peak of each forward pass and of what generate() does after it are kept apart.

Rows of offloaded caches: CacheLayerMixin.offload and prefetch put tensors on meta and back, torch.Stream is a no-op.
Rows of quantized caches: optimum-quanto 0.2.7, its unpack kernel replaced by an empty tensor of its output's shape.
Rows of assisted generation: the assistant is the same model with fewer layers, its confidence threshold 0.

    pip install torch==2.15.0 transformers==5.24.0
    python trace_generate.py FOLDER_OF_CONFIGS > rows.jsonl
"""

import json
import sys
import weakref

import torch
import torch.nn.functional as F
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers import AutoConfig, AutoModelForCausalLM

BLOCK = 512


class Storages(TorchDispatchMode):
    """Counts storages; peaks are kept since the last mark."""

    def __init__(self):
        super().__init__()
        self.live, self.now, self.peak, self.names = {}, 0, 0, {}
        self.top = {}

    def add(self, tensor, name=""):
        if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
            return
        if tensor.device.type == "meta":  # stands for the host where layers are offloaded
            return
        storage = tensor.untyped_storage()
        if storage._cdata in self.live or tensor.numel() == 0:
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self.live[storage._cdata] = size
        self.names[storage._cdata] = (str(name), tuple(tensor.shape), tensor.dtype)
        self.now += size
        if self.now > self.peak:
            self.peak = self.now
            self.top = dict(self.live)
            self.topnames = dict(self.names)
        weakref.finalize(storage, self.drop, storage._cdata)

    def drop(self, key):
        self.now -= self.live.pop(key, 0)
        self.names.pop(key, None)

    def mark(self):
        peak, self.peak = self.peak, self.now
        return peak

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for value in tree_flatten(out)[0]:
            if isinstance(value, torch.Tensor):
                self.add(value, function)
        return out


def sdpa(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """What flash allocates where it can run, else what the efficient kernel does."""
    half = q.dtype in (torch.float16, torch.bfloat16)
    flash = attn_mask is None and half and q.shape[-1] == v.shape[-1] <= 256
    if not flash:
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
    batch, heads, length, _ = q.shape
    out = q.new_zeros(batch, length, heads, v.shape[-1]).transpose(1, 2)
    if flash:
        lse = torch.zeros(batch, heads, length, dtype=torch.float32)
        del lse
    return out


def build(folder, name, layers, attention, dtype):
    with open(f"{folder}/{name}.json") as file:
        config = json.load(file)
    text = config.get("text_config", config)
    text["num_hidden_layers"] = layers
    for key in ("layer_types", "mlp_layer_types"):
        if text.get(key):
            text[key] = text[key][:layers]
    config = AutoConfig.for_model(config.pop("model_type"), **config)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention).eval()
    model.generation_config = transformers.GenerationConfig()
    return model


def trace(model, sequences, prompt, new, assistant=None, show=False, **options):
    """Peaks: first pass, highest later pass, highest between passes; all with the parameters."""
    storages = Storages()
    for part in (model, assistant) if assistant else (model,):
        for tensor in [*part.parameters(), *part.buffers()]:
            storages.add(tensor, "parameter")
    peaks = {"prefill": 0, "decode": 0, "sampling": 0}
    state = {"passes": 0}
    tops = {}

    def keep(phase):
        peak, top = storages.peak, storages.top
        if peak > peaks[phase]:
            peaks[phase] = peak
            names = getattr(storages, "topnames", {})
            tops[phase] = sorted(((top[k], names.get(k)) for k in top), key=lambda t: -t[0])
        storages.mark()

    def before(*_):
        if state["passes"]:
            keep("sampling")
        else:
            storages.mark()

    def after(*_):
        keep("decode" if state["passes"] else "prefill")
        state["passes"] += 1

    hooks = [model.register_forward_pre_hook(before), model.register_forward_hook(after)]
    with torch.no_grad(), storages:
        ids = torch.randint(10, 1000, (sequences, prompt))
        model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=None, pad_token_id=0,
            assistant_model=assistant, **options,
        )
        keep("sampling")
    for hook in hooks:
        hook.remove()
    if show:
        for phase, top in tops.items():
            print(phase, peaks[phase], file=sys.stderr)
            for size, name in top[:60]:
                if name and name[0] != "parameter":
                    print("   ", size, name, file=sys.stderr)
    return peaks


DRAWN = {"do_sample": True, "top_k": 50, "top_p": 0.9, "temperature": 0.7}
# (sequences, prompt tokens, new tokens, options of generate)
CASES = [
    (1, 200, 6, {}),
    (4, 100, 5, {}),
    (2, 150, 6, DRAWN),
    (2, 300, 8, {"num_beams": 4}),
    (1, 64, 6, {"num_beams": 8, "num_return_sequences": 2}),
    (2, 96, 5, {"num_return_sequences": 3, **DRAWN}),
]
MODELS = [("qwen2.5-0.5b", 2, "sdpa"), ("qwen2.5-0.5b", 4, "eager"), ("llama-3.2-1b", 2, "sdpa"), ("gemma-3-1b", 7, "eager")]


def main():
    F.scaled_dot_product_attention = sdpa
    for name, layers, attention in MODELS:
        model = build(sys.argv[1], name, layers, attention, torch.bfloat16)
        for sequences, prompt, new, options in CASES:
            peaks = trace(model, sequences, prompt, new, **options)
            row = {"model": name, "layers": layers, "attention": attention, "sequences": sequences,
                   "prompt_tokens": prompt, "new_tokens": new, "options": options}  # fmt: skip
            print(json.dumps({**row, **peaks}), flush=True)


if __name__ == "__main__":
    main()
