"""torch.linalg.lu_factor_ex by Gaussian elimination."""

# npumigrate: skip-file

import torch

from ._lu import lu


def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """The factors of matrices in one, the rows that were swapped, and the step with a zero pivot, or 0."""
    factors, swaps, failed = lu(A, pivot)
    if check_errors and bool((failed != 0).any()):
        error = getattr(torch.linalg, "LinAlgError", RuntimeError)
        raise error("torch.linalg.lu_factor_ex: U has a zero on the diagonal.")
    return torch.return_types.linalg_lu_factor_ex((factors, swaps, failed))
