"""Peaks of one training step of transformers' own modelling code without a GPU or weights.

The model runs on meta tensors. A dispatch mode registers every new storage, rounds it up to 512 bytes as the
CUDA caching allocator does, and drops it when the storage dies; the highest sum in each phase is its peak.
On meta, scaled_dot_product_attention always picks the math kernel, so it is replaced by the kernel a GPU would
take. The step counted is the second one: gradients are None before it and the optimizer has its states.

    pip install torch==2.15.0 transformers==5.24.0 peft==0.21.2
    python trace_training.py FOLDER_OF_CONFIGS CASES.jsonl > rows.jsonl      # --ops prints every operator

A case is {"model", "layers", "precision": "bf16"|"fp32"|"bf16-mixed", "attention", "checkpointing",
"optimizer", "optimizer_impl", "loss": "hf"|"plain"|"none", "hold_outputs", "padding_mask", "micro_batch", "seq_len",
"lora": {"rank", "targets"}, "overrides": {...}}.
"""

import contextlib
import gc
import json
import sys
import weakref

import torch
import torch.nn.functional as F
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers import AutoConfig, AutoModelForCausalLM, masking_utils

BLOCK = 512


class Storages(TorchDispatchMode):
    """Counts storages alive on the meta device."""

    def __init__(self, ops=False):
        super().__init__()
        self.live, self.now, self.peak, self.op, self.ops = {}, 0, 0, "", ops
        self.device = "meta"

    def add(self, tensor, op):
        storage = tensor.untyped_storage()
        if tensor.device.type != self.device or storage._cdata in self.live:
            return 0
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self.live[storage._cdata] = (size, op, tuple(tensor.shape), str(tensor.dtype))
        self.now += size
        if self.now > self.peak:
            self.peak, self.op = self.now, op
            if self.ops == "peak":
                self.snapshot = sorted(self.live.values(), reverse=True)
        weakref.finalize(storage, self.drop, storage._cdata)
        return size

    def drop(self, key):
        self.now -= self.live.pop(key, (0,))[0]

    def start(self):
        self.peak, self.op = self.now, "<start>"

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        new = 0
        for value in tree_flatten(out)[0]:
            if isinstance(value, torch.Tensor):
                new += self.add(value, str(function))
        if self.ops is True and new:
            shapes = [tuple(v.shape) for v in tree_flatten(out)[0] if isinstance(v, torch.Tensor)]
            print(f"{self.now:>14} {new:>12} {function} {shapes}", file=sys.stderr)
        return out


def sdpa(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Flash where it can run, else the efficient kernel, as on devices before Hopper."""
    if torch.is_autocast_enabled("cpu"):
        fast = torch.get_autocast_dtype("cpu")
        q, k, v = (t.to(fast) if t.dtype == torch.float32 else t for t in (q, k, v))
        if attn_mask is not None and attn_mask.dtype == torch.float32:
            attn_mask = attn_mask.to(fast)
    half = q.dtype in (torch.float16, torch.bfloat16)
    if attn_mask is None and half and q.shape[-1] == v.shape[-1] <= 256:
        dim = q.shape[-1]
        if dim % 8:
            q, k, v = (F.pad(t, (0, 8 - dim % 8)) for t in (q, k, v))
        kernel = torch.ops.aten._scaled_dot_product_flash_attention
        out = kernel(q, k, v, dropout_p, is_causal, False, scale=scale or dim**-0.5)[0]
        return out[..., :dim] if dim % 8 else out
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
    return kernel(q, k, v, attn_mask, True, dropout_p, is_causal, scale=scale)[0]


def build(folder, case, device="meta"):
    with open(f"{folder}/{case['model']}.json") as file:
        config = json.load(file)
    text = config.get("text_config", config)
    text.update(case.get("overrides", {}))
    if case.get("layers"):
        text["num_hidden_layers"] = case["layers"]
        if "n_layer" in text:
            text["n_layer"] = case["layers"]
        for key in ("layer_types", "mlp_layer_types"):
            if text.get(key):
                text[key] = text[key][: case["layers"]]
    config = AutoConfig.for_model(config.pop("model_type"), **config)
    dtype = torch.bfloat16 if case["precision"] in ("bf16", "bf16-master") else torch.float32
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=case["attention"])
    if case.get("lora"):
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(r=case["lora"]["rank"], target_modules=case["lora"]["targets"], task_type="CAUSAL_LM")
        with torch.device(device):
            model = get_peft_model(model, lora)
            for name, p in model.named_parameters():
                if p.requires_grad:
                    p.data = p.data.float()
        if case["checkpointing"] != "none" or case.get("input_grads"):
            model.enable_input_require_grads()
    model.train()
    if case["checkpointing"] != "none":
        model.gradient_checkpointing_enable({"use_reentrant": bool(case.get("reentrant"))})
        model.config.use_cache = False
    return model


OPTIMIZERS = {
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "sgd_momentum": lambda p, **k: torch.optim.SGD(p, momentum=0.9, **k),
    "adafactor": torch.optim.Adafactor,
}


class MuonWithAdamw:
    """Muon on the matrices of the layers, AdamW on the rest, as its documentation asks for."""

    def __init__(self, model, impl):
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        hidden = [p for n, p in named if p.ndim == 2 and "layers" in n]
        rest = [p for n, p in named if not (p.ndim == 2 and "layers" in n)]
        self.all = [torch.optim.Muon(hidden, lr=1e-4), torch.optim.AdamW(rest, lr=1e-4, foreach=impl == "foreach")]

    def step(self):
        for optimizer in self.all:
            optimizer.step()

    def zero_grad(self, set_to_none):
        for optimizer in self.all:
            optimizer.zero_grad(set_to_none=set_to_none)


def step(model, optimizer, case, ids, storages):
    kwargs = {"use_cache": False}
    if case.get("padding_mask"):
        kwargs["attention_mask"] = torch.ones_like(ids)
    if case.get("loss", "hf") == "hf":
        kwargs["labels"] = ids
    mixed = case["precision"] == "bf16-mixed"
    cast = torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext()
    row = {}
    storages.start()
    if storages.ops is True:
        print("FORWARD", file=sys.stderr)
    with cast:
        out = model(input_ids=ids, **kwargs)
        if "labels" in kwargs:
            loss = out.loss
        elif case["loss"] == "none":
            loss = out.logits.float().mean()
        else:
            labels = F.pad(ids, (0, 1), value=-100)[..., 1:].contiguous()
            loss = F.cross_entropy(out.logits.view(-1, out.logits.shape[-1]), labels.view(-1))
            del labels
    if not case.get("hold_outputs", True):
        del out
    row["forward"], row["forward_op"], row["after_forward"] = storages.peak, storages.op, storages.now
    storages.start()
    if storages.ops is True:
        print("BACKWARD", file=sys.stderr)
    loss.backward()
    row["backward"], row["backward_op"] = storages.peak, storages.op
    row["backward_top"] = getattr(storages, "snapshot", None)
    out = loss = None  # noqa: F841
    storages.start()
    if storages.ops is True:
        print("OPTIMIZER", file=sys.stderr)
    optimizer.step()
    row["optimizer_step"], row["optimizer_op"] = storages.peak, storages.op
    return row


def trace(folder, case, ops=False):
    # Autocast knows no meta tensors: there the model runs on fake CPU tensors, under the CPU's policy.
    if case["precision"] == "bf16-mixed":
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            return traced(folder, case, ops, "cpu")
    return traced(folder, case, ops, "meta")


def traced(folder, case, ops, device):
    storages = Storages(ops=False)
    storages.device = device
    model = build(folder, case, device)
    for tensor in [*model.parameters(), *model.buffers()]:
        storages.add(tensor, "ext")
    parameters = storages.now
    trained = [p for p in model.parameters() if p.requires_grad]
    impl = case.get("optimizer_impl", "foreach")
    extra = {} if case["optimizer"] == "muon" else {"foreach": impl == "foreach"}
    if case["optimizer"] == "muon":
        optimizer = MuonWithAdamw(model, impl)
    else:
        optimizer = OPTIMIZERS[case["optimizer"]](trained, lr=1e-4, **extra)
    with torch.device(device), storages:
        ids = torch.zeros(case["micro_batch"], case["seq_len"], dtype=torch.int64)
        before = storages.now
        first = step(model, optimizer, case, ids, storages)["optimizer_step"]
        optimizer.zero_grad(set_to_none=True)
        gc.collect()
        base = storages.now
        storages.ops = ops
        row = step(model, optimizer, case, ids, storages)
        storages.ops = False
        row["gradients"] = sum(-(-p.grad.nbytes // BLOCK) * BLOCK for p in trained if p.grad is not None)
    row["optimizer_states"] = base - before
    row.update(base=base, first_optimizer_step=first, weights=parameters)
    row["n_params"] = sum(p.numel() for p in model.parameters())
    return row


def main():
    ops = "--ops" in sys.argv or ("peak" if "--peak" in sys.argv else False)
    folder, cases = [a for a in sys.argv[1:] if not a.startswith("--")]
    transformers.logging.set_verbosity_error()
    F.scaled_dot_product_attention = sdpa
    masking_utils.fast_all = lambda mask: False  # a padded position somewhere, and no values to look at
    masking_utils.find_packed_sequence_indices = lambda *a, **k: None
    with open(cases) as file:
        for line in filter(str.strip, file):
            case = json.loads(line)
            try:
                print(json.dumps({"case": case, **trace(folder, case, ops)}), flush=True)
            except Exception as error:  # one that cannot run is told, not dropped
                print(json.dumps({"case": case, "error": repr(error)[:300]}), flush=True)


if __name__ == "__main__":
    main()
