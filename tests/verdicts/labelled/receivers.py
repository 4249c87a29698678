from __future__ import annotations

import pathlib
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pandas as pd
import sympy
import tensorflow as tf
import torch
from PIL import Image
from torch import nn

from .graph import solver_for


@dataclass
class Settings:
    mode: str = "train"
    solve: bool = False


class Buffer(nn.Module):
    def __init__(self, size: int, mode="fast"):
        super().__init__()
        self.mode = mode
        self.size = size
        self.register_buffer("counts", torch.zeros(size))
        self.weight = nn.Parameter(torch.randn(size))
        self.table = torch.arange(size)
        self.names = [str(i) for i in range(size)]

    def usual(self):
        return self.counts.mode()  # expect: unsupported torch.Tensor.mode

    def shared(self):
        self.weight.data.share_memory_()  # expect: none
        return self.table.is_shared()  # expect: unsupported torch.Tensor.is_shared

    def describe(self):
        return f"{self.mode} {len(self.names)}"  # expect: none

    def forward(self, x, index=None, mode: str = "a"):
        if mode == "a":  # expect: none
            return x.lgamma()  # expect: fallback torch.Tensor.lgamma
        y = self.weight * x
        z = y.digamma()  # expect: fallback torch.Tensor.digamma
        half, rest = x.chunk(2)
        return z + half.mode()[0] + rest  # expect: unsupported torch.Tensor.mode


def frames(path: pathlib.Path):
    table = pd.read_csv(path)
    common = table["label"].mode()  # expect: none
    counts = table.groupby("label").size()  # expect: none
    image = Image.open(path)
    kind = image.mode  # expect: none
    array = np.asarray(image)
    total = array.trace()  # expect: none
    fourier = np.fft.fft(array)  # expect: none
    return common, counts, kind, total, fourier


def symbolic():
    matrix = sympy.Matrix([[1, 2], [3, 4]])
    roots = sympy.solve(matrix)  # expect: none
    determinant = matrix.det()  # expect: none
    x = jnp.zeros(3)
    spread = jnp.linalg.det(x)  # expect: none
    parts = tf.math.lgamma(1.0)  # expect: none
    dense = tf.sparse.to_dense(parts)  # expect: none
    answer = solver_for(matrix).solve(matrix)  # expect: none
    return roots, determinant, spread, parts, dense, answer


def make(size: int) -> torch.Tensor:
    return torch.rand(size)  # expect: none


def chain(settings: Settings, batch: dict[str, torch.Tensor], files: list[str]):
    x = make(4)
    first = x.lgamma()  # expect: fallback torch.Tensor.lgamma
    second = make(3).cuda().float().mode()  # expect: unsupported torch.Tensor.mode
    if settings.mode == "train" and settings.solve:  # expect: none
        third = torch.zeros(3).to("cuda").to_sparse()  # expect: unsupported torch.Tensor.to_sparse
    else:
        third = make(3).to_mkldnn()  # expect: unsupported torch.Tensor.to_mkldnn
    fourth = (x + 1).mode(0)  # expect: unsupported torch.Tensor.mode
    fifth = x[0].mode()  # expect: unsupported torch.Tensor.mode
    sixth = torch.stack([x, x]).T.mode()  # expect: unsupported torch.Tensor.mode
    with open(files[0]) as handle:
        seventh = handle.mode  # expect: none
    eighth = [t.mode() for t in (x, x)]
    plain = x.sum().item()  # expect: none
    text = plain.hex()  # expect: none
    size = x.size(0)  # expect: none
    moved = x.detach().cpu().mode()  # expect: none
    there = x.to("cpu").lgamma()  # expect: none
    again = x.cpu().cuda().lgamma()  # expect: fallback torch.Tensor.lgamma
    wide = x.double().mean()  # expect: partial torch.Tensor.double
    narrow = x.cpu().double().numpy()  # expect: none
    mapped = x.apply_(abs)  # expect: fallback torch.Tensor.apply_
    here = moved + there + again + wide + mapped
    pinned = here.pin_memory()  # expect: none
    print(narrow, pinned)
    return first, second, third, fourth, fifth, sixth, seventh, eighth, text, size


class torch_like:
    def cdist(self, other):
        return other

    def mode(self):
        return 1


fake = torch_like()
fake.cdist(1)  # expect: none
fake.mode()  # expect: none


def shadow(torch):
    return torch.cdist(1, 2)  # expect: none


def names_only(mode, trace, det):
    return {"mode": mode, "torch.cdist": trace, "det": det}  # expect: none


class Holder:
    def __init__(self, tensor: torch.Tensor, nn_module: nn.Module):
        self.tensor = tensor
        self.module = nn_module
        self.module.share_memory()  # expect: none

    def runs(self):
        return self.tensor.unique_consecutive()  # expect: unsupported torch.Tensor.unique_consecutive

    def weight_rows(self):
        return self.tensor.data.to_dense()  # expect: unsupported torch.Tensor.to_dense
