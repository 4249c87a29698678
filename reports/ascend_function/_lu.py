"""The factors L and U of matrices, from operators that NPUs have kernels for."""

# npumigrate: skip-file

import torch


def lu(matrix, pivot=True):
    """Both factors in one matrix, the swapped rows from 1, and the first step with a zero pivot, or 0.

    All of it can be derived.
    """
    height, width = matrix.shape[-2:]
    places = torch.arange(height, device=matrix.device)
    across = torch.arange(width, device=matrix.device)
    rows = matrix
    swaps = []
    failed = torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)
    for step in range(min(height, width)):
        largest = torch.full((*matrix.shape[:-2], 1), step, dtype=torch.int64, device=matrix.device)
        if pivot:
            largest = rows[..., step:, step].detach().abs().argmax(-1, keepdim=True) + step
        swaps.append(largest + 1)
        order = torch.where(places == step, largest, torch.where(places == largest, step, places))
        rows = rows.gather(-2, order.unsqueeze(-1).expand(rows.shape))
        row = rows[..., step : step + 1, :]
        number = row[..., step : step + 1]
        zero = number == 0
        first = (failed == 0) & zero[..., 0, 0]
        failed = torch.where(first, torch.full_like(failed, step + 1), failed)
        factor = rows[..., step : step + 1] / torch.where(zero, torch.ones_like(number), number)
        below = (places > step).unsqueeze(-1)
        changed = rows - factor * row
        rows = torch.where(below & (across > step), changed, rows)
        rows = torch.where(below & (across == step), factor, rows)
    found = torch.cat(swaps, -1) if swaps else places[:0].expand(*matrix.shape[:-2], 0)
    return rows, found.to(torch.int32), failed
