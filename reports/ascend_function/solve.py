"""torch.linalg.solve by Gaussian elimination."""

# npumigrate: skip-file

import torch

from ._elimination import eliminated, refuse_singular


class _Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrix, right):
        pivots, _, found = eliminated(matrix, right)
        refuse_singular(pivots, "torch.linalg.solve")
        ctx.save_for_backward(matrix, found)
        return found

    @staticmethod
    def backward(ctx, gradient):
        matrix, found = ctx.saved_tensors
        of_right = _Solve.apply(matrix.transpose(-2, -1).conj(), gradient)
        return -of_right @ found.transpose(-2, -1).conj(), of_right


def solve(A, B, *, left=True):
    """The x with ``A @ x = B``, or with ``x @ A = B`` where not ``left``."""
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape)
    if is_vector:
        if not left:
            raise ValueError("solve: with left=False B has to be a matrix")
        return solve(A, B.unsqueeze(-1)).squeeze(-1)
    if not left:
        return solve(A.transpose(-2, -1), B.transpose(-2, -1)).transpose(-2, -1)
    batch = torch.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return _Solve.apply(A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:]))
