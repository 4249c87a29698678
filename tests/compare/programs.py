"""Small trainings, as they are and with one planted difference: recorded in one process for the tests.

PYTHONPATH=migrator/compare/bootstrap python tests/compare/programs.py FOLDER
"""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


class Conv(nn.Module):
    def __init__(self, inside, out, stride=1, eps=1e-5, momentum=0.1, padding_mode="zeros", turned=False):
        super().__init__()
        self.conv = nn.Conv2d(inside, out, 3, stride, 1, padding_mode=padding_mode)
        self.bn = nn.BatchNorm2d(out, eps=eps, momentum=momentum)
        self.turned = turned

    def forward(self, x):
        x = self.conv(x)
        return self.bn(functional.relu(x)) if self.turned else functional.relu(self.bn(x))


class ResBlock(nn.Module):
    def __init__(self, width, **settings):
        super().__init__()
        self.first = Conv(width, width, **settings)
        self.second = Conv(width, width)

    def forward(self, x):
        return x + self.second(self.first(x))


class ResNet(nn.Module):
    def __init__(self, high=1.0, changed=None, **settings):
        super().__init__()
        self.stem = Conv(3, 8)
        blocks = [ResBlock(8, **(settings if changed == place else {})) for place in range(3)]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(8, 5)
        self.high = high

    def forward(self, x):
        x = self.blocks(self.stem(x)).clamp(0, self.high)
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads=2, scale=None, causal=None, half=False, drop=0.0):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.half = heads, causal, half
        self.factor = scale or (width // heads) ** -0.5
        self.drop = nn.Dropout(drop)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * self.factor
        if self.causal is not None:
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(self.causal)
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        if self.half:
            scores = scores.half().softmax(-1).float()
        else:
            scores = scores.softmax(-1)
        return self.out((self.drop(scores) @ v).transpose(1, 2).reshape(batch, length, width))


class WrongGelu(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return functional.gelu(x)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * torch.sigmoid(1.702 * x)


class Gelu(nn.Module):
    def forward(self, x):
        return functional.gelu(x)


class FusedGelu(nn.Module):
    def forward(self, x):
        return WrongGelu.apply(x)


class Layer(nn.Module):
    def __init__(self, width, eps=1e-5, approximate="none", drop=0.1, act=None, **attention):
        super().__init__()
        self.attn = Attention(width, **attention)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.act = act or nn.GELU(approximate=approximate)
        self.drop = nn.Dropout(drop)

    def forward(self, x, mask=None):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.drop(self.fc2(self.act(self.fc1(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self, changed=None, half=False, shift=0, init=None, **settings):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        layers = [Layer(16, **(settings if changed == place else {})) for place in range(2)]
        self.layers, self.head = nn.ModuleList(layers), nn.Linear(16, 4)
        self.half, self.shift = half, shift
        if init:
            nn.init.normal_(self.layers[1].fc1.weight, std=init)

    def forward(self, tokens, lengths):
        places = torch.arange(tokens.size(1), device=tokens.device)
        mask = (places >= lengths[:, None] - self.shift)[:, None, None, :]
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x.half().mean(1).float() if self.half else x.mean(1))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return functional.silu(functional.group_norm(x, 2, self.weight, self.bias))


class FusedNorm(Norm):
    def forward(self, x):  # over all groups at once
        return functional.silu(functional.layer_norm(x, x.shape[1:])) * self.weight[:, None, None]


class Up(nn.Module):
    def __init__(self, inside, out, corners=False, turned=False):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(inside, out, 3, padding=1), Norm(out)
        self.corners, self.turned = corners, turned

    def forward(self, x, skip):
        x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=self.corners)
        return self.norm(self.conv(torch.cat([skip, x] if self.turned else [x, skip], 1)))


class UNet(nn.Module):
    def __init__(self, norm=Norm, stride_pool=False, **settings):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), Norm(8)
        self.down, self.down_norm = nn.Conv2d(8, 8, 3, 2, 1), norm(8)
        self.middle = nn.Conv2d(8, 8, 3, 2, 1)
        self.up1, self.up2 = Up(16, 8, **settings), Up(16, 8)
        self.out = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        one = self.norm(self.first(x))
        two = self.down_norm(self.down(one))
        x = self.up1(functional.silu(self.middle(two)), two)
        return self.out(self.up2(x, one))


class GPT(nn.Module):
    def __init__(self, changed=None, tied=True, start=0, **settings):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(30, 16), nn.Embedding(32, 16)
        plain = {"causal": 1, "drop": 0.0}
        layers = [Layer(16, **{**plain, **(settings if changed == i else {})}) for i in range(2)]
        self.blocks, self.norm = nn.ModuleList(layers), nn.LayerNorm(16)
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.wte.weight if tied else nn.Parameter(self.wte.weight.detach().clone())
        self.start = start

    def forward(self, tokens):
        places = torch.arange(self.start, self.start + tokens.size(1), device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


MODELS = {"resnet": ResNet, "transformer": Transformer, "unet": UNet, "gpt": GPT}


def batch(name, draw, mean):
    if name == "transformer":
        lengths = torch.randint(3, 9, (6,), generator=draw)
        return (torch.randint(20, (6, 8), generator=draw), lengths), torch.randint(4, (6,), generator=draw)
    if name == "gpt":
        tokens = torch.randint(30, (4, 13), generator=draw)
        return (tokens[:, :-1],), tokens[:, 1:]
    images = torch.rand(6, 3, 8, 8, generator=draw)
    target = torch.randint(5, (6,), generator=draw) if name == "resnet" else images.flip(3)
    return ((images - mean) / 0.25,), target


def train(
    name,
    steps=3,
    device="cpu",
    wrap=lambda model: model,
    mean=0.5,
    loss=None,
    optimizer=None,
    zero=True,
    clip=None,
    order=(0, 1, 2, 3, 4, 5),
    evaluate=False,
    dtype=None,
    ignore=-100,
    averaged=False,
    **changes,
):
    """Train a model for some steps and print its loss, as users' programs do."""
    torch.manual_seed(3)
    model = wrap(MODELS[name](**changes).to(device))
    kind = torch.optim.AdamW if name in ("transformer", "gpt") else torch.optim.SGD
    plain = {"lr": 1e-3} if kind is torch.optim.AdamW else {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4}
    step = kind(model.parameters(), **{**plain, **(optimizer or {})})
    settings = {} if name == "unet" else {"label_smoothing": 0.1, "ignore_index": ignore}
    criterion = (nn.MSELoss if name == "unet" else nn.CrossEntropyLoss)(**{**settings, **(loss or {})})
    draw = torch.Generator().manual_seed(5)
    batches = [batch(name, draw, mean) for _ in range(6)]
    model.train(not evaluate)
    average, total = copy.deepcopy(model), 0.0
    for number in range(steps):
        given, target = batches[order[number % 6]]
        with torch.autocast(device, dtype or torch.bfloat16, enabled=dtype is not None):
            out = model(*(each.to(device) for each in given))
            value = criterion(
                out.flatten(0, 1) if name == "gpt" else out,
                target.to(device).flatten() if name == "gpt" else target.to(device),
            )
        if averaged:  # how long it took is no result
            torch.as_tensor(time.perf_counter()).square().sum()
        if zero:
            step.zero_grad()
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        step.step()
        for slow, new in zip(average.parameters(), model.parameters()):
            slow.data.lerp_(new.data, 0.5)
        total += value.item()
        print(f"step {number} loss: {value.item():.5f}")
    if averaged:  # its first call is after the training
        with torch.no_grad():
            out = average(*(each.to(device) for each in given)).float().mean()
        print(f"averaged: {out * 0 + torch.tensor([total / steps]).item():.3f}")


def nearly(model):
    """The same with another rounding, as on another device: in its linear layers."""
    for each in model.modules():
        if isinstance(each, nn.Linear):
            each.register_forward_hook(lambda _module, _given, made: made * (1 + 2.0**-8 * (made > 0)))
    return model


# The model, what is changed, what the first parting names, and the name of its cause.
PLANTED = {
    "BN epsilon": ("resnet", {"changed": 1, "eps": 1e-2}, "blocks.1.first.bn BatchNorm2d", "changed epsilon"),
    "BN momentum": (
        "resnet",
        {"changed": 2, "momentum": 0.01},
        "blocks.2.first.bn BatchNorm2d",
        "changed momentum of a normalisation",
    ),
    "padding": (
        "resnet",
        {"changed": 0, "padding_mode": "replicate"},
        "blocks.0.first.conv Conv2d",
        "different setting of the module",
    ),
    "order": ("resnet", {"changed": 1, "turned": True}, "blocks.1.first Conv", None),
    "clamp": ("resnet", {"high": 0.9}, "ResNet", "different setting of the module"),
    "reduction": (
        "resnet",
        {"loss": {"reduction": "sum"}},
        "CrossEntropyLoss",
        "different setting of the module",
    ),
    "smoothing": (
        "resnet",
        {"loss": {"label_smoothing": 0.0}},
        "CrossEntropyLoss",
        "different setting of the module",
    ),
    "learning rate": ("resnet", {"optimizer": {"lr": 0.04}}, "SGD", "different setting of the optimizer"),
    "momentum": ("resnet", {"optimizer": {"momentum": 0.8}}, "SGD", "different setting of the optimizer"),
    "weight decay": (
        "resnet",
        {"optimizer": {"weight_decay": 1e-3}},
        "SGD",
        "different setting of the optimizer",
    ),
    "zero_grad": ("resnet", {"zero": False}, "SGD", "gradients are not reset"),
    "normalisation of data": ("resnet", {"mean": 0.4}, "input of ResNet", "different data"),
    "LN epsilon": ("transformer", {"changed": 1, "eps": 1e-1}, "layers.1.norm1 LayerNorm", "changed epsilon"),
    "scale": (
        "transformer",
        {"changed": 0, "scale": 0.125},
        "layers.0.attn Attention",
        "different setting of the module",
    ),
    "mask": ("transformer", {"shift": 1}, "Transformer", None),
    "dropout": (
        "transformer",
        {"changed": 0, "drop": 0.2},
        "layers.0.drop Dropout",
        "different setting of the module",
    ),
    "eval": ("transformer", {"evaluate": True}, "layers.0.drop Dropout", "training mode"),
    "approximation": (
        "transformer",
        {"changed": 0, "approximate": "tanh"},
        "layers.0.act GELU",
        "different setting of the module",
    ),
    "half sum": ("transformer", {"half": True}, "Transformer", None),
    "clipping": ("transformer", {"clip": 0.1}, "AdamW", "gradients are clipped or scaled differently"),
    "initialisation": ("transformer", {"init": 0.5}, "layers.1.fc1 Linear", "different initial values"),
    "fused norm": ("unet", {"norm": FusedNorm}, "down_norm Norm", "replaced by another operation"),
    "corners": ("unet", {"corners": True}, "up1 Up", "different setting of the module"),
    "concatenation": ("unet", {"turned": True}, "up1 Up", None),
    "loader": ("unet", {"order": (2, 0, 1, 3, 4, 5)}, "input of UNet", "different order of the data"),
    "tied": ("gpt", {"tied": False}, "head Linear", "weights no longer tied"),
    "causal mask": (
        "gpt",
        {"changed": 0, "causal": 2},
        "blocks.0.attn Attention",
        "different setting of the module",
    ),
    "half softmax": ("gpt", {"changed": 1, "half": True}, "blocks.1.attn Attention", None),
    "positions": ("gpt", {"start": 1}, "GPT", None),
    "betas": ("gpt", {"optimizer": {"betas": (0.9, 0.95)}}, "AdamW", "different setting of the optimizer"),
    "fused gradient": ("gpt", {"changed": 1, "act": "fused"}, "blocks.1.act GELU", "different backward pass"),
}
# The same numbers by another way: no parting.
CLEAN = {
    "again": ("resnet", {"steps": 20}),
    "channels last": (
        "resnet",
        {"wrap": lambda model: model.to(memory_format=torch.channels_last), "steps": 12},
    ),
    "two threads": ("unet", {"threads": 2, "steps": 20}),
    "wrapped": ("transformer", {"wrap": nn.DataParallel}),
    "plain optimizer": ("gpt", {"optimizer": {"foreach": False}, "steps": 20}),
    "bfloat16": ("gpt", {"dtype": torch.bfloat16, "threads": 2}),
    "average": ("gpt", {"dtype": torch.bfloat16, "averaged": True, "wrap": nearly}),
    "compiled": ("transformer", {"compiled": True}),
    "other code": ("gpt", {"changed": 0, "act": "same", "steps": 12}),
}


def run(name, given):
    given = dict(given)
    torch.set_num_threads(given.pop("threads", 1))
    if given.pop("compiled", False):
        given["wrap"] = lambda model: torch.compile(model, backend="eager")
    kind = given.get("act")
    if kind:
        given["act"] = FusedGelu() if kind == "fused" else Gelu()
    train(name, **given)


def record_all(folder):
    from npumigrate_recorder.recording import Recorder, begin, finish

    recorder = begin(Recorder(str(folder), 100, "mix", True))

    def record(name, model, given):
        recorder.folder = str(folder / name)
        Path(recorder.folder).mkdir(parents=True)
        recorder.reset()
        run(model, given)
        finish(recorder)
        (folder / name / "run.json").write_text(json.dumps({"command": [name]}))

    for name, (model, given, place, cause) in PLANTED.items():
        record(name, model, given)
        (folder / name / "planted").write_text("\n".join((model, place, cause or "")))
    for model in MODELS:
        record(model, model, {"steps": 20})
    record("gpt bfloat16", "gpt", {"dtype": torch.bfloat16, "averaged": True})
    for name, (model, given) in CLEAN.items():
        record(name, model, given)
        (folder / name / "planted").write_text("gpt bfloat16" if "dtype" in given else model)


if __name__ == "__main__":
    record_all(Path(sys.argv[1]))
