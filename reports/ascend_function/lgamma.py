"""torch.lgamma by recurrence and the series of Stirling."""

# npumigrate: skip-file

import math

import torch

from ._floats import computed_in
from .digamma import digamma

_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_FAR = 8  # from here on the series gives all digits
# Its Taylor series at 2, where it is zero: 1 - Euler's constant, then (-1)^k (zeta(k) - 1)/k.
_EULER = 0.5772156649015329
_ZETA = (
    *(0.6449340668482264, 0.2020569031595943, 0.0823232337111382, 0.0369277551433699, 0.0173430619844491),
    *(0.0083492773819228, 0.0040773561979443, 0.0020083928260822, 0.0009945751278181, 0.0004941886041195),
    *(0.0002460865533080, 0.0001227133475785, 0.0000612481350587, 0.0000305882363070, 0.0000152822594087),
)


class _Lgamma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return _values(input)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * digamma(ctx.saved_tensors[0])


def lgamma(input):
    """The logarithm of the absolute value of the gamma function."""
    value, dtype = computed_in(input)
    return _Lgamma.apply(value).to(dtype)


def _values(x):
    turned = torch.where(x < 0.5, 1 - x, x)
    found = torch.where((turned > 0.5) & (turned < 2.5), _near(turned), _far(turned))
    found = torch.where(turned.isinf(), turned.abs(), found)
    part = x - x.floor()
    sine = torch.sin(math.pi * torch.where(part > 0.5, 1 - part, part))
    reflected = math.log(math.pi) - sine.log() - found
    reflected = torch.where(part == 0, torch.full_like(x, float("inf")), reflected)
    found = torch.where(x < 0.5, reflected, found)
    return torch.where(x.isinf(), x.abs(), found)


def _near(x):
    """For 0.5 to 2.5: the series at 2, to which what is below 1.5 is moved."""
    below = x < 1.5
    step = torch.where(below, x - 1, x - 2)
    series = torch.zeros_like(x)
    for place in range(len(_ZETA) + 1, 1, -1):
        series = series * step + (1 if place % 2 == 0 else -1) * _ZETA[place - 2] / place
    series = (series * step + (1 - _EULER)) * step
    return torch.where(below, series - torch.log1p(step), series)


def _far(x):
    product = torch.ones_like(x)
    for _ in range(_FAR):
        near = x < _FAR
        product = torch.where(near, product * x, product)
        x = torch.where(near, x + 1, x)
    series = torch.zeros_like(x)
    for number in reversed(_SERIES):
        series = series / (x * x) + number
    whole = (x - 0.5) * x.log() - x + 0.5 * math.log(2 * math.pi) + series / x
    return whole - product.log()
