"""The modified functions of Bessel of order 0 and 1, by their series."""

# npumigrate: skip-file

import math

import torch

_FAR = 16.0  # from here on the asymptotic series has all digits
_TERMS = 40
_LATE = 12


def scaled(order, x):
    """exp(-|x|) I(x) for x >= 0: all terms of the series near 0 have one sign."""
    square = torch.clamp(x, max=_FAR) ** 2 / 4
    term = torch.ones_like(x)
    near = torch.ones_like(x)
    for step in range(1, _TERMS):
        term = term * square / (step * (step + order))
        near = near + term
    near = near * torch.exp(-torch.clamp(x, max=_FAR))
    if order:
        near = near * x / 2
    there = torch.clamp(x, min=_FAR)
    term = torch.ones_like(x)
    far = torch.ones_like(x)
    for step in range(1, _LATE):
        term = term * ((2 * step - 1) ** 2 - 4 * order**2) / (8 * step * there)
        far = far + term
    return torch.where(x < _FAR, near, far / (2 * math.pi * there).sqrt())
