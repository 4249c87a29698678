"""torch.linalg.cholesky and torch.cholesky."""

# npumigrate: skip-file

from ._factor import factored, refuse_failed


def cholesky(input, upper=False):
    """The factor of positive definite matrices: the lower one, or the upper one."""
    factor, failed = factored(input)
    refuse_failed(failed, "torch.linalg.cholesky")
    return factor.transpose(-2, -1).conj() if upper else factor
