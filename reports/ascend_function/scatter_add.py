"""torch_scatter.scatter_add."""

# npumigrate: skip-file

from ._scattered import room, scattered


def scatter_add(src, index, dim=-1, out=None, dim_size=None):
    """The sums of what has one index."""
    index, dim, size = scattered(src, index, dim, dim_size)
    if out is not None:
        return out.scatter_add_(dim, index, src)
    return room(src, dim, size).scatter_add(dim, index, src)
