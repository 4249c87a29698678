"""The gradient of points by their places, added to a tensor."""

# npumigrate: skip-file

from .gather_points_grad import gather_points_grad


def gather_points_grad_wrapper(b, c, n, npoints, grad_out, idx, grad_points):
    """The gradient is added to ``grad_points``."""
    found = gather_points_grad(grad_out.reshape(b, c, npoints), idx.reshape(b, npoints), n)
    grad_points.add_(found.view(grad_points.shape))
    return 1
