"""The gradient of points by their places."""

# npumigrate: skip-file


def gather_points_grad(grad_out, idx, n):
    """The gradient of ``n`` points."""
    places = idx.long().unsqueeze(1).expand(-1, grad_out.shape[1], -1)
    zeros = grad_out.new_zeros(grad_out.shape[0], grad_out.shape[1], n)
    return zeros.scatter_add(2, places, grad_out)
