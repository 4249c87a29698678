"""The gradient of groups of points."""

# npumigrate: skip-file

from .gather_points_grad import gather_points_grad


def group_points_grad(grad_out, idx, n):
    """The gradient of ``n`` points."""
    return gather_points_grad(grad_out.flatten(2), idx.flatten(1), n)
