"""Made by npumigrate: functions of torch_scatter, in torch operators that NPUs have kernels for."""

# npumigrate: skip-file

import torch


def scatter_sum(src, index, dim=-1, out=None, dim_size=None):
    """The sums of what has one index."""
    index, dim, size = _expanded(src, index, dim, dim_size)
    if out is not None:
        return out.scatter_add_(dim, index, src)
    return _room(src, dim, size).scatter_add(dim, index, src)


scatter_add = scatter_sum


def scatter_mean(src, index, dim=-1, out=None, dim_size=None):
    """The means of what has one index."""
    index, dim, size = _expanded(src, index, dim, dim_size)
    total = (_room(src, dim, size) if out is None else out).scatter_add(dim, index, src)
    ones = torch.ones_like(src)
    count = _room(ones, dim, total.shape[dim]).scatter_add(dim, index, ones).clamp(min=1)
    found = total / count if src.is_floating_point() else torch.div(total, count, rounding_mode="floor")
    return found if out is None else out.copy_(found)


def scatter_max(src, index, dim=-1, out=None, dim_size=None):
    """The largest of what has one index, and their places: the length where an index has none."""
    return _extremes(src, index, dim, out, dim_size, True)


def scatter_min(src, index, dim=-1, out=None, dim_size=None):
    """The smallest of what has one index, and their places: the length where an index has none."""
    return _extremes(src, index, dim, out, dim_size, False)


def scatter(src, index, dim=-1, out=None, dim_size=None, reduce="sum"):
    """The sums, means, largest or smallest of what has one index."""
    if reduce in ("sum", "add"):
        return scatter_sum(src, index, dim, out, dim_size)
    if reduce == "mean":
        return scatter_mean(src, index, dim, out, dim_size)
    if reduce in ("max", "min"):
        return _extremes(src, index, dim, out, dim_size, reduce == "max")[0]
    raise NotImplementedError("scatter on NPUs: reduce has to be sum, add, mean, max or min")


def _expanded(src, index, dim, dim_size):
    """The index in the shape of the source, the dimension, and its size in the result."""
    dim = dim % src.ndim
    if index.ndim == 1:
        index = index.view([-1 if each == dim else 1 for each in range(src.ndim)])
    while index.ndim < src.ndim:
        index = index.unsqueeze(-1)
    index = index.expand_as(src)
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.numel() else 0
    return index, dim, dim_size


def _room(src, dim, size, value=0):
    shape = list(src.shape)
    shape[dim] = size
    return torch.full(shape, value, dtype=src.dtype, device=src.device)


def _extremes(src, index, dim, out, dim_size, largest):
    """By two sorts: what is the last of those with one index is the largest, or the smallest."""
    if out is not None:
        raise NotImplementedError("scatter_max and scatter_min on NPUs: without out")
    index, dim, size = _expanded(src, index, dim, dim_size)
    length = src.shape[dim]
    order = torch.sort(src.detach(), dim, descending=not largest)[1]
    groups = index.gather(dim, order)
    # By their groups, and in a group by their order.
    place = torch.arange(length, device=src.device).view(
        [-1 if each == dim else 1 for each in range(src.ndim)]
    )
    ranks = torch.sort(groups * length + place, dim)[1]
    groups, order = groups.gather(dim, ranks), order.gather(dim, ranks)
    following = groups.narrow(dim, 1, max(length - 1, 0))
    ends = torch.ones_like(groups.narrow(dim, 0, min(length, 1)), dtype=torch.bool)
    is_last = torch.cat((following != groups.narrow(dim, 0, max(length - 1, 0)), ends), dim)
    # What is not the last of its group goes to a place of its own behind the others.
    goal = torch.where(is_last, groups, torch.full_like(groups, size))
    places = _room(order, dim, size + 1, length).scatter(dim, goal, order).narrow(dim, 0, size)
    return torch.cat((src, _room(src, dim, 1)), dim).gather(dim, places), places
