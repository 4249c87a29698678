"""torch.linalg.matrix_exp by scaling, a Taylor polynomial and squaring."""

# npumigrate: skip-file

import torch

from ._floats import computed_in

_TERMS = 20  # of a matrix whose norm is at most 1/2: the next one is below 1e-25


def matrix_exp(A):
    """The exponential of square matrices."""
    value, dtype = (A, A.dtype) if A.is_complex() else computed_in(A)
    norm = float(value.detach().abs().sum(-1).max()) if value.numel() else 0.0
    halvings = 0
    while norm > 0.5 and halvings < 60:
        norm, halvings = norm / 2, halvings + 1
    small = value / 2**halvings
    unit = torch.eye(value.shape[-1], dtype=value.dtype, device=value.device)
    found = unit.expand(value.shape)
    for term in range(_TERMS, 0, -1):
        found = unit + small @ found / term
    for _ in range(halvings):
        found = found @ found
    return found.to(dtype)
