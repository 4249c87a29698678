"""The gradient of the sum of three weighted points."""

# npumigrate: skip-file

from .group_points_grad import group_points_grad


def three_interpolate_grad(grad_out, idx, weight, m):
    """The gradient of ``m`` points."""
    return group_points_grad(grad_out.unsqueeze(-1) * weight.unsqueeze(1), idx, m)
