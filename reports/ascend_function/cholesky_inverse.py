"""torch.cholesky_inverse by Gaussian elimination."""

# npumigrate: skip-file

import torch

from .cholesky_solve import cholesky_solve


def cholesky_inverse(L, upper=False):
    """The inverse of the matrices that have the factor ``L``."""
    return cholesky_solve(torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(L.shape), L, upper)
