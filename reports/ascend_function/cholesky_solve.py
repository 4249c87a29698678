"""torch.cholesky_solve by Gaussian elimination."""

# npumigrate: skip-file

from .solve import solve


def cholesky_solve(B, L, upper=False):
    """The x with ``A @ x = B``, where ``L`` is the factor of A."""
    factor = L.transpose(-2, -1).conj() if upper else L
    # The other triangle counts as zeros; as in torch, the gradient has it all the same.
    factor = factor + (factor.tril() - factor).detach()
    return solve(factor.transpose(-2, -1).conj(), solve(factor, B))
