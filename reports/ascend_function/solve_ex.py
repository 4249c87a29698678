"""torch.linalg.solve_ex by Gaussian elimination."""

# npumigrate: skip-file

import torch

from ._elimination import eliminated
from .solve import solve


def solve_ex(A, B, *, left=True, check_errors=False):
    """The x with ``A @ x = B``, and the step at which a singular matrix failed, or 0."""
    if check_errors:
        found = solve(A, B, left=left)
        return torch.return_types.linalg_solve_ex((found, found.new_zeros(A.shape[:-2], dtype=torch.int32)))
    with torch.no_grad():
        pivots, _, _ = eliminated(A)
        zero = pivots == 0
        steps = torch.arange(A.shape[-1], 0, -1, device=A.device)
        # The first zero has the largest of these numbers.
        left_over = (zero * steps).sum(-1) if not A.shape[-1] else (zero * steps).amax(-1)
        failed = torch.where(left_over > 0, A.shape[-1] + 1 - left_over, left_over).to(torch.int32)
        unit = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    # A singular matrix has no solution: its own is nan.
    usable = torch.where((failed != 0)[..., None, None], unit, A)
    found = solve(usable, B, left=left)
    is_vector = found.ndim == A.ndim - 1
    lost = (failed != 0)[..., None] if is_vector else (failed != 0)[..., None, None]
    found = torch.where(lost, torch.full_like(found, float("nan")), found)
    return torch.return_types.linalg_solve_ex((found, failed))
