"""The factor of Cholesky, column by column, from operators that NPUs have kernels for."""

# npumigrate: skip-file

import torch


def factored(matrix):
    """The lower factors of positive definite matrices, and the steps (from 1) at which others failed, or 0.

    As torch does, it reads the lower triangle, and the gradient is symmetric.
    """
    size = matrix.shape[-1]
    whole = (matrix + matrix.transpose(-2, -1).conj()) / 2
    lower = matrix.detach().tril()
    read = lower + lower.tril(-1).transpose(-2, -1).conj()
    whole = whole + (read - whole.detach())
    failed = torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)
    columns = []
    for step in range(size):
        column = whole[..., step]
        for before in columns:
            column = column - before * before[..., step : step + 1].conj()
        pivot = column[..., step : step + 1]
        pivot = pivot.real if pivot.is_complex() else pivot
        bad = ~(pivot.squeeze(-1) > 0) & (failed == 0)
        failed = torch.where(bad, torch.full_like(failed, step + 1), failed)
        column = column / torch.where(pivot > 0, pivot, torch.ones_like(pivot)).sqrt()
        above = torch.arange(size, device=matrix.device) < step
        columns.append(column.masked_fill(above, 0))
    factor = torch.stack(columns, -1) if columns else matrix.clone()
    return factor, failed


def refuse_failed(failed, function):
    """Raise what torch raises where a factor could not be found."""
    if bool((failed != 0).any()):
        error = getattr(torch.linalg, "LinAlgError", RuntimeError)
        raise error(function + ": The input is not positive-definite.")
