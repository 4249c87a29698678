"""Gaussian elimination with partial pivoting, from operators that NPUs have kernels for."""

# npumigrate: skip-file

import torch


def eliminated(matrix, right=None):
    """The pivots of square matrices, the sign of the row swaps, and what solves ``matrix @ x = right``.

    All of it can be derived. Of a singular matrix the pivots end in zeros, and x has no meaning.
    """
    size = matrix.shape[-1]
    rows = matrix if right is None else torch.cat((matrix, right), -1)
    places = torch.arange(size, device=matrix.device)
    sign = torch.ones(matrix.shape[:-2], dtype=matrix.dtype, device=matrix.device)
    pivots = []
    for step in range(size):
        largest = rows[..., step:, step].detach().abs().argmax(-1, keepdim=True) + step
        order = torch.where(places == step, largest, torch.where(places == largest, step, places))
        rows = rows.gather(-2, order.unsqueeze(-1).expand(rows.shape))
        sign = torch.where(largest.squeeze(-1) == step, sign, -sign)
        row = rows[..., step : step + 1, :]
        pivot = row[..., step : step + 1]
        pivots.append(pivot[..., 0, 0])
        row = row / torch.where(pivot == 0, torch.ones_like(pivot), pivot)
        here = (places == step).unsqueeze(-1)
        rows = torch.where(here, row, rows - rows[..., step : step + 1] * row)
    found = torch.stack(pivots, -1) if pivots else matrix.sum(-1)  # of no rows: there is nothing in it
    return found, sign, rows[..., size:]


def refuse_singular(pivots, function):
    """Raise what torch raises where one of the pivots is zero."""
    if bool((pivots == 0).any()):
        error = getattr(torch.linalg, "LinAlgError", RuntimeError)
        raise error(function + ": The input matrix is singular.")
