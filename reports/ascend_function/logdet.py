"""torch.logdet by Gaussian elimination."""

# npumigrate: skip-file

import torch

from .slogdet import slogdet


def logdet(input):
    """The logarithms of the determinants of square matrices; nan where one is negative."""
    sign, size = slogdet(input)
    if sign.is_complex():
        return size + sign.log()
    return torch.where(sign < 0, torch.full_like(size, float("nan")), size)
