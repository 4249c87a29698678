"""Furthest point sampling that fills a tensor."""

# npumigrate: skip-file

from ._sampled import between, sampled


def furthest_point_sampling_wrapper(b, n, m, points, temp, idx):
    """``temp`` are the squared distances to start from, ``idx`` gets the places."""
    idx.copy_(sampled(between(points.reshape(b, n, 3)), temp, m).view(idx.shape))
    return 1
