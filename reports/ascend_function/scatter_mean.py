"""torch_scatter.scatter_mean."""

# npumigrate: skip-file

import torch

from ._scattered import room, scattered


def scatter_mean(src, index, dim=-1, out=None, dim_size=None):
    """The means of what has one index."""
    index, dim, size = scattered(src, index, dim, dim_size)
    total = room(src, dim, size) if out is None else out
    total = total.scatter_add(dim, index, src)
    ones = src.detach().new_ones(src.shape)
    count = room(ones, dim, total.shape[dim]).scatter_add(dim, index, ones).clamp(min=1)
    found = total / count if src.is_floating_point() else torch.div(total, count, rounding_mode="floor")
    return found if out is None else out.copy_(found)
