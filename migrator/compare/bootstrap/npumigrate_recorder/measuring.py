"""The numbers of a tensor: few, made on its device, so that nothing waits for it.

Beside the smallest and largest value, the sum, the sum of squares and the counts of NaN and infinite values
there are eight sums of all values with signs by their places. They are the checksum: they change with each
value and with the order. And they are linear: those of two tensors tell, within a few ten percent, how far
the tensors are from each other (a count sketch), though they never meet.
"""

from __future__ import annotations

import random
from typing import Any

import torch

FIELDS = 14
_SUMS = 8
_ROW = 509 * _SUMS
_PIECE = _ROW * 4096  # values at a time: bounds what is needed beside a large tensor
_LARGEST = 1e15  # a mask's "minus infinity" is counted as infinite: its square would hide all else
_signs: dict[Any, tuple[Any, Any, Any]] = {}


def measurable(value: Any) -> bool:
    """Whether a tensor has numbers that can be read here and now."""
    return bool(
        value.numel()
        and value.layout is torch.strided
        and value.device.type != "meta"
        and not value.is_quantized
        and type(value) in _PLAIN
        and not torch._C._functorch.is_functorch_wrapped_tensor(value)
    )


_PLAIN = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter))


def measure(value: Any) -> list[Any]:
    """The numbers of a tensor, a tensor of ``FIELDS`` values for each piece of it."""
    flat = value.detach()
    flat = (torch.view_as_real(flat) if flat.is_complex() else flat).reshape(-1)
    signs, of_rows, nothing = _signs_on(value.device)
    measured = []
    for piece in flat.split(_PIECE):
        count = piece.numel()
        rows = -(-count // _ROW)
        padded = torch.zeros(rows * _ROW, dtype=torch.float32, device=value.device)
        body = padded[:count].copy_(piece)
        counts: Any = (nothing, nothing)
        # The CPU can be asked at once; another device is not waited for.
        if not value.is_cpu or not float(torch.dot(body, body)) < _LARGEST:
            small = body.abs() < _LARGEST
            missing = (body != body).sum().float()
            counts = missing, count - small.sum().float() - missing
            body.copy_(body.where(small, nothing))
        sums = (padded.view(rows, _ROW) * signs).view(rows, -1, _SUMS).sum(1)
        sums = (sums * of_rows[:rows]).sum(0) if rows > 1 else sums[0] * of_rows[0]
        first = torch.stack([*torch.aminmax(body), body.sum(), torch.dot(body, body), *counts])
        measured.append(torch.cat([first, sums]))
    return measured


def merge(pieces: list[list[float]]) -> list[float]:
    """One row of numbers from those of the pieces of a tensor."""
    whole = pieces[0]
    for number, piece in enumerate(pieces[1:], 1):
        turned = [piece[6 + (place + number) % _SUMS] for place in range(_SUMS)]
        added = [a + b for a, b in zip(whole[2:], [*piece[2:6], *turned])]
        whole = [min(whole[0], piece[0]), max(whole[1], piece[1]), *added]
    return whole


def _signs_on(device: Any) -> tuple[Any, Any, Any]:
    """The signs of the values in a row, and of the rows, the same on all machines; and a zero."""
    if device not in _signs:
        draw = random.Random(20)  # not the program's generator
        made = [[draw.choice((-1.0, 1.0)) for _ in range(count)] for count in (_ROW, _PIECE // _ROW)]
        of_row, of_rows = (torch.tensor(each, dtype=torch.float32).to(device) for each in made)
        _signs[device] = of_row, of_rows[:, None], torch.zeros((), device=device)
    return _signs[device]
