"""torch_scatter.scatter_max."""

# npumigrate: skip-file

from ._extremes import extremes


def scatter_max(src, index, dim=-1, out=None, dim_size=None):
    """The largest of what has one index, and their places."""
    return extremes(src, index, dim, out, dim_size, True)
