"""The gradient of the sum of three weighted points, added to a tensor."""

# npumigrate: skip-file

from .three_interpolate_grad import three_interpolate_grad


def three_interpolate_grad_wrapper(b, c, n, m, grad_out, idx, weight, grad_points):
    """The gradient is added to ``grad_points``."""
    given = (grad_out.reshape(b, c, n), idx.reshape(b, n, 3), weight.reshape(b, n, 3))
    grad_points.add_(three_interpolate_grad(*given, m).view(grad_points.shape))
