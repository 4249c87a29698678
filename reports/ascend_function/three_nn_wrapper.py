"""The three nearest points, put into tensors, as extensions of pointnet2 have it."""

# npumigrate: skip-file

from .three_nn import three_nn


def three_nn_wrapper(b, n, m, unknown, known, dist2, idx):
    """``dist2`` gets the squared distances, ``idx`` the places."""
    found, places = three_nn(unknown.reshape(b, n, 3), known.reshape(b, m, 3))
    dist2.copy_(found.view(dist2.shape))
    idx.copy_(places.view(idx.shape))
