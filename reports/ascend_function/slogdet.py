"""torch.linalg.slogdet by Gaussian elimination."""

# npumigrate: skip-file

import torch

from ._elimination import eliminated


def slogdet(A):
    """Sign and logarithm of the absolute value of the determinants of square matrices."""
    pivots, sign, _ = eliminated(A)
    size = pivots.abs()
    signs = pivots / torch.where(size == 0, torch.ones_like(size), size)
    names = torch.return_types.linalg_slogdet
    return names((sign * signs.prod(-1), size.log().sum(-1)))
