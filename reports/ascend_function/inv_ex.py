"""torch.linalg.inv_ex by Gaussian elimination."""

# npumigrate: skip-file

import torch

from .solve_ex import solve_ex


def inv_ex(A, *, check_errors=False):
    """The inverse of square matrices, and the step at which a singular one failed, or 0."""
    unit = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    return torch.return_types.linalg_inv_ex(tuple(solve_ex(A, unit, check_errors=check_errors)))
