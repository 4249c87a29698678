"""torch_scatter.scatter_min."""

# npumigrate: skip-file

from ._extremes import extremes


def scatter_min(src, index, dim=-1, out=None, dim_size=None):
    """The smallest of what has one index, and their places."""
    return extremes(src, index, dim, out, dim_size, False)
