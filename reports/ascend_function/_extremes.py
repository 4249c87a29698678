"""The largest or smallest of what has one index."""

# npumigrate: skip-file

import torch

from ._scattered import room, scattered
from .scatter_reduce import scatter_reduce


def extremes(src, index, dim, out, dim_size, largest):
    """The values, and their places in the source: its length for an index that nothing has."""
    if out is not None:
        raise NotImplementedError("scatter_max and scatter_min on NPUs: without out")
    index, dim, size = scattered(src, index, dim, dim_size)
    length = src.shape[dim]
    start = room(src, dim, size)
    kind = "amax" if largest else "amin"
    with torch.no_grad():
        found = scatter_reduce(start, dim, index, src, kind, include_self=False)
        shape = [-1 if each == dim else 1 for each in range(src.ndim)]
        place = torch.arange(length, device=src.device).view(shape).expand(src.shape)
        place = torch.where(src == found.gather(dim, index), place, torch.full_like(place, length))
        places = room(place, dim, size, length)
        places = scatter_reduce(places, dim, index, place, "amin", include_self=True)
    values = torch.cat((src, room(src.detach(), dim, 1)), dim).gather(dim, places)
    return values, places
