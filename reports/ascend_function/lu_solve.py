"""torch.linalg.lu_solve."""

# npumigrate: skip-file

import torch

from .solve import solve


def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """The x with ``A @ x = B``, where A has the factors ``LU`` and the swapped rows ``pivots``."""
    size = LU.shape[-1]
    upper = LU.triu()
    unit = torch.eye(size, dtype=LU.dtype, device=LU.device)
    lower = LU.tril(-1) + unit
    places = torch.arange(size, device=LU.device).expand(*LU.shape[:-2], size)
    for step in range(size):
        other = pivots[..., step : step + 1].long() - 1
        here = places[..., step : step + 1]
        there = places.gather(-1, other)
        across = torch.arange(size, device=LU.device)
        places = torch.where(across == step, there, torch.where(across == other, here, places))
    matrix = lower @ upper
    matrix = torch.zeros_like(matrix).scatter(-2, places.unsqueeze(-1).expand(matrix.shape), matrix)
    if adjoint:
        matrix = matrix.transpose(-2, -1).conj()
    return solve(matrix, B, left=left)
