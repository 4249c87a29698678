"""torch.special.erfcx, by a continued fraction from 3 on."""

# npumigrate: skip-file

import math

import torch

from ._floats import computed_in

_FAR = 3.0
_DEPTH = 40


class _Erfcx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        found = _values(input)
        ctx.save_for_backward(input, found)
        return found

    @staticmethod
    def backward(ctx, gradient):
        input, found = ctx.saved_tensors
        return gradient * (2 * input * found - 2 / math.sqrt(math.pi))


def erfcx(input):
    """``exp(x * x) * erfc(x)`` without overflow in between."""
    value, dtype = computed_in(input)
    return _Erfcx.apply(value).to(dtype)


def _values(x):
    near = torch.exp(torch.where(x < _FAR, x * x, torch.zeros_like(x))) * torch.erfc(x)
    there = x.clamp(min=_FAR)
    far = torch.zeros_like(x)
    for step in range(_DEPTH, 0, -1):
        far = (step / 2) / (there + far)
    return torch.where(x < _FAR, near, 1 / (math.sqrt(math.pi) * (there + far)))
