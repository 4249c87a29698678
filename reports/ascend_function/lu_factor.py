"""torch.linalg.lu_factor and lu_factor_ex by Gaussian elimination."""

# npumigrate: skip-file

import torch

from ._lu import lu


def lu_factor(A, *, pivot=True):
    """The factors of matrices in one, and the rows that were swapped, from 1."""
    factors, swaps, _ = lu(A, pivot)
    return torch.return_types.linalg_lu_factor((factors, swaps))
