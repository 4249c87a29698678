"""torch_scatter.scatter."""

# npumigrate: skip-file

from ._extremes import extremes
from .scatter_mean import scatter_mean
from .scatter_sum import scatter_sum


def scatter(src, index, dim=-1, out=None, dim_size=None, reduce="sum"):
    """The sums, means, largest or smallest of what has one index."""
    if reduce in ("sum", "add"):
        return scatter_sum(src, index, dim, out, dim_size)
    if reduce == "mean":
        return scatter_mean(src, index, dim, out, dim_size)
    if reduce in ("max", "min"):
        return extremes(src, index, dim, out, dim_size, reduce == "max")[0]
    raise NotImplementedError("scatter on NPUs: reduce has to be sum, add, mean, max or min")
