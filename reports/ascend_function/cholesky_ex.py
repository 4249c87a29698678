"""torch.linalg.cholesky_ex."""

# npumigrate: skip-file

import torch

from ._factor import factored, refuse_failed


def cholesky_ex(input, *, upper=False, check_errors=False):
    """The factor of positive definite matrices, and the step at which another one failed, or 0."""
    factor, failed = factored(input)
    if check_errors:
        refuse_failed(failed, "torch.linalg.cholesky_ex")
    factor = factor.transpose(-2, -1).conj() if upper else factor
    return torch.return_types.linalg_cholesky_ex((factor, failed))
