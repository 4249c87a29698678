"""The gradient of groups of points, added to a tensor."""

# npumigrate: skip-file

from .gather_points_grad import gather_points_grad


def group_points_grad_wrapper(b, c, n, npoints, nsample, grad_out, idx, grad_points):
    """The gradient is added to ``grad_points``."""
    found = gather_points_grad(grad_out.reshape(b, c, -1), idx.reshape(b, npoints * nsample), n)
    grad_points.add_(found.view(grad_points.shape))
    return 1
